"""The command line of this program, for messages with commands that can be pasted."""

import sys
from pathlib import Path


def command(*words: object) -> str:
    """Return a command such as `.venv/bin/python manage.py eval --resume 3`, with the interpreter and path in use."""
    script = Path(sys.argv[0])
    if script.name != "manage.py":  # a worker, a web server
        script = Path("manage.py")
    return " ".join([_shown(Path(sys.executable)) if _in_environment() else "python", _shown(script), *map(str, words)])


def _in_environment() -> bool:
    return sys.prefix != sys.base_prefix


def _shown(path: Path) -> str:
    """Return *path* relative to the working directory if it is below it."""
    try:
        return str(path.relative_to(Path.cwd())) if path.is_absolute() else str(path)
    except (ValueError, OSError):  # elsewhere; or the working directory is gone
        return str(path)
