"""YAML with places: a safe parse that refuses repeated keys and remembers the line of every key path."""

from dataclasses import dataclass
from typing import Any

import yaml

Path = tuple[str | int, ...]


class YamlError(ValueError):
    """The text is not YAML that can be read; `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class YamlText:
    """A parsed document: plain values, and the line at which each key path stands."""

    value: Any
    lines: dict[Path, int]

    def line(self, path: Path) -> int:
        """The line of *path*, or of the nearest ancestor that has one; 1 at the worst."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse(text: str) -> YamlText:
    """Raises YamlError for what is not YAML, a repeated key, an alias or a key that is not text."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise YamlError(mark.line + 1 if mark else 1, f"not valid YAML: {problem}") from None
    except RecursionError:
        raise YamlError(1, "nested too deeply") from None
    lines: dict[Path, int] = {}
    constructor = yaml.SafeLoader("")
    value = _value(node, (), lines, constructor) if node is not None else None
    return YamlText(value, lines)


def _value(node: yaml.Node, path: Path, lines: dict[Path, int], constructor: yaml.SafeLoader) -> Any:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str) or key == "<<":
                raise YamlError(line, "keys must be plain text; merges and composite keys are not used here")
            if key in mapping:
                raise YamlError(line, f"the key {key!r} stands here twice")
            lines[(*path, key)] = line
            mapping[key] = _value(value_node, (*path, key), lines, constructor)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, i), lines, constructor) for i, item in enumerate(node.value)]
    try:
        return constructor.construct_object(node, deep=True)
    except yaml.YAMLError as error:
        raise YamlError(node.start_mark.line + 1, f"not a plain value: {getattr(error, 'problem', error)}") from None


def dotted(path: Path) -> str:
    """`("models", 0, "name")` as people write it: `models[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
