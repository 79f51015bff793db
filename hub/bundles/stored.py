"""Bundles of stored versions: the one place that writes their archives and opens them again.

Archives lie in the storage `archives` (a folder or a bucket), which all machines share. Each machine keeps copies of
those that it uses in a cache folder of bounded size. A copy is complete and has the digest of its version before it is
used.
"""

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core.files import File

from hub.bundles.loader import Bundle, open_archive
from hub.common.errors import UserError
from hub.common.storage.folder import is_temporary, written_atomically
from hub.common.unused_files import list_folders, unused_in
from hub.manifest.problems import BundleError
from hub.models import BUNDLES, EnvironmentVersion, archive_storage, bundle_path

logger = logging.getLogger(__name__)

_CHUNK = 1 << 20


class ArchiveUnavailable(UserError):
    """The archive of a stored version is missing or damaged, or its storage cannot be reached."""

    exit_code = 3
    status_code = 503


class ArchivesUnreachable(ArchiveUnavailable):
    """The storage of archives does not respond. A later attempt may succeed."""


class _WrongDigest(ValueError):
    """The file is not the archive of the version."""


def store_archive(bundle: Bundle, check: Callable[[int], None] = lambda size: None) -> str:
    """Store the bundle's archive, which no version has yet, and return its name. Equal content has an equal name.

    A file of that name is written again, so that it is not taken for one that nothing needs (`find_unused_archives`).

    check: receives the size in bytes before anything is stored, and may raise an error. Raises ArchiveUnavailable.
    """
    name = bundle_path(EnvironmentVersion(digest=bundle.digest), "")
    with _explained(f"The archive {name}"):
        return _save(bundle, name, check)


def find_unused_archives() -> list[str]:
    """Return the names of archives that are older than a day and of no version, because an import was rolled back.

    Raises ContentUnavailable.
    """
    versions = EnvironmentVersion.objects.order_by()
    return [
        name
        for part in list_folders(BUNDLES)
        for name in unused_in(
            f"{BUNDLES}/{part}", partial(versions.filter(digest__startswith=part).values_list, "archive", flat=True)
        )
    ]


def archive_size(name: str) -> int:
    """Return the size of a stored archive in bytes. Raises ArchiveUnavailable."""
    with _explained(f"The archive {name}"):
        return archive_storage().size(name)


def restore_archive(version: EnvironmentVersion, bundle: Bundle) -> None:
    """Store the archive of *version* again if it is missing or damaged. *bundle* has the same content.

    Raises ArchiveUnavailable.
    """
    with _explained(f"The archive of {version}"):
        try:
            with archive_storage().open(version.archive.name or "") as source, tempfile.NamedTemporaryFile() as copy:
                _copy_checked(source, version, copy)
        except (FileNotFoundError, _WrongDigest):
            logger.warning("the archive of %s was missing or damaged; it is stored again", version)
            version.archive.name = bundle_path(version, "")
            archive_storage().delete(version.archive.name)
            version.archive.name = _save(bundle, version.archive.name)
            version.save(update_fields=["archive"])


def _save(bundle: Bundle, name: str, check: Callable[[int], None] = lambda size: None) -> str:
    with tempfile.TemporaryFile() as file:
        bundle.write(file)
        check(file.tell())
        file.seek(0)
        return archive_storage().save(name, File(file))


def open_stored_archive(version: EnvironmentVersion) -> IO[bytes]:
    """Open the .zip of *version* from the cache, fetched first if necessary. Raises ArchiveUnavailable."""
    path = _cached_path(version)
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return _fetch(version, path)
    with suppress(OSError):  # deleted in the meantime by another process
        os.utime(path)  # the copies that were used least recently are deleted first
    return file


def open_stored_bundle(version: EnvironmentVersion) -> Bundle:
    """Open the bundle of *version*. Raises ArchiveUnavailable."""
    try:
        return _open_checked(open_stored_archive(version), version)
    except _WrongDigest:  # the copy was damaged after it was fetched
        path = _cached_path(version)
        path.unlink(missing_ok=True)
        return _open_checked(_fetch(version, path), version)


def _cached_path(version: EnvironmentVersion) -> Path:
    return Path(settings.ARCHIVE_CACHE) / f"{version.digest}.zip"


def _fetch(version: EnvironmentVersion, path: Path) -> IO[bytes]:
    """Copy the archive of *version* to *path* and open it. Raises ArchiveUnavailable."""
    name = version.archive.name or ""
    what = f"The archive of {version}"
    with _explained(what):
        try:
            with archive_storage().open(name) as source, written_atomically(path) as target:
                _copy_checked(source, version, target)
                opened = Path(target.name).open("rb")  # noqa: SIM115 - before another process can delete it from the cache
        except FileNotFoundError:
            raise ArchiveUnavailable(
                f"{what} is missing: the storage of archives has no file {name or 'for it'}. Import the same bundle "
                "again, or restore the file from a backup. If the archive lies in a folder of another machine, let all "
                "machines use one storage (LLMEVAL_ARCHIVES)."
            ) from None
        except _WrongDigest:
            raise ArchiveUnavailable(
                f"{what} is damaged: the content of {name} does not have the digest of the version. Import the same "
                "bundle again, or restore the file from a backup."
            ) from None
        _limit_cache(path)
        return opened


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn errors of the storage into ArchiveUnavailable. Each kind of storage has exceptions of its own."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        problem = f"{what} cannot be read or written: {type(error).__name__}: {error}."
        logger.warning("%s", problem)
        kind = ArchivesUnreachable if is_temporary(error) else ArchiveUnavailable
        raise kind(
            f"{problem} Check LLMEVAL_ARCHIVES, and that the storage and the folder {settings.ARCHIVE_CACHE} can be "
            "written to."
        ) from error


def _copy_checked(source: "File[bytes]", version: EnvironmentVersion, target: IO[bytes]) -> None:
    """Copy *source* to the named file *target*. Raises _WrongDigest if it is not the archive of *version*."""
    while chunk := source.read(_CHUNK):
        target.write(chunk)
    target.flush()
    with Path(target.name).open("rb") as copy:
        _open_checked(copy, version)


def _open_checked(file: IO[bytes], version: EnvironmentVersion) -> Bundle:
    """Open the bundle in *file*, which is closed with it. Raises _WrongDigest if it is not the one of *version*."""
    try:
        bundle = open_archive(file)
    except BundleError:
        raise _WrongDigest from None
    if bundle.digest != version.digest:
        bundle.close()
        raise _WrongDigest
    return bundle


def _limit_cache(newest: Path) -> None:
    """Delete the copies that were used least recently until the cache is within its limit. *newest* is kept."""
    copies = sorted(_cached_copies(newest.parent))
    total = sum(size for _, size, _ in copies)
    for _, size, path in copies:
        if total <= settings.ARCHIVE_CACHE_BYTES:
            return
        if path != newest:
            path.unlink(missing_ok=True)  # a process that has the file open can still read it
            total -= size


def _cached_copies(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """Yield (time of last use, size, path) of each copy."""
    for path in folder.glob("*.zip"):
        try:
            found = path.stat()
        except FileNotFoundError:  # deleted by another process
            continue
        yield found.st_mtime, found.st_size, path
