"""JSON without whitespace."""

import json

_decoder = json.JSONDecoder()
_encoder = json.JSONEncoder(separators=(",", ":"), check_circular=False)


def dumps(data: object) -> bytes:
    """Return data as JSON. Raises TypeError, ValueError or RecursionError if JSON cannot represent it."""
    return _encoder.encode(data).encode("ascii")


def loads(data: bytes) -> object:
    """Return the data of a JSON text. Raises ValueError or RecursionError."""
    text = data.decode("utf-8")
    found: object
    found, end = _decoder.raw_decode(text)
    if end != len(text):
        raise ValueError(f"characters after the JSON text, from {end}")
    return found
