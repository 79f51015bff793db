"""Sign-in with an OpenID provider, which is a real HTTP server (openid_provider.py)."""

import logging
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.contrib.auth.models import Group, User
from django.http import HttpResponse
from django.test import Client
from pytest_django.fixtures import Settings

from llmeval_site.accounts.sign_in import OPENID_BACKEND
from llmeval_site.accounts.tokens import create_token
from llmeval_site.configuration.openid import OpenIDSettings
from llmeval_site.models import AuditEntry, OpenIDIdentity
from tests.site.accounts.openid_provider import CLIENT_ID, OTHER_KEY, SECRET, Provider, openid_provider

pytestmark = pytest.mark.django_db
ANN = {"sub": "7-ann", "email": "ann@example.org", "email_verified": True, "preferred_username": "ann"}


@pytest.fixture
def provider(settings: Settings) -> Iterator[Provider]:
    with openid_provider() as provider:
        provider.claims = dict(ANN)
        settings.OPENID = OpenIDSettings(
            issuer=provider.url, client_id=CLIENT_ID, client_secret=SECRET, label="Example ID", creates_users=True
        )
        settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, OPENID_BACKEND]
        yield provider


def start(client: Client, after: str = "") -> str:
    """Start a sign-in and consent to it. Returns the address to which the provider sends the browser back."""
    answer = client.get("/openid/start/", {"next": after} if after else {})
    assert answer.status_code == 302
    consent = requests.get(answer["Location"], allow_redirects=False, timeout=10)
    return consent.headers["Location"].removeprefix("http://testserver")


def sign_in(client: Client, after: str = "") -> HttpResponse:
    return client.get(start(client, after))


def assert_refused(client: Client, answer: HttpResponse, status: int, text: str) -> None:
    """The page says why, and nobody is signed in."""
    page = answer.content.decode()
    assert (answer.status_code, text in page) == (status, True), page
    assert "/openid/start/" in page
    assert client.get("/account/").status_code == 302


def change(settings: Settings, **values: Any) -> None:
    settings.OPENID = replace(settings.OPENID, **values)


# ---- sign-in ---------------------------------------------------------------------------------------------------------


def test_first_sign_in_creates_an_account_and_opens_the_page_that_was_asked_for(
    client: Client, provider: Provider
) -> None:
    page = client.get("/login/?next=/runs/").content.decode()
    assert 'href="/openid/start/?next=%2Fruns%2F"' in page and "Sign in with Example ID" in page
    assert sign_in(client, "/runs/")["Location"] == "/runs/"
    user = User.objects.get()
    assert (user.username, user.email, user.has_usable_password()) == ("ann", "ann@example.org", False)
    assert (user.is_staff, user.is_superuser, user.groups.count()) == (False, False, 0)
    assert client.get("/account/").status_code == 200
    entry = AuditEntry.objects.get()
    assert (entry.username, entry.action, entry.path) == ("ann", "openid_callback", "/openid/callback/")


def test_request_has_state_nonce_and_a_pkce_challenge(client: Client, provider: Provider) -> None:
    sent = parse_qs(urlsplit(client.get("/openid/start/")["Location"]).query)
    assert len(sent["state"][0]) >= 32 and len(sent["nonce"][0]) >= 32
    assert sent["code_challenge_method"] == ["S256"] and sent["response_type"] == ["code"]
    assert sent["redirect_uri"] == ["http://testserver/openid/callback/"]
    assert sent["scope"] == ["openid email profile"]
    sign_in(client)
    (token,) = [sent for path, sent in provider.requests if path == "/token"]
    assert len(token["code_verifier"]) >= 43  # the provider compares it with the challenge
    assert SECRET not in str(dict(client.session.items()))


def test_later_sign_in_finds_the_account_by_subject_even_if_name_and_mail_have_changed(
    client: Client, provider: Provider
) -> None:
    sign_in(client)
    client.logout()
    provider.claims |= {"email": "ann.b@example.org", "preferred_username": "ann.b"}
    assert sign_in(client).status_code == 302
    assert User.objects.count() == 1 and OpenIDIdentity.objects.get().last_used_at is not None


