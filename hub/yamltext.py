"""YAML as people mean it, with line numbers: plain data only, duplicate keys refused, `on` and `no` are words.

PyYAML speaks YAML 1.1, where the key `on` is a truth value and 1:30 a number. The loader here resolves the types of
YAML 1.2's core schema instead, and keeps the line of every key so that a mistake can be shown where it is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

MAX_BYTES = 1024 * 1024
MAX_NODES = 50_000  # aliases expanded: a few lines of nested ones would otherwise unfold into gigabytes
MAX_DEPTH = 60

Path = tuple[str | int, ...]


class YamlError(ValueError):
    """Text that is not usable YAML; `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class YamlText:
    """Parsed YAML: its value and the line on which each key path begins."""

    value: Any
    lines: dict[Path, int]

    def line(self, path: Sequence[str | int]) -> int:
        """The line of *path*, or of the nearest part of it that is in the file."""
        return next(
            self.lines[tuple(path[:end])] for end in range(len(path), -1, -1) if tuple(path[:end]) in self.lines
        )


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.nodes += 1
        if self.nodes > MAX_NODES:  # stops a long file early; aliases are expanded and counted in `_walk`
            raise YamlError(self.line + 1, f"more than {MAX_NODES:,} values")
        return super().compose_node(parent, index)


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$|^0x[0-9a-fA-F]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?$|^[-+]?[0-9]+[eE][-+]?[0-9]+$", "-+.0123456789"),
    ("merge", r"^<<$", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))
# YAML's float constructor reads 1e3 as well as 1.0e3; only the resolver had to learn it.


def parse(text: str) -> YamlText:
    """Parse one YAML document. Raises YamlError, with the line, for whatever is wrong with it."""
    if len(text) > MAX_BYTES:
        raise YamlError(1, f"the file has {len(text):,} characters; at most {MAX_BYTES:,} are read")
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return YamlText(None, {(): 1})
            lines: dict[Path, int] = {(): node.start_mark.line + 1}
            _walk(node, (), lines)
            return YamlText(loader.construct_document(node), lines)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(mark.line + 1 if mark else 1, error.problem or "not YAML") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, YamlError):
            raise
        raise YamlError(1, " ".join(str(error).split()) or "not YAML") from None


def _walk(node: yaml.Node, path: Path, lines: dict[Path, int]) -> None:
    """Note the line of every value below *node*; refuse duplicate keys, keys that are not text, and endless aliases."""
    line = node.start_mark.line + 1
    if len(lines) > MAX_NODES or len(path) > MAX_DEPTH:
        raise YamlError(line, f"more than {MAX_NODES:,} values or {MAX_DEPTH} levels, with aliases expanded")
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[*path, index] = item.start_mark.line + 1
            _walk(item, (*path, index), lines)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            key_line = key.start_mark.line + 1
            if key.tag == "tag:yaml.org,2002:merge":
                _walk(value, (*path, "<<"), lines)
                continue
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                raise YamlError(key_line, "a key is not text; put it in quotes")
            if key.value in seen:
                raise YamlError(key_line, f"the key {key.value!r} is given twice")
            seen.add(key.value)
            lines[*path, key.value] = key_line
            _walk(value, (*path, key.value), lines)


def dotted(path: Sequence[str | int]) -> str:
    """`("scoring", "rules", 0, "type")` as `scoring.rules[0].type`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def undotted(text: str) -> Path:
    """The reverse of `dotted`, for keys that have neither dots nor brackets in them."""
    return tuple(int(part[1:-1]) if part[0] == "[" else part for part in re.findall(r"\[\d+\]|[^.\[\]]+", text))
