"""Extraction of JSON values from prose, fences and truncated answers."""

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hub.extraction.counterexamples import is_counterexample
from hub.extraction.fences import fences, split
from hub.extraction.normalization import answer_text

_OPEN = re.compile(r"[\[{]")
_MARK = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)  # a string, even an unfinished one, or a mark
# A bracket that begins JSON, or what was meant as JSON: with a comment, single quotes or a bare key. [0, 1) does not.
_BEGINNING = re.compile(
    r"""(?<!\\)(?:\{\s*(?:["']|//|/\*|[\w$]{1,80}\s*:)"""
    r"""|\[\s*(?:["'{\[]|-?\d[\d.]{0,40}\s*,(?!\s*[^\s()\[\]{},"]{1,40}\s*\))))"""
)
_FENCE_END = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*$", re.MULTILINE)
_JSON_FENCES = ("", "json", "json5", "jsonc")
_MAX_FAILURES = 200  # brackets tried that begin no JSON, so that a text of brackets does not take too long
_MAX_CUTS = 20  # positions tried, from the end, at which a truncated value may be closed

# The brackets that close the open ones, innermost first: a linked list, so that all positions in a text share tails.
_Closing = tuple[str, "_Closing | None"]


class NoJSON(ValueError):
    """Text without a JSON value. The message contains the position at which parsing failed."""


class LocatedValue(NamedTuple):
    """Object or array in a text, with its place."""

    value: object
    start: int
    end: int


def json_value(text: str) -> object:
    """Return the JSON value of *text*: the first of `json_values`. Raises NoJSON."""
    values = json_values(text)
    if values:
        return values[0]
    stripped = answer_text(text)
    try:
        _load(stripped)
    except (ValueError, RecursionError) as error:
        raise NoJSON(f"no JSON value could be read ({error if stripped else 'the answer is empty'})") from None
    raise NoJSON("no JSON value could be read")


def only_json_value(text: str) -> object | None:
    """Return the JSON value that *text* consists of, alone or in a single fenced block; None for other texts."""
    text = answer_text(text)
    blocks, outside = split(text)
    only = _loaded([blocks[0].text if len(blocks) == 1 and not outside.strip() else text])
    return only[0] if only else None


def json_values(text: str, *, strict: bool = True) -> list[object]:
    """Return every JSON value in *text*, the most likely first.

    If the entire text is JSON, this is its only value. Otherwise values in fences that are marked as JSON come first,
    then those in fences without a language, then objects and arrays in prose; of each kind, the last one first. Empty
    values and references such as [1] in prose come last. The values within an object or array that is truncated or
    invalid do not count, because they are only parts of the answer. An object that gives a key two values is invalid.
    Unless *strict*, texts in the JSON may contain line breaks and tabs as they are.
    """
    text = answer_text(text)
    only = _loaded([text], strict=strict)
    if only:
        return only
    blocks = [block for block in reversed(fences(text)) if block.language in _JSON_FENCES]
    blocks = [block for block in blocks if not is_counterexample(block.introduction, block.text)] or blocks
    fenced = _loaded([block.text for block in sorted(blocks, key=lambda block: not block.language)], strict=strict)
    in_prose = [found.value for found in reversed(locate_json(text, strict=strict))]
    return fenced + sorted(in_prose, key=_is_minor)


def _is_minor(value: object) -> bool:
    """Return whether *value* is empty, or looks like a reference to a source."""
    return value in ({}, []) or (isinstance(value, list) and len(value) == 1 and isinstance(value[0], int))


def complete_json(text: str, *, strict: bool = True) -> object | None:
    """Return a truncated object or array, closed after its last complete member; None if there is none.

    The incomplete member is dropped: half a number or half a sentence would be another value. *strict* is as in
    `json_values`.
    """
    text = answer_text(text)
    start = _next_open(text, 0)
    if start < 0:
        return None
    closing: _Closing | None = None
    cuts: deque[tuple[int, _Closing]] = deque(maxlen=_MAX_CUTS)  # ends of members, and the brackets to close there
    for match in _MARK.finditer(text, start):
        mark = match[0]
        if mark in ("{", "["):
            closing = ("}" if mark == "{" else "]", closing)
        elif mark in ("}", "]"):
            if closing is None or closing[0] != mark or closing[1] is None:
                return None  # not truncated, or not JSON
            closing = closing[1]
            cuts.append((match.end(), closing))
        elif mark == "," and closing is not None:
            cuts.append((match.start(), closing))
    for end, node in reversed(cuts):
        values = _loaded([text[start:end] + "".join(_brackets(node))], strict=strict)
        if values:
            return values[0]
    return None


def _brackets(node: "_Closing | None") -> Iterator[str]:
    while node is not None:
        bracket, node = node
        yield bracket


def _load(text: str, *, strict: bool = True) -> object:
    """Return *text* as JSON. Raises ValueError, also for NaN and for a key with two values, and RecursionError."""
    return json.loads(text, strict=strict, parse_constant=_reject_constant, object_pairs_hook=_object)


def _loaded(texts: Sequence[str], *, strict: bool = True) -> list[object]:
    values = []
    for text in texts:
        try:
            values.append(_load(text, strict=strict))
        except (ValueError, RecursionError):
            continue
    return values


def locate_json(text: str, *, strict: bool = True) -> list[LocatedValue]:
    """Return the outermost objects and arrays of *text*, in order. *strict* is as in `json_values`."""
    decoder = json.JSONDecoder(strict=strict, parse_constant=_reject_constant, object_pairs_hook=_object)
    values = []
    position = failures = 0
    while (start := _next_open(text, position)) >= 0 and failures < _MAX_FAILURES:
        try:
            value, position = decoder.raw_decode(text, start)
            values.append(LocatedValue(value, start, position))
        except (ValueError, RecursionError):
            position = _end_of_invalid(text, start) if _BEGINNING.match(text, start) else start + 1
            failures += 1
    return values


def _end_of_invalid(text: str, start: int) -> int:
    """Return the end of the invalid object or array at *start*: that of its brackets, its fence or the text."""
    fence_end = _FENCE_END.search(text, start)
    limit = fence_end.start() if fence_end else len(text)
    depth = 0
    for match in _MARK.finditer(text, start, limit):
        if match[0] in ("{", "["):
            depth += 1
        elif match[0] in ("}", "]"):
            depth -= 1
            if depth == 0:
                return match.end()
    return limit


def _next_open(text: str, start: int) -> int:
    match = _OPEN.search(text, start)
    return match.start() if match else -1


def _reject_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):  # the same key and value twice is harmless
        for key, value in pairs:
            if value != members[key]:
                raise ValueError(f"the key {key[:80]!r} has two values")
    return members