def test_names_that_cannot_be_stored_as_they_are_are_changed(client: Client, provider: Provider) -> None:
    provider.claims |= {"given_name": "A\0nn", "family_name": "\ud800" + "b" * 200}
    assert sign_in(client).status_code == 302
    ann = User.objects.get()
    assert (ann.first_name, ann.last_name) == ("A\ufffdnn", "\ufffd" + "b" * 149)
    provider.claims = {"sub": "8", "email": "bo@example.org", "email_verified": True, "given_name": ["Bo"]}
    assert sign_in(Client()).status_code == 302
    assert User.objects.get(email="bo@example.org").first_name == ""


@pytest.mark.parametrize("mail", ["ann@" + "a-long-name." * 21 + "example.org", "jürgen@example.org", ["a@b.org"]])
def test_address_that_an_account_cannot_have_is_not_used(client: Client, provider: Provider, mail: object) -> None:
    provider.claims["email"] = mail
    assert_refused(client, sign_in(client), 403, "an account of this site cannot have")


def test_verified_mail_links_an_existing_account(client: Client, provider: Provider) -> None:
    ann = User.objects.create_user("boss", "Ann@example.org", "a long enough one")
    sign_in(client)
    assert OpenIDIdentity.objects.get().user == ann and User.objects.count() == 1


def test_taken_names_get_a_number(client: Client, provider: Provider) -> None:
    User.objects.create_user("Ann", "another@example.org")
    sign_in(client)
    assert User.objects.get(email="ann@example.org").username == "ann-2"


def test_next_page_cannot_be_on_another_host(client: Client, provider: Provider) -> None:
    assert sign_in(client, "https://evil.example/")["Location"] == "/"


@pytest.mark.parametrize("failure", ["consent", "provider", "expired"])
def test_page_that_was_asked_for_is_kept_after_a_failure(client: Client, provider: Provider, failure: str) -> None:
    if failure == "provider":
        provider.failing = {"/.well-known/openid-configuration"}
        page = client.get("/openid/start/", {"next": "/runs/?q=x&sort=run"})
    elif failure == "consent":
        provider.error = "access_denied"
        page = sign_in(client, "/runs/?q=x&sort=run")
    else:
        start(client, "/runs/?q=x&sort=run")
        page = client.get("/openid/callback/?state=old&code=old")
    provider.failing, provider.error = set(), ""
    links = re.findall(r'href="(/(?:openid/start|login)/[^"]*)"', page.content.decode())
    assert [link.partition("?")[2] for link in links] == ["next=%2Fruns%2F%3Fq%3Dx%26sort%3Drun"] * 2
    consent = requests.get(client.get(links[0])["Location"], allow_redirects=False, timeout=10)
    answer = client.get(consent.headers["Location"].removeprefix("http://testserver"))
    assert answer["Location"] == "/runs/?q=x&sort=run"


def test_refused_person_can_sign_out_at_the_provider_to_use_another_account(
    client: Client, provider: Provider, settings: Settings
) -> None:
    change(settings, creates_users=False)
    assert f'href="{provider.url}/logout?client_id={CLIENT_ID}"' in sign_in(client).content.decode()


def test_secret_is_sent_by_http_basic_if_the_provider_wants_that(client: Client, provider: Provider) -> None:
    provider.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_basic"]}
    assert sign_in(client).status_code == 302
    (token,) = [sent for path, sent in provider.requests if path == "/token"]
    assert "client_secret" not in token and token["authorization"].startswith("Basic ")


def test_endpoints_of_the_settings_need_no_discovery_and_no_user_info(
    client: Client, provider: Provider, settings: Settings
) -> None:
    names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
    change(settings, endpoints={name: f"{provider.url}/{path}" for name, path in names.items()})
    provider.failing = {"/.well-known/openid-configuration", "/userinfo"}
    assert sign_in(client).status_code == 302


