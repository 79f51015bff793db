"""Output files and folders: files are written together or not at all, and never replaced without --force."""

import errno
import os
import shutil
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from hub.common.errors import UserError

# Of the kinds of files that commands write, and of configs, which --force would replace.
_SUFFIXES = {".jsonl", ".parquet", ".zip", ".html", ".md", ".xml", ".yaml", ".yml"}
# Of archives and compressed files that no command writes: the suffix would say that the file is one.
_ARCHIVES = {".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".zst", ".tzst", ".7z", ".rar"}


class CannotWrite(UserError):
    """A file that cannot be written; the message says why and what to do. Nothing was written."""


def describe_file_error(error: OSError, path: Path, data_folder: Path) -> str:
    """Return that *path* cannot be used, why, and what to do if it is in the data folder."""
    message = f"{path} cannot be written or read: {error.strerror}."
    if not path.is_relative_to(data_folder):
        return message
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            remedy = "Free some space"
        case errno.EROFS:
            remedy = f"Make {data_folder} writable"
        case errno.EACCES if (protected := _find_protected(path)) is not None:
            remedy = f"Make {protected} writable"
        case _:
            remedy = f"Run the command as the user who owns {data_folder}"
    return f"{message} {remedy}, or name another data folder in LLMEVAL_VAR."


def _find_protected(path: Path) -> Path | None:
    """Return *path*, or the folder it would be in, if it belongs to the user of this process but is not writable."""
    with suppress(OSError):
        existing = path if path.exists() else path.parent
        if existing.stat().st_uid == os.geteuid() and not os.access(existing, os.W_OK):
            return existing
    return None


def add_force_argument(parser: ArgumentParser) -> None:
    """Add the option --force, with which an export replaces existing files."""
    parser.add_argument("--force", action="store_true", help="replace existing files")


def check_suffix(path: Path, suffix: str, kind: str) -> None:
    """Raise CannotWrite if *path* has the suffix of another kind of file than *kind*, which ends in *suffix*."""
    if path.suffix.lower() in (_SUFFIXES | _ARCHIVES) - {suffix}:
        raise CannotWrite(f"{path}: {kind} ends in {suffix}.")


class Outputs:
    """Output files that are moved into place together when the `with` block ends without an error.

        with Outputs(force=options["force"]) as outputs:
            write_rows(outputs.file(out))
        print(outputs.written)

    Raises CannotWrite, from `file`, `folder` or the end of the block.
    """

    def __init__(self, *, force: bool = False) -> None:
        self.force = force
        self.written: list[Path] = []
        self._pending: dict[Path, Path] = {}
        self._scratch: list[Path] = []
        self._made: list[Path] = []

    def folder(self, path: Path) -> Path:
        """Return the folder *path*, created if it is missing; its parent must exist."""
        if not path.is_dir():
            with _explained(path):
                path.mkdir()
            self._made.append(path)
        return path

    def file(self, path: Path) -> Path:
        """Return the temporary path to write to for *path*. If nothing is written there, *path* is not created.

        Devices and pipes, such as /dev/stdout, are written to directly.
        """
        with _explained(path):
            self._refuse(path)
            if path.exists() and not path.is_file():
                return path
            if any(path.resolve() == other.resolve() for other in self._pending):
                raise CannotWrite(f"{path} is named twice; name another file for one of the two.")
            scratch = Path(tempfile.mkdtemp(dir=path.resolve().parent, prefix=".export-"))
        self._scratch.append(scratch)
        self._pending[path] = scratch / path.name
        return self._pending[path]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._place()
            elif isinstance(error, OSError) and error.filename is None:  # from writing, such as a full disk
                place = next(iter(self._pending), "The export")
                raise CannotWrite(f"{place} cannot be written: {_reason(error)}.") from None
        finally:
            for scratch in self._scratch:
                shutil.rmtree(scratch, ignore_errors=True)
            if not self.written:
                for folder in self._made:
                    folder.rmdir()

    def _place(self) -> None:
        """Move the finished files into place, and record them in `written`."""
        ready = {path: made for path, made in self._pending.items() if made.exists()}
        for path in ready:  # check all before the first is moved: another process may have created a file
            self._refuse(path)
        for path, made in ready.items():
            with _explained(path):
                made.replace(path.resolve())
            self.written.append(path)

    def _refuse(self, path: Path) -> None:
        if str(path) == "-":
            raise CannotWrite("`-` is not supported: an export is written completely or not at all. Name a file.")
        if path.is_dir():
            raise CannotWrite(f"{path} is a folder; name a file in it.")
        if path.is_file() and not self.force:
            raise CannotWrite(f"{path} exists already; --force replaces it.")


@contextmanager
def new_folder(path: Path, *, parents: bool = True) -> Iterator[Path]:
    """Create the folder *path* for the files that the `with` block writes. An error in the block removes it again.

    Raises CannotWrite if it exists or cannot be created, or if a file in it cannot be written.
    """
    try:
        path.mkdir(parents=parents)
    except FileExistsError:
        raise CannotWrite(f"{path} exists already; name a new folder.") from None
    except OSError as error:
        raise CannotWrite(f"{path} cannot be created: {_reason(error)}.") from None
    try:
        yield path
    except BaseException as error:
        shutil.rmtree(path, ignore_errors=True)
        if isinstance(error, OSError) and (error.filename is None or path in Path(error.filename).parents):
            raise CannotWrite(f"{path} cannot be written: {_reason(error)}.") from None
        raise


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        # Some folders accept no new file and say that it is not found, as /proc does.
        reason = (
            f"no file can be created in {path.parent}" if path.parent.is_dir() else f"there is no folder {path.parent}"
        )
        raise CannotWrite(f"{path} cannot be written: {reason}.") from None
    except NotADirectoryError:
        raise CannotWrite(f"{path} cannot be written: {path.parent} is not a folder.") from None
    except FileExistsError:
        raise CannotWrite(f"{path} is a file; name a folder.") from None
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written: {_reason(error)}.") from None


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)
