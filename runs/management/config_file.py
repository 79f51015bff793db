"""Reads the config file of a command, and suggests other files if it cannot be used."""

import os
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from hub.common import wording
from hub.common.errors import UserError
from runs.config.parsing import read_config_text
from runs.config.resolve import ResolvedConfig, resolve_config, source_for_command


class UsageError(UserError):
    """The options of a command contradict each other, or name a file that cannot be used."""


def load_config(path: Path, *, overrides: list[str], limit: int | None) -> ResolvedConfig:
    """Read and resolve the config at *path*. Raises UserError.

    overrides: `path.to.key=value`. limit: keep only the first cases of those that the config selects in each
    environment.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be 1 or more, not {limit}.")
    source = source_for_command(path.resolve().parent, str(path))
    resolved = resolve_config(read_config_text(_read_file(path), source, overrides))
    if limit is None:
        return resolved
    return ResolvedConfig(resolved.config, [item.first(limit) for item in resolved.environments])


def _read_file(path: Path) -> str:
    """Return the text of the file. Raises UsageError, which suggests configs that exist."""
    if str(path) == "-":
        raise UsageError("A config cannot be read from stdin: its paths are relative to its file. Name a file.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        if not text.strip():
            raise UsageError(f"{path} is empty{_suggestion(path, path.parent)}")
        return text
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}{_suggestion(path, path.parent)}") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder{_suggestion(path, path)}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a config: it is not UTF-8 text.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


def _suggestion(path: Path, folder: Path) -> str:
    found = _find_configs(folder) or _find_configs(settings.BASE_DIR / "configs")
    advice = wording.suggest(str(path), [item for item in found if item != str(path)])
    return f"; {advice}" if advice.endswith("?") else f"; {advice}." if advice else "."


def _find_configs(folder: Path) -> list[str]:
    """Return the files in *folder* that look like configs."""
    found = []
    for path in sorted(folder.glob("*.y*ml")):
        with suppress(OSError, UnicodeDecodeError):
            if "\nenvironments:" in path.read_text(encoding="utf-8"):
                found.append(os.path.relpath(path) if folder.is_absolute() else str(path))
    return found