# ---- answers that are not valid --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"id_token": {"nonce": "another"}}, "belongs to another sign-in"),
        ({"id_token": {"nonce": None}}, "belongs to another sign-in"),
        ({"key": OTHER_KEY}, "its signature or its form is wrong"),
        ({"algorithm": "HS256"}, "its signature or its form is wrong"),
        ({"id_token": {"exp": int(time.time()) - 3600}}, "it has expired"),
        ({"id_token": {"exp": None}}, "lacks a required claim"),
        ({"id_token": {"aud": "another-site"}}, "meant for another application"),
        ({"id_token": {"aud": [CLIENT_ID, "b"], "azp": "b"}}, "meant for another application"),
        ({"id_token": {"iss": "https://evil.example"}}, "comes from another issuer"),
        ({"userinfo": {"sub": "somebody-else"}}, "its signature or its form is wrong"),
        ({"claims": {**ANN, "sub": ""}}, "its subject is empty"),
        ({"claims": {**ANN, "sub": "x" * 256}}, "longer than 255 characters"),
        ({"claims": {**ANN, "sub": "a\0b"}}, "characters that cannot be stored"),
    ],
)
def test_answer_that_fails_a_check_signs_nobody_in(
    client: Client, provider: Provider, changes: dict[str, Any], text: str
) -> None:
    for name, value in changes.items():
        setattr(provider, name, value)
    assert_refused(client, sign_in(client), 400, text)
    assert not User.objects.exists()


def test_state_of_another_browser_is_refused(client: Client, provider: Provider) -> None:
    attacker = Client()
    assert_refused(client, client.get(start(attacker)), 400, "started in another browser")


def test_answer_counts_once(client: Client, provider: Provider) -> None:
    address = start(client)
    client.get(address)
    client.logout()
    assert_refused(client, client.get(address), 400, "completed already")


def test_state_expires(client: Client, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    address, now = start(client), time.time()
    monkeypatch.setattr(time, "time", lambda: now + 16 * 60)
    assert_refused(client, client.get(address), 400, "15 minutes")


def test_refused_consent(client: Client, provider: Provider) -> None:
    provider.error = "access_denied"
    assert_refused(client, sign_in(client), 403, "you or the provider refused")


@pytest.mark.parametrize(("code", "status"), [("login_required", 403), ("server_error", 502), ("invalid_scope", 502)])
def test_other_refusals_of_the_provider(client: Client, provider: Provider, code: str, status: int) -> None:
    provider.error = code
    assert_refused(client, sign_in(client), status, "Example ID")


def test_refusal_leaves_a_signed_in_user_signed_in(client: Client, provider: Provider) -> None:
    sign_in(client)
    provider.error = "access_denied"
    assert sign_in(client).status_code == 403
    assert client.get("/openid/callback/?error=access_denied&state=guess").status_code == 400
    assert client.get("/account/").status_code == 200


@pytest.mark.parametrize("path", ["/token", "/jwks", "/userinfo"])
def test_provider_that_fails_while_signing_in(client: Client, provider: Provider, path: str) -> None:
    provider.failing = {path}
    assert_refused(client, sign_in(client), 502, "status 503")


def test_provider_without_discovery(client: Client, provider: Provider) -> None:
    provider.failing = {"/.well-known/openid-configuration"}
    assert_refused(client, client.get("/openid/start/"), 502, "cannot be reached")
    provider.failing = set()
    assert sign_in(client).status_code == 302  # the failure is not kept


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [({"issuer": "https://evil.example"}, "LLMEVAL_OIDC_ISSUER"), ({"token_endpoint": "http://a.example"}, "https://")],
)
def test_metadata_that_disagrees_with_the_settings(
    client: Client, provider: Provider, caplog: pytest.LogCaptureFixture, metadata: dict[str, str], reason: str
) -> None:
    provider.metadata = metadata
    assert_refused(client, client.get("/openid/start/"), 502, "settings for Example ID do not agree")
    assert reason in caplog.text


# ---- who may sign in -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verified", [False, None, "yes", 1])
def test_unverified_mail_takes_over_no_account_and_creates_none(
    client: Client, provider: Provider, verified: object
) -> None:
    User.objects.create_superuser("root", "ann@example.org")
    provider.claims["email_verified"] = verified
    if verified == 1:  # equals True in Python, and providers do not send it
        provider.claims["email_verified"] = "1"
    assert_refused(client, sign_in(client), 403, "your identity is 7-ann")
    assert User.objects.count() == 1 and not OpenIDIdentity.objects.exists()


