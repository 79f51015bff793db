"""Support for the `Idempotency-Key` header on POST requests under /api/.

If a request is repeated with the same key, the first response is sent again and nothing is executed. A client that
lost a response (because of a time-out or a dropped connection) can therefore safely repeat the request. Only
successful responses are stored, for a day. After an error the same key can be used for the corrected request. A
response that its user may no longer see is not sent again.
"""

import gzip
import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import cast

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.settings import api_settings

from llmeval_site.middleware.replay_rights import find_lost_right
from llmeval_site.models import IdempotencyRecord
from llmeval_site.pages.errors import rest_error

RETENTION = timedelta(hours=24)
ABANDONED_AFTER = timedelta(minutes=10)  # a request without a response after this long was lost with its process
MAX_KEY_LENGTH = 255
_DIGESTED = {"application/json", "application/yaml", "application/x-www-form-urlencoded", "text/plain", ""}  # bodies
_REPLAYED = ("Location", "Preference-Applied", "Retry-After")  # headers that are sent again, besides Content-Type
MAX_BODY_SIZE = 1024 * 1024  # bytes when compressed; larger responses are not stored


class IdempotencyMiddleware:
    """Middleware that replays the stored response to a repeated POST."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        key = request.headers.get("Idempotency-Key")
        if key is None or request.method != "POST" or not request.path_info.startswith("/api/"):
            return self._get_response(request)
        if not 1 <= len(key.strip()) <= MAX_KEY_LENGTH or not key.isprintable():
            return rest_error(request, 400, f"An Idempotency-Key has 1 to {MAX_KEY_LENGTH} printable characters.")
        user = _authenticated_user(request)
        if user is None:
            return self._get_response(request)  # the view responds with 401
        record = _create_record(request, user, key)
        if isinstance(record, HttpResponse):
            return record
        try:
            response = self._get_response(request)
        except BaseException:
            record.delete()
            raise
        _store_response(record, response)
        return response


def _authenticated_user(request: HttpRequest) -> User | None:
    """Return the user of *request* according to the authentication classes of REST, or None."""
    classes = cast("list[type[BaseAuthentication]]", api_settings.DEFAULT_AUTHENTICATION_CLASSES)
    signed_in = request.user
    try:
        user = Request(request, authenticators=[authentication() for authentication in classes]).user
    except (APIException, PermissionDenied):
        request.user = signed_in  # the failure replaced it, and the view would respond with 401
        return None
    return user if user.is_authenticated else None


def _request_digest(request: HttpRequest) -> str:
    """Return a digest of URL, token and body. Of uploads it covers only the size: their body can be read only once."""
    digest = hashlib.sha256(request.get_full_path().encode())
    # Two tokens of one user may have different scopes.
    digest.update(request.headers.get("Authorization", "").encode())
    if request.content_type in _DIGESTED:
        try:
            digest.update(request.body)
        except RequestDataTooBig:
            digest.update(b"large")
    else:
        digest.update(request.headers.get("Content-Length", "").encode())
    return digest.hexdigest()


def _create_record(request: HttpRequest, user: User, key: str) -> IdempotencyRecord | HttpResponse:
    """Return a new record for this request, or the response to send if the key was used before."""
    now, digest = timezone.now(), _request_digest(request)
    IdempotencyRecord.objects.filter(created_at__lt=now - RETENTION).delete()
    IdempotencyRecord.objects.filter(status=None, created_at__lt=now - ABANDONED_AFTER).delete()
    try:
        with transaction.atomic():
            return IdempotencyRecord.objects.create(user=user, key=key, request_digest=digest)
    except IntegrityError:
        record = IdempotencyRecord.objects.filter(user=user, key=key).first()
    if record is None or record.status is None:
        minutes = ABANDONED_AFTER // timedelta(minutes=1)
        response = rest_error(
            request,
            409,
            "The first request with this Idempotency-Key is still being processed. Try again shortly. If the server "
            f"was killed meanwhile, the key can be used again {minutes} minutes after the first request.",
        )
        response.headers["Retry-After"] = "1"
        return response
    if record.request_digest != digest:
        return rest_error(
            request, 422, "This Idempotency-Key was used for another request. Generate a new key for each request."
        )
    stored = bytes(record.body)
    body = gzip.decompress(stored) if record.compressed else stored
    refusal = find_lost_right(request, user, location=record.headers.get("Location", ""), body=body)
    if refusal is not None:
        return rest_error(request, *refusal)
    return HttpResponse(
        body,
        status=record.status,
        content_type=record.content_type,
        headers={**record.headers, "Idempotency-Replayed": "true"},
    )


def _store_response(record: IdempotencyRecord, response: HttpResponseBase) -> None:
    """Store the response to a request that had its effect; delete the record of any other, and of a large response."""
    effective = 200 <= response.status_code < 300 or getattr(response, "stored", False)
    # The groups of a batch repeat the same messages many times, so they are small when compressed.
    body = gzip.compress(getattr(response, "content", b""), 1) if effective and not response.streaming else None
    if body is None or len(body) > MAX_BODY_SIZE:
        record.delete()
        return
    # Not `save`: after ABANDONED_AFTER another request may have deleted the record.
    IdempotencyRecord.objects.filter(pk=record.pk).update(
        status=response.status_code,
        content_type=response.headers.get("Content-Type", ""),
        headers={name: response.headers[name] for name in _REPLAYED if name in response.headers},
        body=body,
        compressed=True,
    )
