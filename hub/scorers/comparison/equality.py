"""Equality of JSON values: numbers by value, never across types; text exactly or folded."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import TypeVar, cast

from hub.common.wording import counted
from hub.scorers.comparison.texts import quoted_difference

K = TypeVar("K")
V = TypeVar("V")

_SHOWN = 80  # characters of a JSON value that a reason shows
# Characters that the checker of the Berkeley leaderboard also removes before it compares texts.
_IGNORED = re.compile(r"[ ,./\-_*^]")


def json_equal(a: object, b: object, *, folded: bool = False) -> bool:
    """Return whether two JSON values are equal: 1 equals 1.0, true equals no number, key order does not matter.

    Texts and keys are equal if they consist of the same characters, composed or not: é may be one code point or two.

    *folded* ignores case, spaces, `, . / - _ * ^` and the kind of quotes in texts.
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, str) and isinstance(b, str):
        a, b = composed_name(a), composed_name(b)
        return fold(a) == fold(b) if folded else a == b
    if isinstance(a, dict) and isinstance(b, dict):
        a, b = composed_keys(a), composed_keys(b)
        return a.keys() == b.keys() and all(json_equal(a[key], b[key], folded=folded) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(json_equal(x, y, folded=folded) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def json_difference(wanted: object, found: object) -> str:
    """Return the first difference between two JSON values as a clause that begins with its place; "" if none."""
    path = "$"
    while not json_equal(wanted, found):
        if isinstance(wanted, dict) and isinstance(found, dict):
            wanted, found = composed_keys(wanted), composed_keys(found)
            if missing := [key for key in wanted if key not in found]:
                return f"at {path}: the key {missing[0]!r} is missing"
            if more := [key for key in found if key not in wanted]:
                return f"at {path}: the key {more[0]!r} is not expected"
            key = next(key for key in wanted if not json_equal(wanted[key], found[key]))
            wanted, found, path = wanted[key], found[key], f"{path}.{key}"
        elif isinstance(wanted, list) and isinstance(found, list):
            if len(wanted) != len(found):
                return f"at {path}: expected {counted(len(wanted), 'item')}, found {len(found)}"
            place = next(i for i, (a, b) in enumerate(zip(wanted, found, strict=True)) if not json_equal(a, b))
            wanted, found, path = wanted[place], found[place], f"{path}[{place}]"
        elif isinstance(wanted, str) and isinstance(found, str):
            expected, said = quoted_difference(wanted, found)
            return f"at {path}: expected {expected}, found {said}"
        else:
            return f"at {path}: expected {_as_json(wanted)}, found {_as_json(found)}"
    return ""


def _as_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def composed_keys(value: Mapping[K, V]) -> Mapping[K, V]:
    """Return *value* with its keys composed. A mapping of YAML may also have numbers as keys."""
    keys = {cast(K, composed_name(key)) if isinstance(key, str) else key: key for key in value}
    if len(keys) < len(value):
        return value  # two keys that differ in composition only
    return {composed: value[key] for composed, key in keys.items()}


def composed_name(name: str) -> str:
    """Return *name* with composed characters: é as one code point."""
    return unicodedata.normalize("NFC", name)


def fold(text: str) -> str:
    """Return *text* without the differences that `folded` ignores."""
    return _IGNORED.sub("", text).casefold().replace("'", '"')
