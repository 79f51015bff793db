"""Masking of API keys: no key that this installation is configured with may be stored, logged or shown."""

import base64
import json
import logging
from functools import lru_cache
from typing import TypeVar
from urllib.parse import quote, quote_plus

from django.conf import settings

MASK = "[key removed]"
# A shorter value is a placeholder such as EMPTY or none; masking it would change ordinary text.
MIN_KEY_LENGTH = 8

_Value = TypeVar("_Value")


def mask(value: _Value) -> _Value:
    """Return *value* with every configured key replaced, in texts at any depth of lists and mappings."""
    lookup = settings.ENV.lookup
    forms = _forms(tuple(key for name in settings.API_KEY_VARIABLES if (key := lookup(name))))
    return _masked(value, forms) if forms else value


def _masked(value: _Value, forms: tuple[str, ...]) -> _Value:
    if isinstance(value, str):
        text: str = value
        for form in forms:
            if form in text:
                text = text.replace(form, MASK)
        return text  # type: ignore[return-value]
    if isinstance(value, dict):
        return {_masked(key, forms): _masked(item, forms) for key, item in value.items()}  # type: ignore[return-value]
    if isinstance(value, list | tuple):
        return type(value)(_masked(item, forms) for item in value)
    return value


@lru_cache(maxsize=16)
def _forms(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts in which *keys* may appear: as they are, escaped or encoded; the longest first."""
    forms: set[str] = set()
    for given in keys:
        key = given.strip()
        if len(key) < MIN_KEY_LENGTH:
            continue
        forms |= {given, key, " ".join(key.split()), "".join(key.split())}
        forms |= {quote(key, safe=""), quote(key), quote_plus(key)}
        forms |= {json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1], key.replace("/", "\\/")}
        forms |= _base64_forms(key.encode())
    return tuple(sorted(forms, key=len, reverse=True))


def _base64_forms(key: bytes) -> set[str]:
    """Return the characters that all base64 texts with *key* have in common, such as a header of `user:key`.

    A key begins at one of three positions within a group of three bytes, so there are three such texts.
    """
    found = set()
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + key).decode()
        start = (0, 2, 3)[offset]  # characters that also depend on what comes before
        whole = len(encoded) if (offset + len(key)) % 3 == 0 else len(encoded.rstrip("=")) - 1
        found |= {encoded[start:whole], encoded[start:whole].replace("+", "-").replace("/", "_")}
    return found


class MaskingFormatter(logging.Formatter):
    """A log formatter that masks configured keys in messages and tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))
