"""Equality of JSON values: numbers by value, never across types; text exactly or folded."""

import re
import unicodedata

# Characters that the checker of the Berkeley leaderboard also removes before it compares texts.
_IGNORED = re.compile(r"[ ,./\-_*^]")


def json_equal(a: object, b: object, *, folded: bool = False) -> bool:
    """Return whether two JSON values are equal: 1 equals 1.0, true equals no number, key order does not matter.

    Texts are equal if they consist of the same characters, composed or not: é may be one code point or two.

    *folded* ignores case, spaces, `, . / - _ * ^` and the kind of quotes in texts.
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, str) and isinstance(b, str):
        a, b = unicodedata.normalize("NFC", a), unicodedata.normalize("NFC", b)
        return fold(a) == fold(b) if folded else a == b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(json_equal(a[key], b[key], folded=folded) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(json_equal(x, y, folded=folded) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def fold(text: str) -> str:
    """Return *text* without the differences that `folded` ignores."""
    return _IGNORED.sub("", text).casefold().replace("'", '"')
