"""Pages of uploads: upload a bundle, start from an example, correct the problems of a draft and check it again."""

import io
from collections import Counter
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hub.bundles.loader import Bundle
from hub.bundles.starters import list_starters, open_starter
from hub.bundles.stored import ArchiveUnavailable
from hub.common.problems import Problem
from hub.common.registry import UnknownName
from hub.common.web.users import signed_in_user
from hub.common.wording import counted
from hub.manifest.problems import MANIFEST, BundleError
from hub.models import EnvironmentVersion, UploadDraft
from hub.selectors import CURATE
from hub.teams.choice import TeamError, choose_team
from hub.teams.quotas import QuotaExceeded
from hub.web.audited import record_nothing
from hub.web.drafts import (
    MAX_PACKED,
    DraftChanged,
    DraftFile,
    DraftRefused,
    check_draft,
    draft_problems,
    edit_draft,
    keep_draft,
    open_draft,
    read_draft_file,
    replace_draft_file,
)
from hub.web.forms import DraftForm, UploadForm
from hub.web.uploads import receive_bundle
from sandbox.errors import SandboxUnavailable


@require_http_methods(["GET", "POST"])
@permission_required(CURATE, raise_exception=True)
def upload(request: HttpRequest) -> HttpResponse:
    """Store an uploaded bundle. One with problems is kept as a draft; if it cannot be, its problems are shown here."""
    user = signed_in_user(request)
    posted = request.method == "POST"
    form = UploadForm(request.POST, request.FILES, user=user) if posted else UploadForm(user=user)
    problems: list[Problem] = []
    name = not_kept = ""
    if posted and form.is_valid():
        file: UploadedFile[bytes] = form.cleaned_data["bundle"]
        name = file.name or ""
        content = file.read() if (file.size or 0) <= MAX_PACKED else None  # larger ones are not kept as drafts
        team: str = form.cleaned_data.get("team", "")
        try:
            opened = file.open() if content is None else io.BytesIO(content)
            received = receive_bundle(file=opened, user=user, team=team)
        except BundleError as error:
            problems = error.problems
            kept, not_kept = _kept(content, name, problems, user, team)
            if kept is not None:
                return redirect("hub:draft", kept.pk)
        except (SandboxUnavailable, ArchiveUnavailable, TeamError, QuotaExceeded) as error:
            form.add_error(None, str(error))
        else:
            return _redirect_to_version(request, *received)
    context = {
        "form": form,
        "problems": problems,
        "name": name,
        "not_kept": not_kept,
        "starters": list_starters(),
        "drafts": UploadDraft.live.filter(owner=user).defer("archive"),
    }
    return render(request, "hub/upload.html", context, status=422 if problems or form.errors else 200)


def _kept(
    content: bytes | None, name: str, problems: list[Problem], user: User, team: str
) -> tuple[UploadDraft | None, str]:
    """Keep an upload as a draft. Return the draft, or None and the reason ("" if the upload is not an archive)."""
    try:
        chosen = choose_team(user, team)
        return keep_draft(content=content, name=name, problems=problems, user=user, team=chosen), ""
    except (DraftRefused, TeamError) as error:
        return None, str(error)
    except BundleError:
        return None, ""


@require_safe
@permission_required(CURATE, raise_exception=True)
def starter(request: HttpRequest, harness: str) -> FileResponse:
    """Download the starter bundle of a harness."""
    try:
        bundle = open_starter(harness)
    except UnknownName as error:
        raise Http404(str(error)) from None
    out = io.BytesIO()
    with bundle:
        bundle.write(out)
        name = bundle.manifest.slug
    out.seek(0)
    return FileResponse(out, as_attachment=True, filename=f"{name}.zip", content_type="application/zip")


