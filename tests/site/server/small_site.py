"""A WSGI application of one line. Each process of its server writes a line when it is loaded."""

import os
import sys
from collections.abc import Callable, Iterable

os.write(sys.stderr.fileno(), b"loaded\n")  # at once, so that lines of two processes do not mix


def application(environ: object, start_response: Callable[[str, list[tuple[str, str]]], object]) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"one line"]
