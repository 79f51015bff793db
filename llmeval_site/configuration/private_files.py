"""Permissions of what the product writes: its folder, its database and its secrets are the owner's alone.

The database holds tests and expected answers. Where the sandbox runs code as another user without further isolation
(tier C, started by root), these permissions are all that keeps the code from reading them.
"""

import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path

logger = logging.getLogger(__name__)

_FOLDER = 0o700
_FILE = 0o600
_SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")


def make_private_folder(path: Path) -> None:
    """Create a folder for its owner alone, or take the permissions of others from one that is there. Raises OSError."""
    path.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
    _restrict(path)


def create_private_file(path: Path, text: str = "") -> None:
    """Create a file for its owner alone. Raises FileExistsError and other OSErrors."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE), "w", encoding="utf-8") as file:
        file.write(text)


def make_private_database(path: Path) -> None:
    """Create an SQLite file for its owner alone, since SQLite would let others read it, or restrict one that is there.

    SQLite gives the files that it puts beside it the same permissions.
    """
    try:
        create_private_file(path)
    except OSError:
        pass  # it is there, or cannot be made: connecting to it says why
    restrict_files(path.with_name(path.name + suffix) for suffix in _SQLITE_SUFFIXES)


def restrict_files(paths: Iterable[Path]) -> None:
    """Take the permissions of group and others from files, as far as they are there."""
    for path in paths:
        if path.is_file():
            _restrict(path)


def _restrict(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if not mode & 0o077:
        return
    private = mode & 0o700
    try:
        path.chmod(private)
    except OSError as error:
        logger.warning(
            "%s: other users can read it (mode %04o), and this process cannot change that (%s). Run: chmod %o %s",
            path,
            mode,
            error.strerror,
            private,
            path,
        )
    else:
        logger.warning("%s: other users could read it (mode %04o); changed to mode %04o.", path, mode, private)
