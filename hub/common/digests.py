"""Canonical JSON and digests of it: equal content has an equal digest on every machine."""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: object) -> bytes:
    """Return canonical JSON, similar to RFC 8785: sorted keys, no white space, UTF-8. Raises ValueError for NaN.

    Lone surrogates, which JSON text can carry but UTF-8 cannot, are kept as escapes.
    """
    return _canonical.encode(value).encode("utf-8", "backslashreplace")


def digest(value: object) -> str:
    """Return the SHA-256 of the canonical JSON of *value*, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def files_digest(files: Mapping[str, str]) -> str:
    """Return the digest of a folder: *files* maps each path to the SHA-256 of its content."""
    return digest(dict(files))


@lru_cache(maxsize=4096)  # used by every call of an episode
def attempt_seed(seed: int, environment: str, case: str, attempt: int) -> int:
    """Return the 63-bit seed of one attempt: SHA-256 of (seed, environment, case, attempt)."""
    raw = hashlib.sha256(canonical_json([seed, environment, case, attempt])).digest()
    return int.from_bytes(raw[:8], "big") >> 1
