"""Snapshots of boxes in the storage `snapshots`: one folder per episode, with a file for each content.

Episodes share no files, so that the snapshots of one can be removed without knowing about the others. A file is never
unpacked outside of a box.
"""

import hashlib
import posixpath
import tempfile
from collections.abc import Iterator

from django.core.files import File
from django.core.files.storage import Storage, storages

from sandbox.workspaces.base import BoxSpec, Handle, SnapshotFacts, WorkspaceEngine

_CHUNK = 1024 * 1024
_IN_MEMORY = 4 * _CHUNK  # larger archives are temporary files while they are copied


class SnapshotMissing(Exception):
    """A snapshot that the storage does not have, or not as it was stored."""


def save_snapshot(engine: WorkspaceEngine, handle: Handle, workdir: str, folder: str, max_mb: int) -> SnapshotFacts:
    """Store the files of a box in *folder*. Raises WorkspaceError, WorkspaceLost and errors of the storage."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as archive:
        facts = engine.snapshot(handle, workdir, archive, max_mb)
        archive.seek(0)
        name = posixpath.join(folder, facts.digest)
        if not _storage().exists(name):
            _storage().save(name, File(archive))
    return facts


def open_saved(engine: WorkspaceEngine, spec: BoxSpec, folder: str, digest: str, max_mb: int) -> Handle:
    """Open a box with the files of a snapshot.

    Raises SnapshotMissing, and as `WorkspaceEngine.open_snapshot` does.
    """
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as archive:
        found = hashlib.sha256()
        try:
            with _storage().open(posixpath.join(folder, digest)) as source:
                while part := source.read(_CHUNK):
                    found.update(part)
                    archive.write(part)
        except FileNotFoundError:
            raise SnapshotMissing("it is not in the storage") from None
        if found.hexdigest() != digest:
            raise SnapshotMissing("its content has changed")
        archive.seek(0)
        return engine.open_snapshot(spec, archive, max_mb)


def remove_snapshots(folder: str, *digests: str) -> None:
    """Remove the snapshots *digests* of an episode, or all of them. Does nothing if they are removed already."""
    if not digests:
        _remove_folder(_storage(), folder)
    for digest in digests:
        _storage().delete(posixpath.join(folder, digest))


def list_snapshot_folders(kind: str) -> Iterator[str]:
    """Yield the folders of episodes below *kind*, the first part of their names."""
    waiting = [kind]
    while waiting:
        folder = waiting.pop()
        folders, files = _listed(_storage(), folder)
        if files or (folder != kind and not folders):
            yield folder
        waiting += [posixpath.join(folder, name) for name in folders]


def _remove_folder(storage: Storage, folder: str) -> None:
    folders, files = _listed(storage, folder)
    for name in files:
        storage.delete(posixpath.join(folder, name))
    for name in folders:
        _remove_folder(storage, posixpath.join(folder, name))
    storage.delete(folder)  # a folder of a file system; a bucket has none


def _listed(storage: Storage, folder: str) -> tuple[list[str], list[str]]:
    try:
        folders, files = storage.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    return folders, files


def _storage() -> Storage:
    return storages["snapshots"]
