"""Time that a request waits for its answer: the parameter `wait`, or the header `Prefer` of RFC 7240."""

import math

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

MAX_WAIT_S = 30.0
_DEFAULT_WAIT_S = 5.0


def requested_wait(request: Request) -> float | None:
    """Return the seconds after which the client wants an answer with 202, or None if it waits until the end.

    The parameter `wait` takes precedence over the header `Prefer: respond-async, wait=SECONDS`. Raises ValidationError.
    """
    wait = parse_wait(request)
    if wait is not None:
        return wait
    preferences = _preferences(request.headers.get("Prefer", ""))
    if "respond-async" not in preferences:
        return None
    seconds = preferences.get("wait", "")
    return min(float(seconds), MAX_WAIT_S) if seconds.isascii() and seconds.isdigit() else _DEFAULT_WAIT_S


def parse_wait(request: Request) -> float | None:
    """Return the parameter `wait` in seconds, None without it. Raises ValidationError."""
    given = request.query_params.get("wait")
    if given is None:
        return None
    try:
        wait = float(given)
    except ValueError:
        wait = math.nan
    if not 0 <= wait <= MAX_WAIT_S:
        raise ValidationError({"wait": f"It must be a number of seconds from 0 to {MAX_WAIT_S:g}."})
    return wait


def _preferences(header: str) -> dict[str, str]:
    """Return the preferences of a header by name, without their parameters; the first of each name counts."""
    found: dict[str, str] = {}
    for item in header.split(","):
        name, _, value = item.partition(";")[0].partition("=")
        found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found
