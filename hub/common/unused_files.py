"""Files of large values that no row refers to, because a write was rolled back or rows were deleted without them."""

import posixpath
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Protocol

from django.core.files.storage import storages
from django.db import models
from django.utils import timezone

from hub.common.fields import FOLDER, delete_files, file_names

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
    """Return the names of the files of *rows* that are older than a day and that no row refers to."""
    return [name for kind in rows for name in _unused(kind)]


def _unused(kind: FilesOfRows) -> Iterator[str]:
    base = posixpath.join(FOLDER, kind.file_folder)
    for part in _listed(base)[0]:
        rows = kind.rows_in_folder(part)
        folder = posixpath.join(base, part)
        names = [posixpath.join(folder, name) for name in _listed(folder)[1]]  # before the rows are read
        if rows is None or not names:
            continue
        used = set(file_names(rows))
        yield from (name for name in sorted(names) if name not in used and _is_old(name))


def delete_unused_files(names: list[str]) -> None:
    """Delete the files *names*, except those that were written again since they were found."""
    delete_files(name for name in names if _is_old(name))


def size_of_files(names: list[str]) -> int:
    """Return the bytes of the files *names*."""
    return sum(storages["archives"].size(name) for name in names)


def _is_old(name: str) -> bool:
    try:
        return bool(storages["archives"].get_modified_time(name) < timezone.now() - _AGE)
    except FileNotFoundError:
        return False


def _listed(folder: str) -> tuple[list[str], list[str]]:
    try:
        folders, files = storages["archives"].listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    return sorted(folders), files
