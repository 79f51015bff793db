"""Drafts of uploads: a bundle with problems is kept for its owner, who edits its files on the site and checks it again.

Its content is data here: files are replaced in its archive, and `receive_bundle` validates it as any other upload.
"""

import hashlib
import io
from dataclasses import dataclass
from typing import IO

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from hub.bundles.archive import FileInfo, write_archive
from hub.bundles.loader import Bundle, open_archive
from hub.common.errors import UserError
from hub.common.problems import Problem
from hub.common.storable import storable
from hub.common.wording import counted
from hub.manifest.problems import BundleError, ProblemJSON, problem_from_json, problem_to_json
from hub.models import EnvironmentVersion, Team, UploadDraft
from hub.web.uploads import receive_bundle

MAX_DRAFTS = 5  # of one user
MAX_PACKED = 8 * 1024 * 1024  # bytes of the archive
MAX_UNPACKED = 64 * 1024 * 1024  # bytes of all files
MAX_EDITED = 200_000  # bytes of a file that the page shows in a text field

_TOO_LARGE = (
    f"A bundle of more than {MAX_PACKED >> 20} MB, or {MAX_UNPACKED >> 20} MB unpacked, cannot be edited here. "
    "Correct it on your computer and upload it again."
)


class DraftRefused(UserError):
    """A draft that cannot be kept or changed in this way; the message is a sentence."""


class DraftChanged(DraftRefused):
    """A file that was changed in the meantime, for example in another tab."""


@dataclass(frozen=True, slots=True)
class DraftFile:
    """A file of a draft as the page shows it. `text` is None if it cannot be edited there; `note` says why.

    `digest` is empty for a file that is not in the bundle yet.
    """

    path: str
    digest: str
    text: str | None
    note: str = ""


def keep_draft(
    *, content: bytes | None, name: str, problems: list[Problem], user: User, team: Team | None = None
) -> UploadDraft:
    """Keep the bundle in the .zip *content*, which has *problems*, as a draft of *user*. None: it is too large.

    *team* will own its environment if that is new.

    Raises DraftRefused if the user has too many drafts or the bundle is too large, and BundleError if it is no archive.
    """
    if content is None:
        raise DraftRefused(_TOO_LARGE)
    with open_archive(io.BytesIO(content)) as bundle:
        _check_size(bundle, len(content))
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)  # so that two requests at once stay within the limit
        if UploadDraft.live.filter(owner=user).count() >= MAX_DRAFTS:
            limit = counted(MAX_DRAFTS, "draft")
            raise DraftRefused(f"You have {limit}, which is the limit. Discard one to correct this upload here.")
        return UploadDraft.objects.create(
            owner=user, team=team, name=storable(name)[:200], archive=content, problems=_stored(problems)
        )


def draft_problems(draft: UploadDraft) -> list[Problem]:
    """Return the problems that the last check of *draft* found."""
    return [problem_from_json(item) for item in draft.problems]


def open_draft(draft: UploadDraft) -> Bundle:
    """Open the bundle of *draft*."""
    return open_archive(io.BytesIO(draft.archive))


def read_draft_file(bundle: Bundle, path: str) -> DraftFile:
    """Return the file *path* for display; an empty one if the bundle has none."""
    info = bundle.files.get(path)
    if info is None:
        return DraftFile(path, "", "", "This file is not in the bundle. It is added if you write something.")
    try:
        return DraftFile(path, info.sha256, bundle.text(path, MAX_EDITED))
    except BundleError as error:
        reason = " ".join(problem.message for problem in error.problems)
        return DraftFile(path, info.sha256, None, f"It cannot be edited here: {reason}")


def edit_draft(*, draft: UploadDraft, path: str, text: str, seen: str) -> None:
    """Store *text* as the content of the file *path*. *seen* is the digest of the file that the user has edited.

    Raises DraftChanged if the file is another one by now, and DraftRefused if the result is no possible bundle.
    """
    text = _unix_lines(text)
    with transaction.atomic():
        locked = UploadDraft.objects.select_for_update().get(pk=draft.pk)
        with open_draft(locked) as bundle:
            current = read_draft_file(bundle, path)
            if current.text is not None and _unix_lines(current.text) == text:
                return
            if current.digest != seen:
                raise DraftChanged(
                    f"{path} was changed in the meantime, for example in another tab. Your text is in the field below, "
                    "and not stored yet. Check again to replace the other text by it."
                )
            _replace(locked, bundle, path, text.encode("utf-8", "replace"))
    draft.refresh_from_db()


def replace_draft_file(*, draft: UploadDraft, path: str, file: IO[bytes]) -> None:
    """Store the content of *file* as the file *path*. Raises DraftRefused if the result is no possible bundle."""
    content = file.read(MAX_UNPACKED + 1)
    with transaction.atomic():
        locked = UploadDraft.objects.select_for_update().get(pk=draft.pk)
        with open_draft(locked) as bundle:
            _replace(locked, bundle, path, content)
    draft.refresh_from_db()


def check_draft(*, draft: UploadDraft, user: User) -> tuple[EnvironmentVersion, bool] | None:
    """Store the bundle of *draft* as an upload does and delete the draft; return None if it still has problems.

    The problems are stored with the draft. A draft that was edited or discarded during the check is left as it is.
    Raises SandboxUnavailable, QuotaExceeded and TeamError.
    """
    unchanged = UploadDraft.objects.filter(pk=draft.pk, changed_at=draft.changed_at)
    try:
        team = draft.team.slug if draft.team else Team.SHARED
        received = receive_bundle(file=io.BytesIO(draft.archive), user=user, team=team)
    except BundleError as error:
        draft.problems = _stored(error.problems)
        unchanged.update(problems=draft.problems)
        return None
    unchanged.delete()
    return received


def _replace(draft: UploadDraft, bundle: Bundle, path: str, content: bytes) -> None:
    """Write the archive of *draft* with *content* as the file *path*."""
    files = {**bundle.files, path: FileInfo(len(content), hashlib.sha256(content).hexdigest())}
    out = io.BytesIO()
    try:
        write_archive(out, files, lambda name: io.BytesIO(content) if name == path else bundle.file(name))
        with open_archive(io.BytesIO(out.getvalue())) as result:
            _check_size(result, out.tell())
    except BundleError as error:
        raise DraftRefused(f"{path or 'The file'} was not stored. {error}") from None
    draft.archive = out.getvalue()
    draft.changed_at = timezone.now()
    draft.save(update_fields=["archive", "changed_at"])


def _check_size(bundle: Bundle, packed: int) -> None:
    if packed > MAX_PACKED or sum(info.size for info in bundle.files.values()) > MAX_UNPACKED:
        raise DraftRefused(_TOO_LARGE)


def _unix_lines(text: str) -> str:
    """Return *text* with the line breaks that a text field sends written as in the bundle."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _stored(problems: list[Problem]) -> list[ProblemJSON]:
    return storable([problem_to_json(problem) for problem in problems])
