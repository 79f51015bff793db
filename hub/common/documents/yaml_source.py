"""YAML 1.2 with line numbers: plain data only, duplicate keys are errors, `on` and `no` are text.

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

_CORE = "tag:yaml.org,2002:"
_TEXT, _COLLECTIONS = f"{_CORE}str", (f"{_CORE}seq", f"{_CORE}map")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

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

    value: Any
    lines: dict[Path, int]

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line of *path*, or of its nearest ancestor in the file."""
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
    _Loader.add_implicit_resolver(f"{_CORE}{_tag}", re.compile(_pattern), list(_first))
# YAML's float constructor reads 1e3 as well as 1.0e3; only the resolver had to learn it.


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
        raise _explained(error) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        # PyYAML gives the character's number, and types it as text.
        raise YamlError(line, f"the character U+{int(error.character):04X}, which YAML does not take") from None
    except RecursionError:
        raise YamlError(1, f"more than {MAX_DEPTH} levels") from None
    except yaml.YAMLError:
        raise YamlError(1, _NOT_YAML) from None


# PyYAML's words -> what the writer of the file did, and whether it began where the construct did that was not ended.
_MISTAKES: tuple[tuple[str, bool, str], ...] = (
    (
        "mapping values are not allowed",
        False,
        "a `:` that fits nowhere; put text with a `: ` in it in quotes, and look at the line above",
    ),
    (r"found character '\\t'", False, "a tab; YAML is indented with spaces"),
    (r"found character '(.)'", False, "text cannot start with {}; put it in quotes"),
    ("could not find expected ':'", True, "a key without `: ` after it"),
    (
        "expected ',' or '}'",
        True,
        "this { is not closed, or a comma is missing; put `${...}` and text with commas in quotes",
    ),
    ("expected ',' or ']'", True, "this [ is not closed, or a comma is missing; put text with commas in quotes"),
    ("found unexpected end of stream", True, "the quote that opens here is not closed"),
    ("found unexpected document separator", True, "the quote that opens here is not closed"),
    ("expected <block end>", False, "it stands at another depth than the lines above; indent it as they are"),
    ("undefined alias '?([^']*)'?", False, "`*{}` refers to nothing; put text that starts with `*` in quotes"),
    ("expected alphabetic or numeric", False, "text cannot start with `*` or `&`; put it in quotes"),
    (
        "unknown escape character '(.)'",
        False,
        r"`\{}` means nothing in double quotes; use single quotes, or write `\\{}`",
    ),
    ("expected escape sequence", False, r"a `\x` or `\u` in double quotes lacks digits; use single quotes"),
    ("found unhashable key|unacceptable key", False, "a key is not text; put `{{ ... }}` in quotes"),
    (
        "sequence entries are not allowed",
        False,
        "a list begins on a line of its own; put text that starts with `- ` in quotes",
    ),
    (
        "expected the node content, but found '<(?:stream|document) (?:end|start)>'",
        False,
        "the file ends before a [ or { is closed",
    ),
    (
        "expected the node content, but found '([^<]+)'",
        False,
        "a value is missing before {}, or text starts with it; put text in quotes",
    ),
    ("expected the node content", False, "a value is missing here"),
    ("mapping keys are not allowed", False, "a `?` that fits nowhere; put text that starts with `? ` in quotes"),
    (
        "expected chomping or indentation|indentation indicator in the range|expected a comment or a line break",
        False,
        "after `|` or `>` the text begins on the next line; put text that starts with them in quotes",
    ),
    (
        "expected a mapping (?:or list of mappings )?for merging",
        False,
        "`<<` takes a mapping by its alias, such as `<<: *common`; put a `<<` of your own in quotes",
    ),
    ("YAML document|directive", False, "a line that starts with `%` gives YAML orders; take it out"),
    ("duplicate anchor '?([^';]*)'?", False, "the anchor `&{}` is given twice"),
    ("tag|URI|expected '[!>]'", False, "text cannot start with `!`; put it in quotes"),
    ("found another document|expected '<document start>'", False, "a second document begins here; take the `---` out"),
)
_NOT_YAML = "this is not YAML; put text with special characters in quotes"


def _explained(error: yaml.MarkedYAMLError) -> YamlError:
    mark = error.problem_mark or error.context_mark
    for pattern, at_start, words in _MISTAKES:
        match = re.search(pattern, error.problem or "")
        if match:
            mark = error.context_mark if at_start and error.context_mark else mark
            said = words.replace("{}", match[1]) if match.groups() else words
            return YamlError(mark.line + 1 if mark else 1, said)
    return YamlError(mark.line + 1 if mark else 1, _NOT_YAML)


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
            if key.tag == f"{_CORE}merge":
                _walk(value, (*path, "<<"), lines, loader)
                continue
            if not isinstance(key, yaml.ScalarNode) or key.tag != _TEXT:
                raise YamlError(key_line, "a key is not text; put it, and any `{{ ... }}`, in quotes")
            _check_scalar(key, key_line, loader)
            if key.value in seen:
                raise YamlError(key_line, f"the key {key.value!r} is given twice")
            seen.add(key.value)
            lines[*path, key.value] = key_line
            _walk(value, (*path, key.value), lines, loader)


def _check_scalar(node: yaml.ScalarNode, line: int, loader: _Loader) -> None:
    """Reject characters that no database stores, tags that create objects, and tags that do not fit the text."""
    strange = _UNSTORABLE.search(node.value)
    if strange:
        raise YamlError(line, f"the character U+{ord(strange[0]):04X}, which no database takes; take it out")
    if node.tag not in (_TEXT, loader.resolve(yaml.ScalarNode, node.value, (True, False))):
        raise _tag_error(node, line)


def _tag_error(node: yaml.Node, line: int) -> YamlError:
    tag = node.tag.replace(_CORE, "!!")
    return YamlError(line, f"`{tag}` is a tag; leave it out, or put text that starts with `!` in quotes")


def dotted(path: Sequence[str | int]) -> str:
    """Return `("scoring", "rules", 0, "type")` as `scoring.rules[0].type`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def undotted(text: str) -> Path:
    """Return the path of a dotted text; the inverse of `dotted` for keys without dots and brackets."""
    return tuple(int(part[1:-1]) if part[0] == "[" else part for part in re.findall(r"\[\d+\]|[^.\[\]]+", text))
