"""Settings of sign-in with an OpenID provider, parsed and checked. Error messages name the variable."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512")
_ENDPOINT_VARIABLES = {
    "authorization_endpoint": "LLMEVAL_OIDC_AUTHORIZATION_ENDPOINT",
    "token_endpoint": "LLMEVAL_OIDC_TOKEN_ENDPOINT",
    "jwks_uri": "LLMEVAL_OIDC_JWKS_ENDPOINT",
    "userinfo_endpoint": "LLMEVAL_OIDC_USERINFO_ENDPOINT",
}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIDSettings:
    """An OpenID provider, and which of its users may sign in.

    endpoints: addresses by their name in the provider's metadata; those that are missing are read from the issuer's
    discovery document. groups: names of groups at the provider, each with the local group that it gives.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    label: str = "OpenID"
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    algorithm: str = "RS256"
    endpoints: Mapping[str, str] = field(default_factory=dict)
    groups_claim: str = "groups"
    groups: Mapping[str, str] = field(default_factory=dict)
    mail_domains: tuple[str, ...] = ()
    creates_users: bool = False
    session_hours: int = 12


def parse_openid_settings(
    given: OpenIDSettings, *, client_secret_file: str, groups: list[str]
) -> OpenIDSettings | None:
    """Return the settings, or None without an issuer. Raises ImproperlyConfigured.

    given: settings as the variables have them. client_secret_file: a file with the secret, instead of that of *given*.
    groups: items GROUP=LOCAL GROUP.
    """
    if not given.issuer:
        if given.client_id:
            raise ImproperlyConfigured("LLMEVAL_OIDC_CLIENT_ID is set, but LLMEVAL_OIDC_ISSUER is not.")
        return None
    _check_address("LLMEVAL_OIDC_ISSUER", given.issuer)
    if not given.client_id:
        raise ImproperlyConfigured("LLMEVAL_OIDC_CLIENT_ID: set the id that the provider gave to this site.")
    endpoints = {name: address for name, address in given.endpoints.items() if address}
    for name, address in endpoints.items():
        _check_address(_ENDPOINT_VARIABLES[name], address)
    return replace(
        given,
        client_secret=_read_secret(given.client_secret, client_secret_file),
        scopes=tuple(dict.fromkeys(["openid", *given.scopes])),
        endpoints=endpoints,
        groups=_parse_groups(groups),
        mail_domains=tuple(domain.lower().removeprefix("@") for domain in given.mail_domains),
    )


def is_protected(address: str) -> bool:
    """Return whether *address* is https://, or http:// on this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))


def _check_address(name: str, address: str) -> None:
    if not is_protected(address):
        raise ImproperlyConfigured(
            f"{name}={address!r} must begin with https:// and name a host. http:// is accepted for localhost only."
        )


def _read_secret(secret: str, path: str) -> str:
    if secret and path:
        raise ImproperlyConfigured("Set LLMEVAL_OIDC_CLIENT_SECRET or LLMEVAL_OIDC_CLIENT_SECRET_FILE, not both.")
    if path:
        try:
            secret = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ImproperlyConfigured(f"LLMEVAL_OIDC_CLIENT_SECRET_FILE: {path} cannot be read: {reason}.") from None
    if not secret:
        raise ImproperlyConfigured(
            "LLMEVAL_OIDC_CLIENT_SECRET: set the secret that the provider gave to this site, or name a file "
            "that contains it in LLMEVAL_OIDC_CLIENT_SECRET_FILE."
        )
    return secret


def _parse_groups(items: list[str]) -> dict[str, str]:
    groups = {}
    for item in items:
        theirs, separator, ours = (part.strip() for part in item.rpartition("="))
        if not (theirs and separator and ours):
            raise ImproperlyConfigured(
                f"LLMEVAL_OIDC_GROUPS: {item!r} must be GROUP=LOCAL GROUP, such as eval-reviewers=Reviewer."
            )
        groups[theirs] = ours
    return groups
