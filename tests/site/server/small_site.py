"""A WSGI application of one line. Each process of its server writes a line when it is loaded."""

import sys
from collections.abc import Callable, Iterable

print("loaded", file=sys.stderr, flush=True)


def application(environ: object, start_response: Callable[[str, list[tuple[str, str]]], object]) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"one line"]
