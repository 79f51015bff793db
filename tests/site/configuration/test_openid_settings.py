"""Settings of sign-in with an OpenID provider."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from llmeval_site.configuration.openid import OpenIDSettings, parse_openid_settings

COMPLETE: dict[str, Any] = {
    "issuer": "https://id.example.org",
    "client_id": "llm-eval",
    "client_secret": "secret",
    "label": "Example ID",
    "scopes": ("email",),
    "algorithm": "RS256",
    "endpoints": {"token_endpoint": ""},
    "groups_claim": "groups",
    "mail_domains": ("@Example.org",),
    "creates_users": False,
    "session_hours": 12,
}


def parse(*, client_secret_file: str = "", groups: list[str] | None = None, **changes: object) -> OpenIDSettings | None:
    return parse_openid_settings(
        OpenIDSettings(**(COMPLETE | changes)),
        client_secret_file=client_secret_file,
        groups=["eval = all=Reviewer"] if groups is None else groups,
    )


def test_complete_settings() -> None:
    parsed = parse()
    assert parsed is not None
    assert parsed.scopes == ("openid", "email") and parsed.mail_domains == ("example.org",)
    assert parsed.groups == {"eval = all": "Reviewer"} and parsed.endpoints == {}
    assert "secret'" not in repr(parsed)


def test_no_issuer_turns_it_off() -> None:
    assert parse(issuer="", client_id="") is None


def test_secret_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("from a file\n")
    parsed = parse(client_secret="", client_secret_file=str(path))
    assert parsed is not None and parsed.client_secret == "from a file"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"issuer": ""}, "LLMEVAL_OIDC_CLIENT_ID is set, but LLMEVAL_OIDC_ISSUER is not"),
        ({"issuer": "http://id.example.org"}, "LLMEVAL_OIDC_ISSUER='http://id.example.org' must begin with https://"),
        ({"issuer": "id.example.org"}, "must begin with https://"),
        ({"issuer": "https://[bad"}, "must begin with https://"),
        ({"endpoints": {"jwks_uri": "http://a.example"}}, "LLMEVAL_OIDC_JWKS_ENDPOINT='http://a.example' must"),
        ({"client_id": ""}, "LLMEVAL_OIDC_CLIENT_ID: set the id"),
        ({"client_secret": ""}, "LLMEVAL_OIDC_CLIENT_SECRET: set the secret"),
        ({"client_secret_file": "/secret"}, "not both"),
        ({"client_secret": "", "client_secret_file": "/does/not/exist"}, "/does/not/exist cannot be read: No such"),
        ({"groups": ["Reviewer"]}, "'Reviewer' must be GROUP=LOCAL GROUP"),
    ],
)
def test_error_names_the_variable(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=message.replace("[", r"\[").replace("(", r"\(")):
        parse(**changes)


def manage(tmp_path: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    code = "import django; django.setup(); from django.conf import settings as s; print(s.AUTHENTICATION_BACKENDS)"
    environment = {**os.environ, "LLMEVAL_VAR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "llmeval_site.settings"}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment | variables, capture_output=True, text=True, check=False
    )


@pytest.mark.exhaustive
def test_passwords_can_only_be_turned_off_with_a_provider(tmp_path: Path) -> None:
    refused = manage(tmp_path, {"LLMEVAL_PASSWORDS": "0"})
    assert refused.returncode != 0 and "LLMEVAL_PASSWORDS=0 needs another way to sign in" in refused.stderr
    provider = {"LLMEVAL_OIDC_ISSUER": "https://id.example.org", "LLMEVAL_OIDC_CLIENT_ID": "a"}
    provider |= {"LLMEVAL_OIDC_CLIENT_SECRET": "b"}
    both = manage(tmp_path, provider).stdout
    assert "ModelBackend" in both and "OpenIDBackend" in both
    alone = manage(tmp_path, {**provider, "LLMEVAL_PASSWORDS": "0"}).stdout
    assert "ModelBackend" not in alone and "OpenIDBackend" in alone
