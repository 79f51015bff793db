"""Tokens for REST: scopes, expiry, stored digests, and the command that creates them."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from hub.models import Environment
from llmeval_site.accounts.tokens import create_token, revoke_token
from llmeval_site.models import ApiToken
from tests.commands import run_command
from tests.factories import stored_run, stored_version
from tests.members import member

pytestmark = pytest.mark.django_db
URL = "/api/v1/environments/"


def client_with(key: str) -> Client:
    return Client(headers={"Authorization": f"Token {key}"})


@pytest.fixture
def everything() -> User:
    version = stored_version()
    Environment.objects.update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    stored_run(version)
    return member("Curator", "Runner", "Reviewer")


NEEDED = [
    ("get", "/api/v1/environments/", "read", 200),
    ("get", "/api/v1/environments/sums/versions/1.0.0/cases/", "read", 200),
    ("get", "/api/v1/runs/", "read", 200),
    ("get", "/api/v1/preferences/", "read", 200),
    ("get", "/api/v1/models/", "read", 200),
    ("get", "/api/v1/episodes/", "train", 200),
    ("get", "/api/v1/pairs/next", "review", 204),
    ("post", "/api/v1/environments/", "curate", 415),
    ("post", "/api/v1/runs/", "run", 400),
    ("post", "/api/v1/runs/1/cancel", "run", 200),
    ("post", "/api/v1/episodes/", "train", 400),
    ("post", "/api/v1/pairs/9/decision", "review", 400),
]


@pytest.mark.parametrize(("method", "url", "scope", "status"), NEEDED)
def test_token_is_limited_to_its_scopes(everything: User, method: str, url: str, scope: str, status: int) -> None:
    url = url.replace("/runs/1/", f"/runs/{stored_run(stored_version('other')).pk}/")
    for held in ApiToken.Scope.values:
        _, key = create_token(user=everything, scopes=[held])
        sent = {"content_type": "application/json"} if method == "post" else {}
        answer = getattr(client_with(key), method)(url, **sent)
        assert answer.status_code == (status if held == scope else 403), (held, answer.content)
        if held != scope:
            assert f"lacks the scope '{scope}'" in answer.json()["message"]


@pytest.mark.parametrize("url", ["/api/v1/models/", "/api/v1/teams/", "/api/v1/runs/1/cancel"])
def test_wrong_method_is_not_a_matter_of_scopes(everything: User, url: str) -> None:
    _, key = create_token(user=everything, scopes=["read"])
    answer = client_with(key).put(url, {}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


def test_bearer_token_is_rejected_with_the_right_header(everything: User) -> None:
    _, key = create_token(user=everything, scopes=["read"])
    answer = Client(headers={"Authorization": f"Bearer {key}"}).get(URL)
    assert answer.status_code == 401
    assert answer.json()["message"] == "Send the token as `Authorization: Token KEY`, not as `Bearer KEY`."


def test_scope_does_not_extend_the_permissions_of_the_user() -> None:
    _, key = create_token(user=member(), scopes=ApiToken.Scope.values)
    answer = client_with(key).post("/api/v1/runs/", {}, content_type="application/json")
    assert answer.status_code == 403 and "runs.add_run" in answer.json()["message"]


def test_only_digests_of_keys_are_stored(everything: User) -> None:
    token, key = create_token(user=everything, scopes=["read"])
    other, _ = create_token(user=everything, scopes=["run"])
    stored = serializers.serialize("json", ApiToken.objects.all())
    assert key not in stored and key[12:] not in stored
    assert key.startswith(token.prefix) and token.prefix != other.prefix


@pytest.mark.parametrize("ended", ["expired", "revoked", "inactive", "wrong"])
def test_expired_and_revoked_tokens_are_rejected(everything: User, ended: str) -> None:
    token, key = create_token(user=everything, scopes=["read"], lifetime=timedelta(days=1))
    assert client_with(key).get(URL).status_code == 200
    if ended == "expired":
        ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif ended == "revoked":
        revoke_token(token)
    elif ended == "inactive":
        User.objects.update(is_active=False)
    else:
        key += "x"
    answer = client_with(key).get(URL)
    assert answer.status_code == 401 and answer["WWW-Authenticate"] == "Token"


def test_last_use_of_a_token_is_recorded(everything: User) -> None:
    token, key = create_token(user=everything, scopes=["read"])
    assert token.last_used_at is None
    client_with(key).get(URL)
    token.refresh_from_db()
    assert token.last_used_at is not None
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(days=2))
    client_with(key).get(URL)
    token.refresh_from_db()
    assert token.last_used_at > timezone.now() - timedelta(days=1)


def test_stored_response_is_not_replayed_to_another_token(everything: User) -> None:
    run = stored_run(stored_version("other"))
    headers = {"Idempotency-Key": "k"}
    _, may = create_token(user=everything, scopes=["run"])
    _, reads = create_token(user=everything, scopes=["read"])
    assert client_with(may).post(f"/api/v1/runs/{run.pk}/cancel", headers=headers).status_code == 200
    assert client_with(reads).post(f"/api/v1/runs/{run.pk}/cancel", headers=headers).status_code == 422


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("token", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


def test_page_with_a_new_token_is_not_stored_by_browsers(everything: User, client: Client) -> None:
    client.force_login(everything)
    page = client.post("/account/", {"scopes": ["read"], "name": "laptop", "expires": "30"})
    assert page.context["key"] and "no-store" in page.headers["Cache-Control"]


def test_command_creates_lists_and_revokes_tokens() -> None:
    user = member()
    key = command("viewer", "--scope", "train", "--scope", "read", "--expires", "7d", "--name", "cluster")
    token = user.api_tokens.get()
    assert token.scopes == ["read", "train"] and token.expires_at is not None
    assert timedelta(days=6) < token.expires_at - timezone.now() <= timedelta(days=7)
    assert client_with(key).get("/api/v1/episodes/").status_code == 200
    listed = command("viewer", "--list")
    assert token.prefix in listed and "read,train" in listed and "cluster" in listed and key not in listed
    assert "revoked" in command("viewer", "--revoke", token.prefix)
    assert client_with(key).get("/api/v1/episodes/").status_code == 401
    assert command("viewer", "--scope", "read", "--expires", "never")
    assert user.api_tokens.filter(expires_at=None).exists()


@pytest.mark.parametrize(
    "arguments",
    [("nobody", "--scope", "read"), ("viewer", "--revoke", "lle_nothing"), ("viewer", "--revoke", ""), ("viewer",)],
)
def test_command_rejects_invalid_arguments(arguments: tuple[str, ...]) -> None:
    member()
    with pytest.raises((SystemExit, CommandError)):
        command(*arguments)
    assert not ApiToken.objects.exists()


def test_command_suggests_a_user_for_an_unknown_name() -> None:
    printed = run_command("token", "viewer", "--scope", "read", code=2)
    assert "There is no user 'viewer'; none is stored yet, and " in printed and "manage.py serve creates the" in printed
    member()
    assert "did you mean 'viewer'?" in run_command("token", "viewr", "--scope", "read", code=2)


@pytest.mark.parametrize("expires", ["90", "0d", "-1d", "soon"])
def test_command_rejects_invalid_expiry(expires: str) -> None:
    member()
    with pytest.raises(CommandError, match="90d"):
        command("viewer", "--scope", "read", f"--expires={expires}")
