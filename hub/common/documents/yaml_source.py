"""YAML 1.2 with line numbers: plain data only, duplicate keys are errors, `on` and `no` are text.

PyYAML implements YAML 1.1, where the key `on` is a boolean and 1:30 a number. The loader here resolves the types of
YAML 1.2's core schema instead, and records the line of every key for error messages.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import yaml

from hub.common.storable import unstorable_character

MAX_BYTES = 1024 * 1024
MAX_NODES = 50_000  # with aliases expanded: a few lines of nested aliases could otherwise grow to gigabytes
MAX_DEPTH = 60

_CORE = "tag:yaml.org,2002:"
_TEXT, _COLLECTIONS = f"{_CORE}str", (f"{_CORE}seq", f"{_CORE}map")
_NUMBERS = (f"{_CORE}int", f"{_CORE}float")
_MAX_HEX = 2 + 255  # characters of 0x and a number that is finite as a floating-point number

Path = tuple[str | int, ...]


class YamlError(ValueError):
    """Invalid YAML; `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class YamlText:
    """Parsed YAML: its value and the line on which each key path begins."""

    value: object
    lines: dict[Path, int]

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line of *path*, or of its nearest ancestor in the file."""
        return next(
            self.lines[tuple(path[:end])] for end in range(len(path), -1, -1) if tuple(path[:end]) in self.lines
        )


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.nodes += 1
        if self.nodes > MAX_NODES:  # stops a long file early; aliases are expanded and counted in `_walk`
            raise YamlError(self.line + 1, f"more than {MAX_NODES:,} values")
        return super().compose_node(parent, index)

    def compose_scalar_node(self, anchor: dict[str, yaml.Node]) -> yaml.ScalarNode:
        node: yaml.ScalarNode = super().compose_scalar_node(anchor)
        if unstorable_character(node.value):  # JSON, which is YAML, writes U+1F600 as the pair "\ud83d\ude00"
            node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        return node


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$|^0x[0-9a-fA-F]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?$|^[-+]?[0-9]+[eE][-+]?[0-9]+$", "-+.0123456789"),
    ("merge", r"^<<$", "<"),
):
    _Loader.add_implicit_resolver(f"{_CORE}{_tag}", re.compile(_pattern), list(_first))
# PyYAML's float constructor accepts 1e3 as well as 1.0e3; only its resolver does not.


def parse(text: str) -> YamlText:
    """Parse one YAML document. Raises YamlError with the line of the mistake."""
    if len(text) > MAX_BYTES:
        raise YamlError(1, f"the file has {len(text):,} characters; at most {MAX_BYTES:,} are read")
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return YamlText(None, {(): 1})
            lines: dict[Path, int] = {(): node.start_mark.line + 1}
            _walk(node, (), lines, loader)
            return YamlText(loader.construct_document(node), lines)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _yaml_error(error) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(line, f"the character U+{ord(text[error.position]):04X}: {error.reason}") from None
    except RecursionError:
        raise YamlError(1, f"more than {MAX_DEPTH} levels") from None
    except yaml.YAMLError as error:
        raise YamlError(1, str(error)) from None


_REMEDIES = {
    "mapping values are not allowed here": "put a text that contains `: ` in quotes, or check the indentation",
    "found unknown escape character": "write a backslash as `\\\\`, or use single quotes",
    "found character '\\t' that cannot start any token": "indent with spaces instead of tabs",
    "expected <block end>": "check the indentation of this line and of those above it",
    "expected ',' or '}', but got '{'": "put a text that contains `{`, such as `${NAME}`, in quotes",
    "expected ',' or ']', but got '{'": "put a text that contains `{`, such as `${NAME}`, in quotes",
}


def _yaml_error(error: yaml.MarkedYAMLError) -> YamlError:
    """Return PyYAML's own message with its line, the line of the construct that it was reading, and a remedy."""
    start, mark = error.context_mark, error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    message = error.problem or "this is not YAML"
    if error.context:
        elsewhere = f" that starts on line {start.line + 1}" if start and start.line + 1 != line else ""
        message = f"{error.context}{elsewhere}: {message}"
    remedy = next((remedy for begin, remedy in _REMEDIES.items() if (error.problem or "").startswith(begin)), "")
    return YamlError(line, f"{message}; {remedy}" if remedy else message)


def _walk(node: yaml.Node, path: Path, lines: dict[Path, int], loader: _Loader) -> None:
    """Record the line of every value below *node*; reject duplicate keys, keys that are not text, and alias bombs."""
    line = node.start_mark.line + 1
    if len(lines) > MAX_NODES or len(path) > MAX_DEPTH:
        raise YamlError(line, f"more than {MAX_NODES:,} values or {MAX_DEPTH} levels, with aliases expanded")
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(node, line, loader)
    elif node.tag not in _COLLECTIONS:
        raise _tag_error(node, line)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[*path, index] = item.start_mark.line + 1
            _walk(item, (*path, index), lines, loader)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            key_line = key.start_mark.line + 1
            is_merge = key.tag == f"{_CORE}merge"
            if not is_merge:
                if not isinstance(key, yaml.ScalarNode) or key.tag != _TEXT:
                    raise YamlError(key_line, "a key must be text; put it, and any `{{ ... }}`, in quotes")
                _check_scalar(key, key_line, loader)
            if key.value in seen:
                raise YamlError(key_line, f"the key {key.value!r} is given twice")
            seen.add(key.value)
            if not is_merge:
                lines[*path, key.value] = key_line
            _walk(value, (*path, key.value), lines, loader)


def _check_scalar(node: yaml.ScalarNode, line: int, loader: _Loader) -> None:
    """Reject characters that no database stores, tags that create objects, and tags that do not fit the text."""
    if found := unstorable_character(node.value):
        raise YamlError(line, f"the character U+{ord(found):04X} cannot be stored in a database; remove it")
    resolve: Callable[[type[yaml.Node], str, tuple[bool, bool]], str] = loader.resolve
    if node.tag not in (_TEXT, resolve(yaml.ScalarNode, node.value, (True, False))):
        raise _tag_error(node, line)
    if node.tag in _NUMBERS and not _is_possible(node.value):
        raise YamlError(line, f"the number {node.value[:40]} is too large")


def _is_possible(number: str) -> bool:
    """Return whether JSON readers can read the number: as a floating-point number it is finite."""
    return len(number) <= _MAX_HEX if number.startswith("0x") else math.isfinite(float(number))


def _tag_error(node: yaml.Node, line: int) -> YamlError:
    tag = node.tag.replace(_CORE, "!!")
    return YamlError(line, f"the tag `{tag}` is not supported; remove it, or put text that starts with `!` in quotes")


def dotted(path: Sequence[str | int]) -> str:
    """Return `("scoring", "rules", 0, "type")` as `scoring.rules[0].type`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def undotted(text: str) -> Path:
    """Return the path of a dotted text; the inverse of `dotted` for keys without dots and brackets."""
    return tuple(int(part[1:-1]) if part[0] == "[" else part for part in re.findall(r"\[\d+\]|[^.\[\]]+", text))
