"""Who signs in from where, and what they are told after too many failures; named in settings for django-axes."""

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle


def client_address(request: HttpRequest) -> str:
    """The client's address. Behind the TLS proxy it is what that proxy added, the last one of X-Forwarded-For."""
    forwarded = request.headers.get("X-Forwarded-For", "") if settings.HTTPS else ""
    return forwarded.rpartition(",")[2].strip() or request.META.get("REMOTE_ADDR", "")


@login_not_required
def locked_out(request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
    """The page of a sign-in that is refused for a while."""
    context = {
        "status": 429,
        "title": "Too many failures to sign in",
        "text": "Sign-in is closed for this name from your address. Try again in 15 minutes.",
    }
    return render(request, "site/error.html", context, status=429)


class FailedTokenThrottle(SimpleRateThrottle):
    """Limits how often one address may send tokens that are not valid."""

    scope = "failed_token"

    def get_cache_key(self, request: Request, view: Any) -> str:
        return self.cache_format % {"scope": self.scope, "ident": client_address(request._request)}
