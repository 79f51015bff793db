"""Helpers of all REST views: one format of errors, and Django's permissions."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework import serializers, views
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from hub.common.errors import TooManyRequests, UserError
from hub.common.wording import unknown_key
from sandbox.errors import SandboxUnavailable


def needs(permission: str) -> type[BasePermission]:
    """Return a permission class: reading requires sign-in, everything else Django's *permission*."""

    class Needs(BasePermission):
        message = f"Your account lacks the permission {permission}; a group that has it is given by an administrator."

        def has_permission(self, request: Request, view: Any) -> bool:
            user = request.user
            if not user or not user.is_authenticated:
                return False
            return request.method in ("GET", "HEAD", "OPTIONS") or user.has_perm(permission)

    return Needs


# ---- bodies ----------------------------------------------------------------------------------------------------------


class StrictSerializer(serializers.Serializer[Any]):
    """A request body whose unknown keys are errors, so that a misspelt key is not ignored."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = [name for name, field in self.fields.items() if not field.read_only]
            unknown = sorted(str(key) for key in data if key not in known)
            if unknown:
                raise ValidationError({key: unknown_key(key, known) for key in unknown})
        return super().to_internal_value(data)


# ---- errors ----------------------------------------------------------------------------------------------------------


class ErrorItem(serializers.Serializer[Any]):
    """One error: its place, as a key path or file and line, and a sentence."""

    path = serializers.CharField(allow_blank=True)
    message = serializers.CharField()


class ErrorBody(serializers.Serializer[Any]):
    """Body of every response with a status of 400 or above."""

    message = serializers.CharField()
    errors = ErrorItem(many=True)  # type: ignore[assignment]


class Refused(APIException):
    """A request that is rejected with a list of errors."""

    status_code: int

    def __init__(self, message: str, errors: list[dict[str, Any]] | None = None, *, code: int = 400) -> None:
        super().__init__(message)
        self.status_code = code
        self.message = message
        self.errors = errors or []


def error_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return the response for *error* as `{"message", "errors": [{"path", "message"}]}`; DRF's exception handler."""
    if isinstance(error, RequestDataTooBig):
        message = f"The body is larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes."
        return Response({"message": message, "errors": []}, status=413)
    if isinstance(error, UserError):
        views.set_rollback()
        headers = {"Retry-After": str(error.retry_after)} if isinstance(error, TooManyRequests) else None
        body = {"message": error.headline(), "errors": error.errors()}
        return Response(body, status=error.status_code, headers=headers)
    if isinstance(error, SandboxUnavailable):
        views.set_rollback()
        return Response({"message": str(error), "errors": []}, status=503)
    if isinstance(error, RecursionError):  # JSON inside a field of a form
        views.set_rollback()
        return Response({"message": "The request nests too deeply.", "errors": []}, status=400)
    response = views.exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, Refused):
        response.data = {"message": error.message, "errors": error.errors}
    elif isinstance(error, ValidationError):
        errors = list(_flat("", error.detail))
        response.data = {"message": "The request is wrong; nothing was changed.", "errors": errors}
    else:
        response.data = {"message": _message(error, response), "errors": []}
    return response


def _message(error: Exception, response: Response) -> str:
    if isinstance(error, Http404):
        return str(error) or "There is nothing at this address."
    if isinstance(error, PermissionDenied) and str(error):
        return str(error)
    return str(response.data.get("detail", "")) if isinstance(response.data, dict) else ""


def _flat(path: str, detail: Any) -> Any:
    if isinstance(detail, dict):
        for key, value in detail.items():
            yield from _flat(f"{path}.{key}" if path else str(key), value)
    elif isinstance(detail, list):
        for value in detail:
            yield from _flat(path, value)
    else:
        yield {"path": "" if path == "non_field_errors" else path, "message": str(detail)}