def test_verification_counts_for_the_address_beside_it_only(client: Client, provider: Provider) -> None:
    User.objects.create_superuser("root", "root@example.org")
    provider.userinfo = {"email": "root@example.org", "email_verified": False}
    assert_refused(client, sign_in(client), 403, "does not say that your mail address is verified")


def test_identity_linked_by_an_administrator_needs_no_verified_mail(
    client: Client, admin_client: Client, provider: Provider
) -> None:
    ann = User.objects.create_user("ann")
    del provider.claims["email"]
    form = {"user": ann.pk, "issuer": provider.url, "subject": "7-ann"}
    assert admin_client.post("/admin/llmeval_site/openididentity/add/", form).status_code == 302
    assert sign_in(client).status_code == 302
    assert client.session["_auth_user_id"] == str(ann.pk)


def test_address_that_belongs_to_another_identity(client: Client, provider: Provider) -> None:
    sign_in(client)
    client.logout()
    provider.claims["sub"] = "8-another-ann"
    assert_refused(client, sign_in(client), 403, "belongs to another identity")


def test_several_accounts_with_one_address(client: Client, provider: Provider) -> None:
    for name in ("ann", "ann2"):
        User.objects.create_user(name, "ann@example.org")
    assert_refused(client, sign_in(client), 403, "Several accounts have the address ann@example.org")


def test_unknown_person_if_accounts_are_created_by_administrators(
    client: Client, provider: Provider, settings: Settings
) -> None:
    change(settings, creates_users=False)
    assert_refused(client, sign_in(client), 403, "There is no account with the address ann@example.org")
    User.objects.create_user("ann", "ann@example.org")
    assert sign_in(client).status_code == 302


def test_mail_domains(client: Client, provider: Provider, settings: Settings) -> None:
    change(settings, mail_domains=("example.com",))
    assert_refused(client, sign_in(client), 403, "Yours is ann@example.org")
    change(settings, mail_domains=("example.com", "example.org"))
    assert sign_in(client).status_code == 302
    client.logout()
    provider.claims["email_verified"] = False
    assert_refused(client, sign_in(client), 403, "names no verified address")


def test_deactivated_account_cannot_sign_in_and_its_session_ends(client: Client, provider: Provider) -> None:
    sign_in(client)
    User.objects.update(is_active=False)
    assert client.get("/account/").status_code == 302
    assert_refused(client, sign_in(client), 403, "Your account is deactivated")


