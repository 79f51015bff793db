"""Reads the config file of a command, and suggests other files if it cannot be used."""

import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from django.conf import settings
from pydantic import ValidationError

from hub.common import wording
from hub.common.errors import UserError
from hub.selectors import compile_version, get_version
from runs.config.endpoints import endpoint_spec
from runs.config.parsed import ConfigError
from runs.config.parsing import read_config_text
from runs.config.registered import describe_registered_models
from runs.config.resolve import ResolvedConfig, resolve_config, source_for_command, with_team
from runs.selectors import explain_unusable_model, list_usable_models


class UsageError(UserError):
    """The options of a command contradict each other, or name a file that cannot be used."""


def load_config(path: Path, *, overrides: list[str], limit: int | None) -> ResolvedConfig:
    """Read and resolve the config at *path*. Raises UserError.

    overrides: `path.to.key=value`. limit: keep only the first cases of those that the config selects in each
    environment.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be 1 or more, not {limit}.")
    with suppress(RuntimeError):  # no home folder
        path = path.expanduser()  # shells leave `~` in `--config=~/run.yaml` and `CONFIG=~/run.yaml` as it is
    source = source_for_command(path.resolve().parent, str(path))
    parsed = read_config_text(_read_file(path), source, overrides, prepare=describe_registered_models)
    resolved = with_team(resolve_config(parsed), user=None)
    return resolved if limit is None else _limited(resolved, limit)


def build_config(
    environments: list[str], models: list[str], *, overrides: list[str], limit: int | None
) -> ResolvedConfig:
    """Resolve the run of `--env` and `--model`: environments of the hub, and registered models. Raises UserError.

    The first model also fills the roles that the environments need, unless `--set roles.ROLE=...` describes another.
    """
    described, roles = _look_up(models, environments)
    config: dict[str, object] = {
        "name": f"{', '.join(environments)} with {', '.join(models)}"[:120],
        "environments": list(environments),
        "models": list(described.values()),
    }
    if roles:
        config["roles"] = dict.fromkeys(sorted(roles), described[models[0]])
    source = source_for_command(Path.cwd(), "the options")
    try:
        resolved = with_team(resolve_config(read_config_text(json.dumps(config), source, overrides)), user=None)
    except ConfigError as error:  # options have no lines
        raise ConfigError([replace(problem, line=None) for problem in error.problems], error.source) from None
    if limit is None:
        return resolved
    if limit < 1:
        raise UsageError(f"--limit must be 1 or more, not {limit}.")
    return _limited(resolved, limit)


def _limited(resolved: ResolvedConfig, limit: int) -> ResolvedConfig:
    return replace(resolved, environments=[item.first(limit) for item in resolved.environments])


def _look_up(models: list[str], environments: list[str]) -> tuple[dict[str, dict[str, object]], set[str]]:
    """Return the models as a config describes them, and the roles of the environments.

    Raises UserError, with the problems of all models and environments.
    """
    described: dict[str, dict[str, object]] = {}
    roles: set[str] = set()
    problems: list[UserError] = []
    for name in models:
        try:
            described[name] = _describe_model(name)
        except UserError as error:
            problems.append(error)
    for slug in environments:
        try:
            roles |= _roles_of(slug)
        except UserError as error:
            problems.append(error)
    if len(problems) > 1:
        raise UsageError("\n".join(error.headline() for error in problems))
    if problems:
        raise problems[0]
    return described, roles


def _roles_of(slug: str) -> set[str]:
    return set(compile_version(get_version(slug)).roles)


def _describe_model(name: str) -> dict[str, object]:
    """Return the registered model *name* as a config describes it. Raises UsageError."""
    known = {endpoint.name: endpoint for endpoint in list_usable_models(None)}
    endpoint = known.get(name)
    if endpoint is None:
        said = wording.sentence(explain_unusable_model(None, name))
        raise UsageError(f"{said} Use --config for models that are not registered.")
    try:
        return endpoint_spec(endpoint).model_dump(mode="json", exclude_none=True)
    except ValidationError:
        raise UsageError(f"The registration of {name!r} is invalid; correct it at /models/.") from None


def _read_file(path: Path) -> str:
    """Return the text of the file. Raises UsageError, which suggests configs that exist."""
    if str(path) == "-":
        raise UsageError("A config cannot be read from stdin: its paths are relative to its file. Name a file.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        if not text.strip():
            raise UsageError(f"{path} is empty; a config is a mapping with name, environments and models.")
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
    return wording.end_sentence(f"; {advice}" if advice else "")


def _find_configs(folder: Path) -> list[str]:
    """Return the files in *folder* that look like configs."""
    found = []
    for path in sorted(folder.glob("*.y*ml")):
        with suppress(OSError, UnicodeDecodeError):
            if "\nenvironments:" in path.read_text(encoding="utf-8"):
                found.append(os.path.relpath(path) if folder.is_absolute() else str(path))
    return found
