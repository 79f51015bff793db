"""Pages of the site: dashboard, search, account and tokens, errors, navigation, security headers."""

import re
import sqlite3

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client, override_settings

from hub.models import CaseDefect, Environment
from llmeval_site.accounts.tokens import create_token
from llmeval_site.models import ApiToken
from llmeval_site.pages import navigation
from llmeval_site.pages.navigation import NavigationEntry
from runs.models import Run
from tests.factories import stored_outcomes, stored_run, stored_version
from tests.markup import markup
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(client: Client) -> User:
    user = member("Runner")
    client.force_login(user)
    return user


def published(slug: str = "sums") -> Run:
    version = stored_version(slug)
    Environment.objects.filter(slug=slug).update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    return stored_run(version, name=f"run of {slug}")


def test_empty_dashboard_explains_how_to_start_a_run(client: Client, user: User) -> None:
    page = client.get("/").content.decode()
    assert "make eval CONFIG=configs/eval_v1.yaml" in page
    assert "press “Run a pilot”" in page


def test_dashboard_shows_running_runs_and_latest_results(client: Client, user: User) -> None:
    run = published()
    stored_outcomes(run, "pppf")
    going = published("others")
    Run.objects.filter(pk=going.pk).update(status=Run.Status.RUNNING)
    page = client.get("/").content.decode()
    assert "75.0 %" in page and "run of sums" in page
    assert "0 of 4" in page and "run of others" in page


