"""Limits for each client. The settings of django-axes name two of these functions, which limit failed sign-ins."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from llmeval_site.pages.errors import error_page


def client_address(request: HttpRequest | Request) -> str:
    """Return the client's address: behind the TLS proxy, the last entry of X-Forwarded-For, which the proxy adds."""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "") if settings.HTTPS else ""
    return str(forwarded.rpartition(",")[2].strip() or request.META.get("REMOTE_ADDR", ""))


@login_not_required
def locked_out(request: HttpRequest, *_: object, **__: object) -> HttpResponse:
    """Respond with 429 to a sign-in after too many failures."""
    return error_page(
        request,
        429,
        "Too many failed sign-ins",
        "Sign-in with this name is blocked from your address. Try again in 15 minutes.",
    )


class ClientThrottle(SimpleRateThrottle):
    """Limit for each address of clients. Subclasses set `scope`."""

    def get_cache_key(self, request: Request, view: object) -> str:
        return self.cache_format % {"scope": self.scope, "ident": client_address(request)}


class FailedTokenThrottle(ClientThrottle):
    """Limit on how often one client may send invalid tokens."""

    scope = "failed_token"
