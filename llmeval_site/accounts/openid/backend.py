"""The authentication backend: exchanges the provider's code for tokens, checks them and returns the user.

mozilla-django-oidc does the protocol. This module adds checks that the library lacks: issuer, audience and times of the
id token, the same subject in the id token and the user info, and active users. It also adds errors that say what is
wrong.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import jwt
import requests
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest
from jwt.exceptions import InvalidSubjectError
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from llmeval_site.accounts.openid.errors import InvalidAnswer, ProviderFailed
from llmeval_site.accounts.openid.provider import library_setting, openid_settings, provider_metadata
from llmeval_site.accounts.openid.users import is_usable_subject, sign_in_user

logger = logging.getLogger(__name__)

_CLOCK_SKEW_S = 60
_REASONS: list[tuple[type[Exception], str]] = [
    (jwt.ExpiredSignatureError, "it has expired. Check that the clocks of the provider and of this site agree"),
    (jwt.ImmatureSignatureError, "it is not valid yet. Check that the clocks of the provider and of this site agree"),
    (jwt.InvalidIssuerError, "it comes from another issuer"),
    (jwt.InvalidAudienceError, "it is meant for another application"),
    (jwt.MissingRequiredClaimError, "it lacks a required claim"),
    (
        InvalidSubjectError,
        "its subject is empty, longer than 255 characters, or has characters that cannot be stored",
    ),
]


class OpenIDBackend(OIDCAuthenticationBackend):
    """Users of the OpenID provider.

    The instance that checks a session needs no metadata, so a provider that is down signs nobody out.
    """

    def get_settings(self, attr: str, *args: object) -> object:
        """Return a setting of the library."""
        if attr in ("OIDC_OP_TOKEN_ENDPOINT", "OIDC_OP_USER_ENDPOINT", "OIDC_OP_JWKS_ENDPOINT"):
            return ""  # set by `authenticate`
        if attr == "OIDC_TOKEN_USE_BASIC_AUTH":
            return provider_metadata(openid_settings()).basic_auth
        return library_setting(attr, *args)

    def authenticate(self, request: HttpRequest | None, *, nonce: str, code_verifier: str) -> User | None:
        """Return the user to whom the provider's answer belongs. Raises SignInError."""
        metadata = provider_metadata(openid_settings())
        self.OIDC_OP_TOKEN_ENDPOINT = metadata.token_endpoint
        self.OIDC_OP_USER_ENDPOINT = metadata.userinfo_endpoint
        self.OIDC_OP_JWKS_ENDPOINT = metadata.jwks_uri
        user: User | None = super().authenticate(request, nonce=nonce, code_verifier=code_verifier)
        return user

    def get_token(self, payload: dict[str, str]) -> dict[str, object]:
        """Exchange the code for tokens."""
        with _provider_errors():
            return _mapping(super().get_token(payload))

    def verify_token(self, token: str, **kwargs: str) -> dict[str, object]:
        """Verify the id token and its nonce, and return its claims."""
        with _provider_errors():
            return _mapping(super().verify_token(token, **kwargs))

    def get_userinfo(self, access_token: str, id_token: str, payload: Mapping[str, object]) -> dict[str, object]:
        """Return the claims of the user info, or none if the provider has no such endpoint."""
        if not self.OIDC_OP_USER_ENDPOINT:
            return {}
        with _provider_errors():
            claims = _mapping(super().get_userinfo(access_token, id_token, payload))
            if claims.get("sub") != payload["sub"]:
                raise SuspiciousOperation("The user info has another subject than the id token.")
            return claims

    def get_payload_data(self, token: str, key: jwt.PyJWK) -> dict[str, object]:
        """Verify signature, issuer, audience, times and subject of *token*, and return its claims."""
        openid = openid_settings()
        claims: dict[str, object] = jwt.decode(
            token,
            key,
            algorithms=[openid.algorithm],
            issuer=openid.issuer,
            audience=openid.client_id,
            leeway=_CLOCK_SKEW_S,
            options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )
        if claims.get("azp", openid.client_id) != openid.client_id:
            raise jwt.InvalidAudienceError("azp")
        if not is_usable_subject(claims["sub"]):
            raise InvalidSubjectError("sub")
        return claims

    def get_or_create_user(self, access_token: str, id_token: str, payload: Mapping[str, object]) -> User:
        """Return the user of the claims in the id token and the user info. Raises SignInError."""
        userinfo = self.get_userinfo(access_token, id_token, payload)
        return sign_in_user(id_token=payload, userinfo=userinfo, openid=openid_settings())

    def get_user(self, user_id: object) -> User | None:
        """Return an active user. The library returns inactive ones too."""
        user: User | None = ModelBackend.get_user(self, user_id)
        return user


@contextmanager
def _provider_errors() -> Iterator[None]:
    """Turn the exceptions of requests, PyJWT and the library about an answer of the provider into SignInErrors."""
    label = openid_settings().label
    try:
        yield
    except requests.HTTPError as error:
        status = error.response.status_code
        logger.warning("OpenID: %s answered with %s.", error.response.url, status)
        if status >= 500:
            raise ProviderFailed(f"{label} has an error or is busy (status {status}). Try again in a minute.") from None
        raise ProviderFailed(f"{label} refused the request of this site (status {status}). Start again.") from None
    except requests.RequestException as error:
        logger.warning("OpenID: a request to the provider failed: %s", error)
        raise ProviderFailed(f"{label} cannot be reached. Try again in a minute.") from None
    except (SuspiciousOperation, jwt.PyJWTError, LookupError, TypeError) as error:
        reason = next(
            (text for kind, text in _REASONS if isinstance(error, kind)), "its signature or its form is wrong"
        )
        if "Nonce" in str(error):
            reason = "it belongs to another sign-in"
        logger.warning("OpenID: the provider's answer is not valid: %s: %s", type(error).__name__, error)
        raise InvalidAnswer(
            f"The answer of {label} is not valid: {reason}. Nobody was signed in. Start again; if it fails again, "
            "tell an administrator."
        ) from None


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError("The answer is not a JSON object.")
    return value
