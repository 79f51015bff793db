"""The provider's metadata, and the settings that mozilla-django-oidc reads."""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import requests
from django.conf import settings
from django.core.cache import cache
from django.http import Http404
from mozilla_django_oidc.utils import import_from_settings

from llmeval_site.accounts.openid.errors import ProviderFailed
from llmeval_site.configuration.openid import OpenIDSettings, is_protected

logger = logging.getLogger(__name__)

TIMEOUT_S = 10
_CACHE_S = 3600
_NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass(frozen=True, slots=True)
class ProviderMetadata:
    """Addresses of the provider, by their names in OpenID Connect Discovery. Optional ones may be empty.

    basic_auth: whether the token endpoint wants the client's secret as HTTP Basic authentication.
    """

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    end_session_endpoint: str = ""
    basic_auth: bool = True


def openid_settings() -> OpenIDSettings:
    """Return the settings of the provider. Raises Http404 if there is none."""
    openid: OpenIDSettings | None = settings.OPENID
    if openid is None:
        raise Http404
    return openid


def provider_metadata(openid: OpenIDSettings) -> ProviderMetadata:
    """Return the provider's metadata, read at most once an hour. Raises ProviderFailed."""
    if all(name in openid.endpoints for name in _NEEDED):
        authorization, token, jwks = (openid.endpoints[name] for name in _NEEDED)
        return ProviderMetadata(authorization, token, jwks, openid.endpoints.get("userinfo_endpoint", ""))
    key = f"openid-metadata:{openid.issuer}"
    stored = cache.get(key)
    if stored is None:
        stored = asdict(_read_metadata(_fetch_document(openid), openid))
        cache.set(key, stored, _CACHE_S)
    return ProviderMetadata(**{**stored, **openid.endpoints})


def library_setting(name: str, *default: object) -> object:
    """Return a setting of mozilla-django-oidc. Those that depend on the provider's metadata are set by their users."""
    openid = openid_settings()
    values: dict[str, object] = {
        "OIDC_RP_CLIENT_ID": openid.client_id,
        "OIDC_RP_CLIENT_SECRET": openid.client_secret,
        "OIDC_RP_SIGN_ALGO": openid.algorithm,
        "OIDC_RP_SCOPES": " ".join(openid.scopes),
        "OIDC_USE_PKCE": True,
        "OIDC_TIMEOUT": TIMEOUT_S,
        "OIDC_AUTHENTICATION_CALLBACK_URL": "openid_callback",
    }
    return values[name] if name in values else import_from_settings(name, *default)


def _fetch_document(openid: OpenIDSettings) -> object:
    address = f"{openid.issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        response = requests.get(address, timeout=TIMEOUT_S)
        response.raise_for_status()
        return response.json()
    except requests.RequestException as error:
        logger.warning("OpenID: %s cannot be read: %s", address, error)
        raise ProviderFailed(f"{openid.label} cannot be reached. Try again in a minute.") from None


def _read_metadata(document: object, openid: OpenIDSettings) -> ProviderMetadata:
    """Check the discovery document. Raises ProviderFailed."""
    problem = ""
    given: Mapping[str, object] = document if isinstance(document, dict) else {}
    endpoints = {name: given.get(name) or "" for name in (*_NEEDED, "userinfo_endpoint", "end_session_endpoint")}
    if given.get("issuer") != openid.issuer:
        problem = f"its issuer is {given.get('issuer')!r}; LLMEVAL_OIDC_ISSUER must be exactly this"
    for name, address in endpoints.items():
        if (address or name in _NEEDED) and not (isinstance(address, str) and is_protected(address)):
            problem = problem or f"{name} is {address!r}, which does not begin with https://"
    if problem:
        logger.error("OpenID: the discovery document of %s cannot be used: %s.", openid.issuer, problem)
        raise ProviderFailed(
            f"The settings for {openid.label} do not agree with the provider. An administrator finds the reason in the "
            "server's log."
        )
    methods = given.get("token_endpoint_auth_methods_supported")
    basic = not (isinstance(methods, list) and "client_secret_post" in methods)
    return ProviderMetadata(**{name: str(address) for name, address in endpoints.items()}, basic_auth=basic)
