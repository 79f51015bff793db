"""JSON without whitespace."""

import json

_encoder = json.JSONEncoder(separators=(",", ":"), check_circular=False)


def dumps(data: object) -> bytes:
    """Return data as JSON. Raises TypeError, ValueError or RecursionError if JSON cannot represent it."""
    return _encoder.encode(data).encode("ascii")


def loads(data: bytes) -> object:
    """Return the data of a JSON text. Raises ValueError or RecursionError."""
    found: object = json.loads(data.decode("utf-8"))
    return found