@require_http_methods(["GET", "POST"])
@permission_required(CURATE, raise_exception=True)
def draft(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show the problems of a draft and a file of it, `?file=`; POST stores the edited file and checks the bundle."""
    found = _draft(request, pk)
    if request.method == "POST":
        return _edit(request, found)
    with open_draft(found) as bundle:
        path = request.GET.get("file") or _first_file(bundle, found)
        return _page(request, found, bundle, read_draft_file(bundle, path))


def _edit(request: HttpRequest, found: UploadDraft) -> HttpResponse:
    """Store what the form has, then open the file that the pressed button names, or check the bundle."""
    form = DraftForm(request.POST, request.FILES)
    if not form.is_valid():
        wrong = " ".join(f"{form[name].label}: {' '.join(map(str, errors))}" for name, errors in form.errors.items())
        return _show_form_again(request, found, request.POST.get("path", MANIFEST), wrong)
    path, sent = form.cleaned_data["path"], form.cleaned_data["upload"]
    target = form.cleaned_data["other"] or (_target(path, sent.name) if sent else "")
    try:
        if "text" in request.POST and not (sent and target == path):
            edit_draft(draft=found, path=path, text=form.cleaned_data["text"], seen=form.cleaned_data["seen"])
        if sent:
            replace_draft_file(draft=found, path=target, file=sent.file)
    except DraftRefused as error:
        return _show_form_again(request, found, path, str(error), changed=isinstance(error, DraftChanged))
    line, _, opened = request.POST.get("open", "").partition(":")
    if opened or (target and not sent):
        return _redirect_to_file(found, opened or target, line, part="#edit")
    return _check(request, found, target or path)


def _target(path: str, name: str) -> str:
    """Return the file that an upload called *name* replaces: the file *path* that is open if it has this name."""
    return path if path.rpartition("/")[2] == name else name


def _check(request: HttpRequest, found: UploadDraft, path: str) -> HttpResponse:
    """Check the draft again. Redirect to the stored version, or to the draft with the remaining problems."""
    try:
        received = check_draft(draft=found, user=signed_in_user(request))
    except (QuotaExceeded, TeamError) as error:  # the user may have left the team that was to own it
        messages.warning(request, f"The files are kept, but the bundle cannot be stored: {error.message}")
        return _redirect_to_file(found, path)
    except (SandboxUnavailable, ArchiveUnavailable) as error:
        messages.warning(request, f"The files are kept, but the bundle cannot be checked now: {error}")
        return _redirect_to_file(found, path)
    if received is not None:
        return _redirect_to_version(request, *received)
    messages.warning(request, f"Checked again: {counted(len(found.problems), 'problem')} left.")
    return _redirect_to_file(found, path)


def _show_form_again(
    request: HttpRequest, found: UploadDraft, path: str, problem: str, *, changed: bool = False
) -> HttpResponse:
    """Show the form again with the text that was sent.

    The status is 200, because htmx ignores responses with errors.
    """
    with open_draft(found) as bundle:
        current = read_draft_file(bundle, path)
        seen = current.digest if changed else request.POST.get("seen", "")
        shown = DraftFile(path, seen, request.POST.get("text", current.text), current.note)
        status = 200 if request.headers.get("HX-Request") else 422
        return record_nothing(_page(request, found, bundle, shown, problem=problem, status=status))


def _page(
    request: HttpRequest, found: UploadDraft, bundle: Bundle, file: DraftFile, *, problem: str = "", status: int = 200
) -> HttpResponse:
    problems = draft_problems(found)
    counts = Counter(item.file for item in problems)
    lines = file.text.split("\n") if file.text is not None else []
    line = request.GET.get("line", "")
    context = {
        "draft": found,
        "file": file,
        "problem": problem,
        "problems": [(item, _line_of(lines, item) if item.file == file.path else "") for item in problems],
        "files": [(path, info.size, counts[path]) for path, info in bundle.files.items()],
        "line": line if line.isascii() and line.isdecimal() else "",
        "rows": min(max(len(lines) + 2, 12), 32),
    }
    return render(request, "hub/draft.html", context, status=status)


def _line_of(lines: list[str], problem: Problem) -> str:
    return lines[problem.line - 1] if problem.line and problem.line <= len(lines) else ""


def _first_file(bundle: Bundle, found: UploadDraft) -> str:
    return next((item.file for item in draft_problems(found) if item.file in bundle.files), MANIFEST)


@require_safe
@permission_required(CURATE, raise_exception=True)
def draft_bundle(request: HttpRequest, pk: UUID) -> FileResponse:
    """Download a draft as it is now."""
    found = _draft(request, pk)
    name = f"{found.name.removesuffix('.zip')}.zip"
    return FileResponse(io.BytesIO(found.archive), as_attachment=True, filename=name, content_type="application/zip")


@require_POST
@permission_required(CURATE, raise_exception=True)
def discard(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Delete a draft."""
    found = _draft(request, pk)
    found.delete()
    messages.success(request, f"The draft of {found.name} is discarded.")
    return redirect("hub:upload")


def _draft(request: HttpRequest, pk: UUID) -> UploadDraft:
    """Return a draft of the user. Raises Http404 for those of others, and for expired ones."""
    return get_object_or_404(UploadDraft.live, pk=pk, owner=signed_in_user(request))


def _redirect_to_file(found: UploadDraft, path: str, line: str = "", part: str = "") -> HttpResponse:
    query = urlencode({"file": path, **({"line": line} if line else {})})
    return redirect(f"{reverse('hub:draft', args=[found.pk])}?{query}{part}")


def _redirect_to_version(request: HttpRequest, version: EnvironmentVersion, new: bool) -> HttpResponse:
    if new:
        messages.success(request, f"{version} is stored with {counted(version.case_count, 'case')}.")
    else:
        messages.success(request, f"{version} was stored already.")
    return redirect("hub:version", version.environment.slug, version.version)
