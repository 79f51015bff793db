"""Files in the storage of archives that no row refers to, because a write was rolled back or only rows were deleted."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Protocol

from django.core.files.storage import storages
from django.db import models
from django.utils import timezone

from hub.common.fields import FOLDER, content_unavailable, delete_files, file_names

# A file is written before its row is committed, so a new one may only seem to be unused. No transaction lasts so long.
_AGE = timedelta(days=1)
_NUMBER = re.compile("[0-9]{1,18}")


class FilesOfRows(Protocol):
    """Model whose large values are in files, in folders of `file_folder`."""

    file_folder: str

    def rows_in_folder(self, name: str) -> models.QuerySet[models.Model] | None:
        """Return the rows whose files are in the folder *name*; None if it is no folder of this model."""


def folder_number(name: str) -> int | None:
    """Return the number that names a folder; None if *name* is no number."""
    return int(name) if _NUMBER.fullmatch(name) else None


def find_unused_files(*rows: FilesOfRows) -> list[str]:
    """Return the names of the files of *rows* that are older than a day and that no row refers to.

    Raises ContentUnavailable.
    """
    return [name for kind in rows for name in _unused(kind)]


def _unused(kind: FilesOfRows) -> Iterator[str]:
    base = posixpath.join(FOLDER, kind.file_folder)
    for part in list_folders(base):
        rows = kind.rows_in_folder(part)
        if rows is not None:
            yield from unused_in(posixpath.join(base, part), partial(file_names, rows))


def list_folders(folder: str) -> list[str]:
    """Return the names of the folders in *folder*. Raises ContentUnavailable."""
    return sorted(_listed(folder)[0])


def unused_in(folder: str, read_used: Callable[[], Iterable[str]]) -> Iterator[str]:
    """Yield the names of the files in *folder* that are older than a day and not among those of *read_used*.

    Raises ContentUnavailable.
    """
    names = [posixpath.join(folder, name) for name in _listed(folder)[1]]  # before the rows are read
    used = set(read_used()) if names else set()
    yield from (name for name in sorted(names) if name not in used and _is_old(name))


def delete_unused_files(names: list[str]) -> None:
    """Delete the files *names*, except those that were written again since they were found.

    Raises ContentUnavailable.
    """
    delete_files(name for name in names if _is_old(name))


def size_of_files(names: list[str]) -> int:
    """Return the bytes of the files *names* that still exist. Raises ContentUnavailable."""
    return sum(map(_size, names))


def _size(name: str) -> int:
    with _explained(name):
        try:
            return storages["archives"].size(name)
        except FileNotFoundError:
            return 0


def _is_old(name: str) -> bool:
    storage = storages["archives"]
    with _explained(name):
        try:
            return bool(storage.get_modified_time(name) < timezone.now() - _AGE)
        except Exception:  # each kind of storage has an exception of its own for a missing file
            if storage.exists(name):
                raise
            return False


def _listed(folder: str) -> tuple[list[str], list[str]]:
    with _explained(folder):
        try:
            return storages["archives"].listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return [], []


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise content_unavailable(error, f"{name} cannot be read") from error
