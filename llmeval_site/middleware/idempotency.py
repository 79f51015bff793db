"""`Idempotency-Key` on a POST under /api/: the same key again gives the first answer again, and does nothing anew.

A client that lost the answer to a request (a time-out, a dropped connection) can therefore simply repeat it. Only
answers of success are kept, for a day; after a refusal the same key may be used for the mended request.
"""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import cast

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.settings import api_settings

from llmeval_site.models import KeptAnswer

KEPT = timedelta(hours=24)
ABANDONED = timedelta(minutes=10)  # a request that is still unanswered was lost with its process
MAX_KEY = 255
MAX_KEPT = 1024 * 1024  # bytes of an answer


class IdempotencyMiddleware:
    """Answers a repeated POST from what is kept."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        key = request.headers.get("Idempotency-Key")
        if not key or request.method != "POST" or not request.path_info.startswith("/api/"):
            return self._get_response(request)
        if len(key) > MAX_KEY or not key.isprintable():
            return _refusal(400, f"An Idempotency-Key has at most {MAX_KEY} printable characters.")
        user = _user(request)
        if user is None:
            return self._get_response(request)  # which refuses it
        digest = _digest(request)
        kept = _claim(user, key, digest)
        if isinstance(kept, HttpResponse):
            return kept
        try:
            response = self._get_response(request)
        except BaseException:
            kept.delete()
            raise
        _keep(kept, response)
        return response


def _user(request: HttpRequest) -> User | None:
    """Who asks, by the ways in which REST signs people in; None where that fails."""
    ways = [way() for way in cast("list[type[BaseAuthentication]]", api_settings.DEFAULT_AUTHENTICATION_CLASSES)]
    try:
        user = Request(request, authenticators=ways).user
    except (APIException, PermissionDenied):
        return None
    return user if user.is_authenticated else None


def _digest(request: HttpRequest) -> str:
    """What the key stands for. Uploads count by their size, for their body is read but once, as a stream."""
    digest = hashlib.sha256(request.get_full_path().encode())
    # Two tokens of a user may differ in what they are allowed to do.
    digest.update(request.headers.get("Authorization", "").encode())
    if request.content_type in ("application/json", "application/yaml", "text/plain", ""):
        try:
            digest.update(request.body)
        except RequestDataTooBig:
            digest.update(b"large")
    else:
        digest.update(request.headers.get("Content-Length", "").encode())
    return digest.hexdigest()


def _claim(user: User, key: str, digest: str) -> KeptAnswer | HttpResponse:
    """The row that this request now holds, or the answer that it gets instead."""
    now = timezone.now()
    KeptAnswer.objects.filter(created_at__lt=now - KEPT).delete()
    KeptAnswer.objects.filter(status=None, created_at__lt=now - ABANDONED).delete()
    try:
        with transaction.atomic():
            return KeptAnswer.objects.create(user=user, key=key, request_digest=digest)
    except IntegrityError:
        kept = KeptAnswer.objects.filter(user=user, key=key).first()
    if kept is None or kept.status is None:
        return _refusal(409, "The first request with this Idempotency-Key is still being answered; ask again shortly.")
    if kept.request_digest != digest:
        return _refusal(422, "This Idempotency-Key was used for another request; draw a new one for each request.")
    return HttpResponse(
        bytes(kept.body),
        status=kept.status,
        content_type=kept.content_type,
        headers={"Idempotency-Replayed": "true"},
    )


def _keep(kept: KeptAnswer, response: HttpResponseBase) -> None:
    body = b"" if response.streaming else getattr(response, "content", b"")
    if not 200 <= response.status_code < 300 or response.streaming or len(body) > MAX_KEPT:
        kept.delete()
        return
    kept.status, kept.content_type, kept.body = response.status_code, response.headers.get("Content-Type", ""), body
    kept.save(update_fields=["status", "content_type", "body"])


def _refusal(status: int, message: str) -> JsonResponse:
    return JsonResponse({"message": message, "errors": []}, status=status)
