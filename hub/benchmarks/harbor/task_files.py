"""The files of a task's folder, and the tables of its task.toml."""

from collections.abc import Iterator
from pathlib import Path


def read_file(path: Path) -> str:
    """Return the text of a file; "" if it does not exist."""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def files_below(folder: Path) -> dict[str, Path]:
    """Return all files below *folder* by their path relative to it."""
    return {str(path.relative_to(folder)): path for path in files_in(folder)}


def files_in(folder: Path) -> Iterator[Path]:
    """Yield all files below *folder*, sorted."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def get_table(config: dict[str, object], key: str) -> dict[str, object]:
    """Return a table of *config*, empty if it is missing."""
    value = config.get(key)
    return value if isinstance(value, dict) else {}
