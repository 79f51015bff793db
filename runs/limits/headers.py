"""Pauses that an endpoint requests from its clients in the headers of a response."""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_LONGEST_S = 60.0  # seconds; if an endpoint asks for a longer pause, the next request is sent after this time
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def pause_of(status: int, headers: Mapping[str, str]) -> float:
    """Return the seconds for which no request should be sent; 0.0 if the response does not ask for a pause.

    A response asks for one by Retry-After with the status 429 or 503, or by x-ratelimit-remaining-* with the value 0.
    """
    pause = retry_after(headers) if status in (429, 503) else 0.0
    for kind in ("requests", "tokens"):
        if headers.get(f"x-ratelimit-remaining-{kind}", "").strip() == "0":
            pause = max(pause, _duration(headers.get(f"x-ratelimit-reset-{kind}", "")))
    return min(pause, _LONGEST_S)


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds after which a request may be repeated; 0.0 if the headers of its response do not say it."""
    milliseconds = headers.get("retry-after-ms", "")
    return _number(milliseconds) / 1000 if milliseconds else _retry_after(headers.get("retry-after", ""))


def _retry_after(value: str) -> float:
    if not value or value[0].isdigit():
        return _number(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0


def _duration(value: str) -> float:
    """Return the seconds of a duration such as 6m0s, 20ms or 1.5."""
    parts = _PART.findall(value)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts) if parts else _number(value)


def _number(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        return 0.0
    return number if 0 <= number < 1e9 else 0.0
