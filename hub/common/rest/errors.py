"""The one format of errors in REST: `{"message", "code", "errors": [{"path", "message"}]}` and the keys of RFC 9457."""

from collections.abc import Iterator, Mapping

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework import serializers, views
from rest_framework.exceptions import UnsupportedMediaType, ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from hub.common.errors import UserError
from hub.common.rest.error_bodies import error_body, error_content_type
from sandbox.errors import SandboxUnavailable


class ErrorItem(serializers.Serializer[object]):
    """One error: its place, as a key path or file and line, and a sentence."""

    path = serializers.CharField(allow_blank=True)
    message = serializers.CharField()


class ErrorBody(serializers.Serializer[object]):
    """Body of every response with a status of 400 or above."""

    message = serializers.CharField()
    code = serializers.CharField()
    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = ErrorItem(many=True)  # type: ignore[assignment]


def error_response(error: Exception, context: Mapping[str, object]) -> Response | None:
    """Return the response for *error*, or None for a bug; Django REST framework's exception handler."""
    response = _error_response(error, context)
    request = context.get("request")
    if response is not None and isinstance(request, Request):
        request.accepted_renderer = JSONRenderer()  # that of the view may write YAML or HTML
        request.accepted_media_type = JSONRenderer.media_type
        response.content_type = error_content_type(request.headers.get("Accept", ""))
    return response


def _error_response(error: Exception, context: Mapping[str, object]) -> Response | None:
    if isinstance(error, UserError):
        headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else None
        own = {"code": error.code} if error.code else {}
        details = {**own, **error.details()}
        reported = _response(error.headline(), error.status_code, error.errors(), headers, details)
        reported.stored = error.stored  # type: ignore[attr-defined]  # for Idempotency-Key
        return reported
    if isinstance(error, RequestDataTooBig):
        return _response(f"The body is larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes.", 413)
    if isinstance(error, SandboxUnavailable):
        return _response(str(error), 503)
    if isinstance(error, RecursionError):  # JSON inside a field of a form
        return _response("The request nests too deeply.", 400)
    response = views.exception_handler(error, dict(context))
    if response is None:
        return None
    if isinstance(error, ValidationError):
        errors = list(_flatten("", error.detail))
        request = context.get("request")
        reading = isinstance(request, Request) and request.method in SAFE_METHODS
        headline = "The request is invalid." if reading else "The request is invalid; nothing was changed."
        response.data = error_body(headline, response.status_code, errors)
    else:
        response.data = error_body(_message(error, response, context), response.status_code)
    return response


def _response(
    message: str,
    status: int,
    errors: list[dict[str, object]] | None = None,
    headers: dict[str, str] | None = None,
    details: Mapping[str, object] | None = None,
) -> Response:
    views.set_rollback()
    return Response({**error_body(message, status, errors or []), **(details or {})}, status=status, headers=headers)


def _message(error: Exception, response: Response, context: Mapping[str, object]) -> str:
    if isinstance(error, Http404):
        return str(error) or "There is nothing at this address."
    if isinstance(error, PermissionDenied) and str(error):
        return str(error)
    if isinstance(error, UnsupportedMediaType):
        return f"{error.detail} Send the body with another Content-Type, {' or '.join(_media_types(context))}."
    return str(response.data.get("detail", "")) if isinstance(response.data, dict) else ""


def _media_types(context: Mapping[str, object]) -> list[str]:
    """Return the media types that the view of *context* reads."""
    view = context["view"]
    assert isinstance(view, APIView)
    return [str(parser.media_type) for parser in view.get_parsers()]


def _flatten(path: str, detail: object) -> Iterator[dict[str, str]]:
    """Yield the nested *detail* of a ValidationError as one item for each message."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            if key == api_settings.NON_FIELD_ERRORS_KEY:  # of the object itself
                yield from _flatten(path, value)
            elif isinstance(key, int):
                yield from _flatten(f"{path}[{key}]", value)
            else:
                yield from _flatten(f"{path}.{key}" if path else str(key), value)
    elif isinstance(detail, list):
        for value in detail:
            yield from _flatten(path, value)
    else:
        yield {"path": path, "message": str(detail)}
