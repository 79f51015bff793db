"""File permissions: the data folder, the database and secrets are readable by their owner only.

The database contains tests and expected answers. In isolation tier C, started by root, the sandbox runs code as another
user without further isolation. These permissions are then the only protection against reading the database.
"""

import logging
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

logger = logging.getLogger(__name__)

_FOLDER = 0o700
_FILE = 0o600
_SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")
_WRITTEN_WITHIN_S = 2.0  # after another process created a file


def make_private_folder(path: Path) -> None:
    """Create a folder that only its owner can access, or restrict an existing one. Raises OSError."""
    path.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
    _restrict(path)


def create_private_file(path: Path, text: str = "") -> None:
    """Create a file that only its owner can access. Raises FileExistsError and other OSErrors.

    If *text* cannot be written, as on a full disk, no file is left.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def wait_for_text(path: Path) -> str:
    """Return the text of a file that another process may have created but not yet written; "" if it stays empty."""
    end = time.monotonic() + _WRITTEN_WITHIN_S
    while not (text := path.read_text(encoding="utf-8")) and time.monotonic() < end:
        time.sleep(0.02)
    return text


def make_private_database(path: Path) -> None:
    """Create an SQLite file that only its owner can access, or restrict an existing one.

    SQLite itself would create a file that others can read. It gives its additional files (such as the write-ahead log)
    the permissions of the database file.
    """
    try:
        create_private_file(path)
    except OSError:
        pass  # it exists already, or connecting to it will report the error
    restrict_files(path.with_name(path.name + suffix) for suffix in _SQLITE_SUFFIXES)


def restrict_files(paths: Iterable[Path]) -> None:
    """Remove the permissions of group and others from those of *paths* that are files."""
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
