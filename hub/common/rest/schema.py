"""The OpenAPI schema: errors that any request can get, and `Location`. Named in settings."""

import threading

from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request

from hub.common.rest.error_bodies import PROBLEM

_METHODS = ("get", "post", "put", "patch", "delete")
_SCHEMA = {"schema": {"$ref": "#/components/schemas/ErrorBody"}}
_BODY = {"application/json": _SCHEMA, PROBLEM: _SCHEMA}
_ALWAYS = {
    "400": "The request is invalid; `errors` lists each problem.",
    "401": "No valid token or session.",
    "403": "The account or the token lacks a permission.",
    "404": "There is nothing at this address, or you may not see it.",
    "405": "The address does not have this method.",
    "406": "`Accept` allows no JSON.",
    "429": "Too many requests; `Retry-After` has the seconds to wait.",
    "500": "An error of the server. Its log has the details under the request id.",
    "503": "A part of the product is not available.",
}
_LOCATION = {"schema": {"type": "string", "format": "uri-reference"}, "description": "Address of the result."}
_WITH_BODY = {
    "409": "The present state does not allow it, or the first request with this `Idempotency-Key` is in progress.",
    "413": "The body is too large.",
    "415": "The address does not accept a body of this type.",
    "422": "The `Idempotency-Key` was used for another request.",
}

_lock = threading.Lock()


class Generator(SchemaGenerator):
    """Generator that one thread of a process uses at a time: two threads cannot load its extensions at once."""

    def get_schema(self, request: Request | None = None, public: bool = False) -> dict[str, object]:
        """Return the schema as a mapping."""
        with _lock:
            schema: dict[str, object] = super().get_schema(request, public)  # type: ignore[no-untyped-call]
            return schema


def document_errors(
    result: dict[str, object], generator: SchemaGenerator, request: Request | None, public: bool
) -> dict[str, object]:
    """Add the responses that every operation can have, unless it describes them itself, and the header `Location`.

    A hook of drf-spectacular.
    """
    paths = result["paths"]
    assert isinstance(paths, dict)
    for operations in paths.values():
        assert isinstance(operations, dict)
        for method, operation in operations.items():
            if method not in _METHODS:
                continue
            assert isinstance(operation, dict)
            responses = operation["responses"]
            assert isinstance(responses, dict)
            for status in ("201", "202"):
                if isinstance(answer := responses.get(status), dict):
                    answer["headers"] = {"Location": _LOCATION}
            errors = _ALWAYS if method == "get" else {**_ALWAYS, **_WITH_BODY}
            for status, description in errors.items():
                described = responses.get(status)
                if described is None:
                    responses[status] = {"description": description}
                elif isinstance(described, dict) and not described.get("description"):
                    described["description"] = description
            for status, described in responses.items():
                if status >= "400" and isinstance(described, dict):
                    described["content"] = _BODY
    return result
