"""Canonical JSON and digests of it: equal content has an equal digest on every machine."""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def canonical_json(value: Any) -> bytes:
    """Return canonical JSON, similar to RFC 8785: sorted keys, no white space, UTF-8. Raises ValueError for NaN.

    Lone surrogates, which JSON text can carry but UTF-8 cannot, are kept as escapes.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of *value*, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def storable(value: Any) -> Any:
    """Return *value* with NULs and lone surrogates, which PostgreSQL cannot store, replaced by U+FFFD at any depth."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # Looked through as text, which is fast. A backslash of its own before "u0000" is a false alarm and costs time only.
    return _replace_unstorable(value) if "\\u0000" in text or _UNSTORABLE.search(text) else value


def _replace_unstorable(value: Any) -> Any:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace_unstorable(item) for item in value]
    if isinstance(value, dict):
        return {_replace_unstorable(key): _replace_unstorable(item) for key, item in value.items()}
    return value


def files_digest(files: Mapping[str, str]) -> str:
    """Return the digest of a folder: *files* maps each path to the SHA-256 of its content."""
    return digest(dict(files))


@lru_cache(maxsize=4096)  # used by every call of an episode
def attempt_seed(seed: int, environment: str, case: str, attempt: int) -> int:
    """Return the 63-bit seed of one attempt: SHA-256 of (seed, environment, case, attempt)."""
    raw = hashlib.sha256(canonical_json([seed, environment, case, attempt])).digest()
    return int.from_bytes(raw[:8], "big") >> 1
