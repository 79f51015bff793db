"""Bodies of errors in REST. Imports nothing of REST framework: authentication and error pages use it, too."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

PROBLEM = "application/problem+json"  # RFC 9457

# The code of an error that has none of its own.
_CODES = {
    400: "invalid",
    401: "not_authenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    409: "conflict",
    410: "expired",
    412: "changed",
    413: "too_large",
    415: "unsupported_type",
    422: "key_reused",
    429: "limit",
    500: "server_error",
    503: "unavailable",
}


def error_body(message: str, status: int, errors: Sequence[Mapping[str, object]] = ()) -> dict[str, object]:
    """Return the body of a response with *status* 400 or above: a problem of RFC 9457 with the product's own keys."""
    return {
        "message": message,
        "code": _CODES.get(status, "error"),
        "errors": list(errors),
        "type": "about:blank",  # the status and `code` say what kind of problem it is
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": message,
    }


def error_content_type(accept: str) -> str:
    """Return the content type of an error: that of RFC 9457 for clients that name it in *accept*, otherwise JSON."""
    return PROBLEM if PROBLEM in accept.lower() else "application/json"