def test_dashboard_shows_the_best_results_of_a_run_of_many_models(client: Client, user: User) -> None:
    run = stored_run(published().environments.get().version, [f"model-{i}" for i in range(12)], name="many")
    for i in range(12):
        stored_outcomes(run, "p" * (i // 3) + "f" * (4 - i // 3), model=f"model-{i}")
    page = client.get("/").content.decode()
    assert page.count(">many</a>") == 1 and "model-11" in page and "model-0<" not in page
    assert f'<a href="/runs/{run.pk}/">4 more</a>' in page


def test_dashboard_shows_changes_since_the_previous_result(client: Client, user: User) -> None:
    first = published()
    stored_outcomes(first, "ppff")
    other = stored_run(first.environments.get().version, ["beta"])
    stored_outcomes(other, "pppp")
    page = client.get("/").content.decode()
    assert page.count("first time") == 2
    second = stored_run(first.environments.get().version)
    stored_outcomes(second, "pppf")
    page = client.get("/").content.decode()
    link = f"/compare/?a={second.pk}&amp;b={first.pk}&amp;model_a=alpha&amp;model_b=alpha"
    assert f'href="{link}"' in page and ">+25.0</a>" in page
    assert "+25.0" in client.get(link.replace("&amp;", "&")).content.decode()
    second.environments.update(case_positions=[0, 1, 2, 3])  # the run before it has no selection of cases
    page = client.get("/").content.decode()
    assert "+25.0" not in page and ", other cases</small>" in page


def test_dashboard_does_not_call_cases_without_a_score_other_cases(client: Client, user: User) -> None:
    first = published()
    stored_outcomes(first, "ppff")
    stored_outcomes(stored_run(first.environments.get().version), "eeee")
    page = client.get("/").content.decode()
    assert ">compare</a>" in page and "other cases" not in page


def test_dashboard_lists_failed_runs_until_a_later_run_succeeds(client: Client, user: User) -> None:
    errored = published()
    stored_outcomes(errored, "pepu")
    version = errored.environments.get().version
    stored_run(version, name="cancelled one", status=Run.Status.CANCELLED, config_hash="2" * 64)
    broken = stored_run(version, name="broken one", status=Run.Status.FAILED, config_hash="1" * 64, message="No disk.")
    page = markup(client.get("/"))
    went_wrong = page[page.index("Runs with problems") : page.index("Latest results")]
    assert f"/runs/{errored.pk}/?status=errored#responses" in went_wrong and "1 unscored" in went_wrong
    assert f"/runs/{broken.pk}/" in went_wrong and "No disk." in went_wrong
    assert "cancelled one" not in went_wrong
    for config_hash in (errored.config_hash, broken.config_hash):
        stored_outcomes(stored_run(version, config_hash=config_hash), "pppp")
    assert "Runs with problems" not in client.get("/").content.decode()


def test_dashboard_shows_open_work_of_a_curator(client: Client, user: User) -> None:
    version = published().environments.get().version
    CaseDefect.objects.create(case=version.cases.all()[0], description="Wrong.")
    assert "report of a wrong case" not in client.get("/").content.decode()
    client.force_login(member("Curator", staff=True))
    page = markup(client.get("/"))
    assert "1 report of a wrong case</a> to be decided" in page
    CaseDefect.objects.update(status=CaseDefect.Status.REJECTED)
    assert "Waiting for you" not in client.get("/").content.decode()


def test_search_finds_environments_runs_and_cases(client: Client, user: User) -> None:
    run = published()
    assert f"/runs/{run.pk}/" in client.get(f"/search/?q={run.pk}").content.decode()
    assert "/hub/sums/" in client.get("/search/?q=SUM").content.decode()
    assert "/hub/sums/1.0.0/cases/c2/" in client.get("/search/?q=c2").content.decode()
    assert "No results for" in client.get("/search/?q=zebra").content.decode()
    assert client.get("/search/?q=zebra%00").status_code == 400


def test_created_token_is_shown_once_works_and_can_be_revoked(client: Client, user: User) -> None:
    page = client.post(
        "/account/", {"make": "", "name": "laptop", "scopes": ["read"], "expires": "30"}
    ).content.decode()
    [key] = re.findall(r'<code id="token">(.*?)</code>', page)
    token = ApiToken.objects.get(user=user)
    assert (token.name, token.scopes, token.state) == ("laptop", ["read"], "active")
    again = client.get("/account/").content.decode()
    assert key not in again and token.prefix in again and "laptop" in again
    assert [f'data-label="{label}"' in again for label in ("created", "expires", "last used")] == [True] * 3
    stranger = Client(headers={"Authorization": f"Token {key}"})
    assert stranger.get("/api/v1/environments/").status_code == 200
    assert client.post("/account/", {"revoke": token.prefix}).status_code == 302
    assert stranger.get("/api/v1/environments/").status_code == 401


def test_token_requires_a_scope_and_only_its_user_may_revoke_it(client: Client, user: User) -> None:
    assert client.post("/account/", {"make": "", "expires": "30"}).status_code == 422
    token, _ = create_token(user=User.objects.create_user("eve"), scopes=["read"])
    assert client.post("/account/", {"revoke": token.prefix}).status_code == 404
    token.refresh_from_db()
    assert token.state == "active" and not user.api_tokens.exists()


def test_sign_in_and_sign_out(client: Client) -> None:
    User.objects.create_user("ann", password="a long enough one")
    assert client.get("/").status_code == 302
    wrong = client.post("/login/", {"username": "ann", "password": "wrong"}).content.decode()
    assert 'role="alert"' in wrong
    answer = client.post("/login/?next=/hub/", {"username": "ann", "password": "a long enough one", "next": "/hub/"})
    assert answer["Location"] == "/hub/"
    assert client.get("/logout/").status_code == 405
    client.post("/logout/")
    assert client.get("/").status_code == 302


def test_sign_in_does_not_redirect_to_another_site(client: Client) -> None:
    User.objects.create_user("ann", password="a long enough one")
    data = {"username": "ann", "password": "a long enough one", "next": "https://evil.example/"}
    assert client.post("/login/", data)["Location"] == "/"


def test_error_pages_explain_the_error(client: Client, user: User) -> None:
    missing = client.get("/hub/nothing/")
    assert missing.status_code == 404
    assert "There is no environment" in missing.content.decode()
    assert "find the page by the menu or the search" in client.get("/no/such/page/").content.decode()
    for path in ("/account/webhooks/1/", "/responses/1/"):
        gone = client.get(path)
        assert gone.status_code == 404
        assert "matches the given query" not in gone.content.decode()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user)
    old = strict.post("/account/", {"make": ""})
    assert old.status_code == 403
    assert "Reload the page" in old.content.decode()


@override_settings(ROOT_URLCONF="tests.site.pages.broken_urls")
def test_server_error_page_shows_no_details(user: User, client: Client) -> None:
    client.raise_request_exception = False
    answer = client.get("/fails/")
    assert answer.status_code == 500
    assert "Server error" in answer.content.decode()
    assert "secret" not in answer.content.decode()
    assert answer["X-Request-ID"] in answer.content.decode()  # the log has the details under it


@pytest.mark.parametrize("path", ["/runs/", "/api/v1/runs/"])
@pytest.mark.parametrize("place", ["llmeval_site.middleware.sign_in_required.SignInRequiredMiddleware", "view"])
def test_database_that_is_not_available_gets_503(
    user: User, client: Client, monkeypatch: pytest.MonkeyPatch, path: str, place: str
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OperationalError("secret detail")

    client.raise_request_exception = False
    if place == "view":
        monkeypatch.setattr("runs.web.queries.filter_runs", fail)
    else:
        monkeypatch.setattr(f"{place}.process_view", fail)
    answer = client.get(path)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    content = answer.content.decode()
    assert "The database could not answer the request." in content and answer["X-Request-ID"] in content
    assert "secret" not in content
    if path.startswith("/api/"):
        assert answer.json()["code"] == "unavailable"


@pytest.mark.parametrize("path", ["/runs/", "/api/v1/runs/"])
def test_invalid_statement_gets_500(user: User, client: Client, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        cause = sqlite3.OperationalError("no such column: nmae")
        cause.sqlite_errorcode = sqlite3.SQLITE_ERROR
        raise OperationalError(str(cause)) from cause

    client.raise_request_exception = False
    monkeypatch.setattr("runs.web.queries.filter_runs", fail)
    answer = client.get(path)
    assert answer.status_code == 500 and "Retry-After" not in answer
    assert "not available" not in answer.content.decode()


def test_pages_forbid_inline_scripts_and_other_hosts(client: Client, user: User) -> None:
    policy = client.get("/")["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy and "http" not in policy
    for url in ("/", "/hub/", "/runs/new/", "/account/", "/login/"):
        page = client.get(url).content.decode()
        assert " onclick=" not in page and "<style" not in page and ' style="' not in page
        assert all("src=" in tag for tag in page.split("<script")[1:])


def test_navigation_entry_is_shown_to_users_with_permission(
    client: Client, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = [*navigation.NAVIGATION, NavigationEntry("Desk", "admin:index", "x", permission="hub.curate_environment")]
    monkeypatch.setattr(navigation, "NAVIGATION", added)
    assert ">Desk<" not in client.get("/").content.decode()
    client.force_login(member("Curator"))
    assert ">Desk<" in client.get("/").content.decode()


@pytest.mark.parametrize(
    ("url", "current"),
    [
        ("/hub/", ["Hub"]),
        ("/compare/", ["Runs"]),
        ("/ranking/", ["Preferences"]),
        ("/endpoints/new/", ["Models"]),
        ("/", []),
    ],
)
def test_entry_to_which_a_page_belongs_is_current(client: Client, url: str, current: list[str]) -> None:
    client.force_login(User.objects.create_superuser("admin"))
    response = client.get(url)
    assert response.status_code == 200
    assert [link["title"] for link in response.context["navigation"] if link["current"]] == current
