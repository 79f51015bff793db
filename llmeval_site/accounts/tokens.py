"""REST tokens: creation, revocation and authentication."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone
from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.request import Request

from llmeval_site.accounts.sign_in import FailedTokenThrottle
from llmeval_site.models import ApiToken

_KEY_PREFIX = "lle_"
_LAST_USE_INTERVAL = timedelta(minutes=1)  # `last_used_at` is updated at most this often


def create_token(
    *, user: User, scopes: Iterable[str], name: str = "", lifetime: timedelta | None = None
) -> tuple[ApiToken, str]:
    """Store a token of *user* and return it with its key, which is not stored. It never expires without *lifetime*."""
    key = _KEY_PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=key[:12],
        digest=key_digest(key),
        scopes=[scope for scope in ApiToken.Scope.values if scope in set(scopes)],
        expires_at=None if lifetime is None else timezone.now() + lifetime,
    )
    return token, key


def revoke_token(token: ApiToken) -> None:
    """Revoke *token*. If it is revoked already, the time of its revocation does not change."""
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())


def key_digest(key: str) -> str:
    """Return the digest that is stored for *key*. Keys have 256 random bits, so SHA-256 without a salt is enough."""
    return hashlib.sha256(key.encode()).hexdigest()


class TokenAuthentication(authentication.TokenAuthentication):
    """Authentication by `Authorization: Token <key>`, limited to the scopes of the token.

    A view declares the scope it requires as `read_scope` (for safe methods; "read" by default) and `write_scope` (for
    all other methods; without one, the view rejects tokens).
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the user and the token, or None if the request has no token."""
        try:
            result = super().authenticate(request)
        except AuthenticationFailed:
            throttle = FailedTokenThrottle()
            if not throttle.allow_request(request, None):  # type: ignore[arg-type]
                raise Throttled(throttle.wait()) from None
            raise
        if result is None:
            if request.headers.get("Authorization", "").lower().startswith("bearer "):
                raise AuthenticationFailed("Send the token as `Authorization: Token KEY`, not as `Bearer KEY`.")
            return None
        user, token = result
        view = request.parser_context.get("view")
        if view is not None and request.method in view.allowed_methods:  # the view answers others with 405
            safe = request.method in ("GET", "HEAD", "OPTIONS")
            needed = getattr(view, "read_scope", "read") if safe else getattr(view, "write_scope", None)
            if needed not in token.scopes:
                scopes = ", ".join(token.scopes) or "none"
                raise PermissionDenied(f"The token lacks the scope {needed!r}; it has {scopes}.")
        return user, token

    def authenticate_credentials(self, key: str) -> tuple[User, ApiToken]:
        """Return the user and the token of *key*, or raise AuthenticationFailed."""
        try:
            token = ApiToken.objects.select_related("user").get(digest=key_digest(key), user__is_active=True)
        except ApiToken.DoesNotExist:
            raise AuthenticationFailed("The token is not valid.") from None
        if token.state != "active":
            raise AuthenticationFailed(f"The token {token.prefix}... is {token.state}; create a new one.")
        now = timezone.now()
        if token.last_used_at is None or token.last_used_at < now - _LAST_USE_INTERVAL:
            outdated = Q(last_used_at=None) | Q(last_used_at__lt=now - _LAST_USE_INTERVAL)
            ApiToken.objects.filter(outdated, pk=token.pk).update(last_used_at=now)
        return token.user, token