def test_groups_of_the_claim_are_given_and_taken(
    client: Client, provider: Provider, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    change(settings, groups={"eval-review": "Reviewer", "eval-run": "Runner", "eval-none": "No such group"})
    curators = Group.objects.get(name="Curator")
    ann = User.objects.create_user("ann", "ann@example.org")
    ann.groups.add(curators)

    def groups_after(claim: object) -> set[str]:
        provider.claims["groups"] = claim
        assert sign_in(client).status_code == 302
        return set(ann.groups.values_list("name", flat=True))

    assert groups_after(["eval-review", "unknown-group", "Superusers"]) == {"Curator", "Reviewer"}
    assert groups_after("eval-run") == {"Curator", "Runner"}
    assert groups_after({"not": "a list"}) == {"Curator"}
    assert groups_after(["eval-none", "eval-run"]) == {"Curator", "Runner"}
    assert "'No such group', which does not exist" in caplog.text


# ---- sessions, sign-out, passwords -----------------------------------------------------------------------------------


def test_session_ends_after_some_hours_and_survives_a_provider_that_is_down(client: Client, provider: Provider) -> None:
    before = client.session.session_key
    sign_in(client)
    assert client.session.session_key != before
    assert 11 * 3600 < client.session.get_expiry_age() <= 12 * 3600
    requests_before = len(provider.requests)
    assert client.get("/account/").status_code == 200 and len(provider.requests) == requests_before


def test_sign_out_ends_the_session_and_offers_the_provider(client: Client, provider: Provider) -> None:
    sign_in(client)
    page = client.post("/logout/", follow=True).content.decode()
    assert client.get("/account/").status_code == 302
    assert f'href="{provider.url}/logout?client_id={CLIENT_ID}"' in page and "Sign out at Example ID" in page
    provider.metadata = {"end_session_endpoint": ""}
    client.force_login(User.objects.get(), backend="django.contrib.auth.backends.ModelBackend")
    assert client.post("/logout/")["Location"] == "/login/"


def test_failures_are_not_counted_as_guesses_of_passwords(
    client: Client, provider: Provider, settings: Settings
) -> None:
    provider.key = OTHER_KEY
    for _ in range(settings.AXES_FAILURE_LIMIT + 1):
        assert sign_in(client).status_code == 400
    User.objects.create_user("ann", "ann@example.org", "a long enough one")
    assert client.post("/login/", {"username": "ann", "password": "a long enough one"}).status_code == 302


def test_wrong_passwords_do_not_block_the_provider(client: Client, provider: Provider, settings: Settings) -> None:
    User.objects.create_user("ann", "ann@example.org", "a long enough one")
    answers = [client.post("/login/", {"username": "ann", "password": "x"}) for _ in range(settings.AXES_FAILURE_LIMIT)]
    assert answers[-1].status_code == 429
    assert sign_in(client).status_code == 302


def test_passwords_can_be_turned_off(client: Client, provider: Provider, settings: Settings) -> None:
    ann = User.objects.create_superuser("ann", "ann@example.org", "a long enough one")
    earlier = Client()
    earlier.login(username="ann", password="a long enough one", request=earlier.get("/login/").wsgi_request)
    settings.PASSWORDS = False
    settings.AUTHENTICATION_BACKENDS = ["axes.backends.AxesBackend", OPENID_BACKEND]
    page = client.get("/login/").content.decode()
    assert 'name="password"' not in page and "Sign in with Example ID" in page
    for url in ("/login/", "/password/reset/"):
        answer = client.post(url, {"username": "ann", "password": "a long enough one", "email": ann.email})
        assert (answer.status_code, "Passwords are turned off" in answer.content.decode()) == (403, True)
    assert client.get("/admin/", follow=True).redirect_chain[-1][0] == "/login/?next=/admin/"
    assert earlier.get("/account/").status_code == 302  # the session began with a password
    assert sign_in(client, "/admin/")["Location"] == "/admin/"
    assert client.get("/admin/auth/user/").content.decode().count("Mail a link to choose a password") == 0
    _, key = create_token(user=ann, scopes=["read"])
    assert Client(headers={"Authorization": f"Token {key}"}).get("/api/v1/runs/").status_code == 200


def test_admin_sends_people_to_the_common_sign_in_page(client: Client, provider: Provider) -> None:
    answer = client.get("/admin/login/?next=/admin/auth/user/")
    assert answer["Location"] == "/login/?next=/admin/auth/user/"
    sign_in(client)
    refused = client.get("/admin/", follow=True)
    assert refused.status_code == 403 and "The admin is for staff" in refused.content.decode()


def test_pages_do_not_exist_without_a_provider(client: Client) -> None:
    for url in ("/openid/start/", "/openid/callback/", "/openid/signed-out/"):
        assert client.get(url).status_code == 404
    assert "openid" not in client.get("/login/").content.decode()


def test_page_escapes_what_the_provider_sends(client: Client, provider: Provider) -> None:
    provider.claims["email_verified"] = False
    provider.claims["sub"] = "<script>alert(1)</script>"
    answer = sign_in(client)
    assert "<script>alert" not in answer.content.decode() and answer.status_code == 403


def test_log_has_no_secrets(client: Client, provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "llmeval_site")
    address = start(client)
    provider.failing = {"/userinfo"}
    client.get(address)
    code = parse_qs(urlsplit(address).query)["code"][0]
    assert "503" in caplog.text
    assert not any(secret in caplog.text for secret in (code, SECRET, "the-access-token"))
