"""Text that databases can store: without U+0000 (PostgreSQL) and without lone surrogates (UTF-8)."""

import json
import re
from typing import TypeVar, cast

T = TypeVar("T")

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_encoder = json.JSONEncoder(ensure_ascii=False)


def storable(value: T) -> T:
    """Return *value* with U+0000 and lone surrogates replaced by U+FFFD, in texts at any depth."""
    return cast(T, _replace(value)) if value and unstorable_character(value) else value


def unstorable_character(value: object) -> str:
    """Return the first U+0000 or lone surrogate in *value*, text or JSON at any depth; "" if there is none.

    Raises TypeError and RecursionError for values that are not JSON.
    """
    # JSON is searched as one text because that is fast. It writes U+0000 as an escape.
    text = value if isinstance(value, str) else _encoder.encode(value)
    found = _UNSTORABLE.search(text)
    if found:
        return found[0]
    # Without the second check, a backslash followed by "u0000" in a text would count as well.
    return "\x00" if not isinstance(value, str) and "\\u0000" in text and _has_nul(value) else ""


def _has_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(_has_nul(item) for item in items)


def _replace(value: object) -> object:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace(item) for item in value]
    if isinstance(value, dict):
        return {_replace(key): _replace(item) for key, item in value.items()}
    return value
