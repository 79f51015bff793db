"""JSON without whitespace, and without the set-up that `json` makes anew for each text: in a fresh fork that costs more
than the text itself.
"""

import json
from json.encoder import c_make_encoder, encode_basestring_ascii  # type: ignore[attr-defined]
from typing import Any

_scan: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_encoder = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_chunks: Any = (  # the implementation in C; other interpreters than CPython have none
    c_make_encoder(None, _encoder.default, encode_basestring_ascii, None, ":", ",", False, False, True)
    if c_make_encoder is not None
    else None
)


def dumps(data: Any) -> bytes:
    """Data as JSON. Raises TypeError, ValueError or RecursionError for what JSON cannot hold."""
    text = "".join(_chunks(data, 0)) if _chunks is not None else _encoder.encode(data)
    return text.encode("ascii")


def loads(data: bytes) -> Any:
    """JSON that begins and ends without whitespace as data. Raises ValueError or RecursionError."""
    text = data.decode("utf-8")
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("no JSON") from None
    if end != len(text):
        raise ValueError("more than one JSON value")
    return value
