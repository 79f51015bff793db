"""Overrides of a config on the command line: `--set path.to.key=value`."""

import re

from hub.common.documents import yaml_source
from hub.common.problems import Problem
from runs.config.parsed import ParsedConfig


class _OverrideError(Exception):
    """The override cannot be applied."""


def apply_override(config: dict[str, object], text: str, parsed: ParsedConfig) -> None:
    """Apply one `path.to.key=value` to *config*. Problems are added to *parsed*.

    The value is YAML. Items of lists are numbered from 0 (`models.0.name`). The value null removes a key.
    """
    option = f"--set {text}"
    try:
        path = _apply(config, text)
    except _OverrideError as error:
        parsed.problems.append(Problem(str(error), option=option))
    else:
        if path is not None:
            parsed.overrides[path] = option


def _apply(config: dict[str, object], text: str) -> yaml_source.Path | None:
    """Apply the override and return the path of the value; None if the key was removed."""
    written, equals, raw = text.partition("=")
    parts = re.sub(r"\[(\d+)\]", r".\1", written.strip()).split(".")  # problems write models[0] for models.0
    if not equals or not all(parts):
        raise _OverrideError("expected path.to.key=value")
    try:
        value = yaml_source.parse(raw).value if raw.strip() else ""
    except yaml_source.YamlError as error:
        raise _OverrideError(error.message) from None
    container: object = config
    path: list[str | int] = []
    for i, part in enumerate(parts):
        place, is_last = ".".join(parts[:i]), i == len(parts) - 1
        if isinstance(container, list):
            if not (part.isdigit() and int(part) < len(container)):
                advice = _advise_number(place, part, container)
                raise _OverrideError(f"{place} is a list of {len(container)}; {part!r} is not in it{advice}")
            path.append(int(part))
            if is_last:
                container[int(part)] = value
            container = container[int(part)]
        elif isinstance(container, dict):
            path.append(part)
            if is_last and value is None:
                if part not in container:
                    raise _OverrideError(f"there is no {'.'.join(parts)} to remove")
                del container[part]
                return None
            if is_last:
                container[part] = value
            elif container.get(part) is None:
                container[part] = {}
            container = container[part]
        else:
            raise _OverrideError(f"{place} is a single value and has no keys")
    return tuple(path)


def _advise_number(place: str, part: str, items: list[object]) -> str:
    """Return how to refer to an item: the number of the one called *part*, or the range of numbers."""
    if not items:
        return ""
    named = next((i for i, item in enumerate(items) if isinstance(item, dict) and item.get("name") == part), None)
    if named is not None:
        return f"; write {place}.{named}"
    return f"; write {place}.0" + (f" to {place}.{len(items) - 1}" if len(items) > 1 else "")
