"""Directories for the files of runs, if they have no file system of their own."""

import os

from . import namespaces

_PREFIX = "llmeval-engine-"
TARGET = "target"  # a file beside the runs' directories, which the attacks of the self-test try to change


def create() -> str:
    """Create the engine's directory for its runs, and return its path."""
    path = f"{temporary_directory()}/{_PREFIX}{os.getpid()}-{os.urandom(6).hex()}"
    os.mkdir(path, 0o700)
    with open(f"{path}/{TARGET}", "wb") as file:
        file.write(b"?")
    return path


def sweep() -> None:
    """Remove the directories that killed engines left.

    Only directories of this user, or for root of a private user: the owner of any other could replace it by a link to
    something else while root removes it.
    """
    own = os.geteuid()
    folder = temporary_directory()
    for path in [f"{folder}/{name}" for name in os.listdir(folder) if name.startswith(_PREFIX)]:
        try:
            owner = os.lstat(path).st_uid
            pid = int(os.path.basename(path)[len(_PREFIX) :].split("-")[0])
        except (OSError, ValueError):
            continue
        if (owner == own or (own == 0 and owner >= namespaces.UID_BASE)) and not _is_alive(pid):
            remove_tree(path)


def temporary_directory() -> str:
    """Return a directory for temporary files, without `tempfile`: every library in the zygote makes forks slower."""
    return next(path for path in ("/tmp", "/var/tmp", ".") if os.access(path, os.W_OK | os.X_OK))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def remove_tree(path: str) -> None:
    """Remove a directory, even with folders nested too deeply for recursion or without permissions."""
    folders = [path]
    for folder in folders:  # grows during the loop; every folder found is moved up, so that no path gets long
        try:
            os.chmod(folder, 0o700)
            with os.scandir(folder) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            try:
                if entry.is_dir(follow_symlinks=False):
                    moved = f"{path}/.remove-{len(folders)}"
                    os.rename(entry.path, moved)
                    folders.append(moved)
                else:
                    os.unlink(entry.path)
            except OSError:
                continue
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            continue
