"""Equality of JSON values: numbers by value, never across types; text exactly or folded."""

import re
import unicodedata
from collections.abc import Mapping

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
        a, b = unicodedata.normalize("NFC", a), unicodedata.normalize("NFC", b)
        return fold(a) == fold(b) if folded else a == b
    if isinstance(a, dict) and isinstance(b, dict):
        a, b = _composed_keys(a), _composed_keys(b)
        return a.keys() == b.keys() and all(json_equal(a[key], b[key], folded=folded) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(json_equal(x, y, folded=folded) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def _composed_keys(value: Mapping[object, object]) -> Mapping[object, object]:
    """Return *value* with its keys composed. A mapping of YAML may also have numbers as keys."""
    composed = {unicodedata.normalize("NFC", key) if isinstance(key, str) else key: item for key, item in value.items()}
    return composed if len(composed) == len(value) else value  # two keys that differ in composition only


def fold(text: str) -> str:
    """Return *text* without the differences that `folded` ignores."""
    return _IGNORED.sub("", text).casefold().replace("'", '"')
