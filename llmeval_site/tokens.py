"""Tokens for REST: making, revoking, and signing in with them."""

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

from llmeval_site.models import ApiToken
from llmeval_site.sign_in import FailedTokenThrottle

_START = "lle_"
_USE_RECORDED = timedelta(minutes=1)  # how often a token's last use is written


def create_token(
    *, user: User, scopes: Iterable[str], name: str = "", lifetime: timedelta | None = None
) -> tuple[ApiToken, str]:
    """Store a token of *user* and return it with its key, which nothing can tell later. *lifetime* None: for good."""
    key = _START + secrets.token_urlsafe(32)
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
    """End *token* at once; one that was revoked before keeps its time."""
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())


def key_digest(key: str) -> str:
    """SHA-256 is enough, since keys are drawn with 256 bits and cannot be guessed."""
    return hashlib.sha256(key.encode()).hexdigest()


class TokenAuthentication(authentication.TokenAuthentication):
    """Signs in by `Authorization: Token <key>`, for what the token's scopes allow.

    A view names the scope that it needs as `read_scope` (safe methods; by default read) and `write_scope` (all other
    methods; a view without one takes no token for them).
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        try:
            found = super().authenticate(request)
        except AuthenticationFailed:
            throttle = FailedTokenThrottle()
            if not throttle.allow_request(request, None):  # type: ignore[arg-type]
                raise Throttled(throttle.wait()) from None
            raise
        if found is None:
            return None
        user, token = found
        view = request.parser_context.get("view")
        if view is not None:
            safe = request.method in ("GET", "HEAD", "OPTIONS")
            needed = getattr(view, "read_scope", "read") if safe else getattr(view, "write_scope", None)
            if needed not in token.scopes:
                has = ", ".join(token.scopes) or "none"
                raise PermissionDenied(f"The token lacks the scope {needed!r}; it has {has}.")
        return user, token

    def authenticate_credentials(self, key: str) -> tuple[User, ApiToken]:
        token = ApiToken.objects.select_related("user").filter(digest=key_digest(key)).first()
        if token is None or not token.user.is_active:
            raise AuthenticationFailed("The token is not valid.")
        if token.state != "active":
            raise AuthenticationFailed(f"The token {token.prefix}... is {token.state}; make a new one.")
        now = timezone.now()
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _USE_RECORDED)
        if token.last_used_at is None or token.last_used_at < now - _USE_RECORDED:
            ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
        return token.user, token
