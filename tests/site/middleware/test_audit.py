"""The audit log."""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from pytest_django import Settings

from hub.models import Environment, EnvironmentVersion
from hub.services import import_bundle
from llmeval_site.accounts.tokens import create_token
from llmeval_site.middleware.audit import DOWNLOADS, FREQUENT
from llmeval_site.models import AuditEntry
from review.models import Assignment
from runs.models import ModelEndpoint, Run
from tests.hub.bundle_files import write_bundle
from tests.members import member
from tests.review.pages import waiting_pairs
from tests.site.teams.world import stored_team

pytestmark = pytest.mark.django_db
REQUEST_ID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def runner(tmp_path: Path) -> User:
    version = import_bundle(bundle=write_bundle(tmp_path / "capitals"))
    Environment.objects.filter(pk=version.environment_id).update(visibility=Environment.Visibility.PUBLISHED)
    ModelEndpoint.objects.create(name="small", model="m", base_url="http://127.0.0.1:9/v1")
    return member("Runner")


def start(client: Client, **headers: str) -> int:
    config = {"name": "one", "environments": ["capitals"], "models": ["small"], "tracking": {"mlflow": False}}
    body = json.dumps(config)
    return client.post("/api/v1/runs/", body, content_type="application/json", headers=headers).status_code


def test_run_started_with_a_token_is_recorded_with_user_token_and_request_id(client: Client, runner: User) -> None:
    token, key = create_token(user=runner, scopes=["run"])
    assert start(client, **{"Authorization": f"Token {key}", "X-Request-ID": REQUEST_ID}) == 201
    entry = AuditEntry.objects.get()
    assert (entry.user, entry.username, entry.token) == (runner, runner.username, token.prefix)
    assert (entry.action, entry.method, entry.path, entry.status) == ("api-runs", "POST", "/api/v1/runs/", 201)
    assert entry.request_id == REQUEST_ID


def test_cancelling_a_run_on_its_page_is_recorded(client: Client, runner: User) -> None:
    client.force_login(runner)
    start(client)
    run = Run.objects.get()
    client.post(f"/runs/{run.pk}/cancel/")
    entry = AuditEntry.objects.latest("id")
    assert (entry.action, entry.path, entry.user) == ("runs:cancel", f"/runs/{run.pk}/cancel/", runner)


def test_signing_in_and_out_is_recorded(client: Client) -> None:
    User.objects.create_user("ann", password="a long enough password")
    client.post("/login/", {"username": "ann", "password": "wrong"})
    client.post("/login/", {"username": "ann", "password": "a long enough password"})
    client.post("/logout/")
    found = list(AuditEntry.objects.order_by("id").values_list("action", "username"))
    assert found == [("login", "ann"), ("logout", "ann")]


def test_downloads_are_recorded_and_other_reading_is_not(client: Client, runner: User) -> None:
    client.force_login(runner)
    client.get("/runs/")
    client.get("/hub/capitals/")
    assert not AuditEntry.objects.exists()
    version = Environment.objects.get(slug="capitals").versions.get()
    client.get(f"/hub/capitals/{version.version}/bundle")
    assert AuditEntry.objects.get().action == "hub:bundle"


def test_refused_requests_and_anonymous_requests_are_not_recorded(client: Client, runner: User) -> None:
    assert start(client) == 401
    client.force_login(User.objects.create_user("guest"))
    assert start(client) == 403
    assert not AuditEntry.objects.exists()


def stored_run_of(client: Client, user: User, status: str) -> Run:
    """A run of *user*, who is signed in, with a fresh audit log."""
    client.force_login(user)
    assert start(client) == 201
    Run.objects.update(status=status)
    AuditEntry.objects.all().delete()
    return Run.objects.get()


def test_change_that_a_page_refuses_with_a_message_is_not_recorded(client: Client, runner: User) -> None:
    run = stored_run_of(client, runner, Run.Status.FAILED)
    ModelEndpoint.objects.update(enabled=False)
    assert client.post(f"/runs/{run.pk}/resume/").status_code == 302
    assert not AuditEntry.objects.exists()
    ModelEndpoint.objects.update(enabled=True)  # the message of the refused request is not shown yet
    assert client.post(f"/runs/{run.pk}/resume/").status_code == 302
    assert AuditEntry.objects.get().action == "runs:resume"
    run.refresh_from_db()
    assert run.status == Run.Status.QUEUED
    assert client.post(f"/runs/{run.pk}/delete/").status_code == 302  # it has not ended
    Run.objects.update(status=Run.Status.COMPLETED)
    assert client.post(f"/runs/{run.pk}/cancel/").status_code == 302  # it has ended
    assert AuditEntry.objects.count() == 1
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "The run had already ended." in page and "The run is resumed" in page


def test_download_that_is_refused_with_a_message_is_not_recorded(client: Client, runner: User) -> None:
    run = stored_run_of(client, runner, Run.Status.COMPLETED)
    assert client.get(f"/runs/{run.pk}/failures", {"format": "nonsense"}).status_code == 302
    assert not AuditEntry.objects.exists()


def test_model_that_is_stored_but_fails_its_test_is_recorded(client: Client, runner: User) -> None:
    client.force_login(User.objects.create_superuser("boss"))
    form = {
        "name": "other",
        "provider": "openai",
        "model": "m",
        "base_url": "http://127.0.0.1:9/v1",
        "parameters": "{}",
    }
    assert client.post("/endpoints/new/", {**form, "enabled": "on", "test": "1"}).status_code == 302
    assert (AuditEntry.objects.get().action, ModelEndpoint.objects.count()) == ("runs:endpoint_new", 2)


def test_form_that_the_admin_shows_again_is_not_recorded(client: Client) -> None:
    client.force_login(User.objects.create_superuser("boss"))
    assert client.post("/admin/auth/group/add/", {"name": ""}).status_code == 200
    assert not AuditEntry.objects.exists()
    assert client.post("/admin/auth/group/add/", {"name": "Vision"}).status_code == 302
    assert AuditEntry.objects.get().action == "admin:auth_group_add"


def test_old_addresses_that_redirect_are_not_recorded(admin_client: Client) -> None:
    assert admin_client.post("/admin/auth/group/1/").status_code == 302
    assert list(AuditEntry.objects.all()) == []


def test_changes_in_windows_that_the_admin_closes_are_recorded(client: Client) -> None:
    client.force_login(User.objects.create_superuser("boss"))
    assert client.post("/admin/auth/group/add/", {"name": "Vision", "_popup": "1"}).status_code == 200
    assert AuditEntry.objects.get().action == "admin:auth_group_add"


def test_requests_that_change_nothing_are_not_recorded(client: Client, runner: User) -> None:
    run = stored_run_of(client, runner, Run.Status.COMPLETED)
    htmx = {"HX-Request": "true"}
    assert client.post("/runs/new/", {"name": "x"}, headers=htmx).status_code == 200  # another choice in the form
    assert client.post("/runs/new/", {"name": "x", "do": "update"}).status_code == 302
    Run.objects.update(tracking_state="")
    Run.objects.get().environments.update(case_count=0)  # so no response is missing
    assert client.post(f"/runs/{run.pk}/resume/").status_code == 302
    assert client.post(f"/api/v1/runs/{run.pk}/resume").status_code == 200
    assert client.post(f"/api/v1/runs/{run.pk}/cancel").status_code == 200  # it has ended
    client.force_login(User.objects.create_superuser("boss"))
    EnvironmentVersion.objects.update(certificate={"gates": []})  # so no gate is run
    assert client.post("/hub/capitals/1.0.0/gates/").status_code == 302
    assert not AuditEntry.objects.exists()


def test_forms_that_htmx_shows_again_are_not_recorded(client: Client) -> None:
    htmx = {"HX-Request": "true"}
    (pair,) = waiting_pairs(1)
    client.force_login(User.objects.create_superuser("boss"))
    client.get("/review/")
    address = f"/review/{pair.pk}/decision/"
    assert "Choose a verdict." in client.post(address, headers=htmx).content.decode()
    Assignment.objects.update(reviewer=User.objects.create_user("ann"))
    answer = client.post(address, {"verdict": "a"}, headers=htmx)
    assert "This pair is not assigned to you" in answer.content.decode()
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_run_of_which_no_worker_could_be_notified_is_recorded(client: Client, runner: User, settings: Settings) -> None:
    settings.TASK_APPLICATION = "tests.runs.unreachable_broker.app"
    client.force_login(runner)
    assert start(client) == 503
    entry = AuditEntry.objects.get()
    assert (Run.objects.count(), entry.action, entry.status) == (1, "api-runs", 503)


def test_created_and_revoked_tokens_are_recorded_by_their_first_characters(client: Client) -> None:
    user = member()
    client.force_login(user)
    client.post("/account/", {"name": "laptop", "scopes": ["read"], "expires": "90"})
    prefix = user.api_tokens.get().prefix
    client.post("/account/", {"revoke": prefix})
    paths = list(AuditEntry.objects.order_by("id").values_list("path", flat=True))
    assert paths == [f"/account/?create={prefix}", f"/account/?revoke={prefix}"]


def test_moves_are_recorded_with_the_team_to_which_something_was_moved(client: Client, runner: User) -> None:
    boss = User.objects.create_superuser("boss")
    stored_team("vision", boss)
    client.force_login(boss)
    start(client)
    run, endpoint = Run.objects.get(), ModelEndpoint.objects.get()
    Run.objects.update(status=Run.Status.CANCELLED)
    AuditEntry.objects.all().delete()
    urls = (f"/api/v1/runs/{run.pk}/", "/api/v1/environments/capitals/")
    for url in urls:
        for team in ("shared", "vision"):
            assert client.patch(url, {"team": team}, content_type="application/json").status_code == 200
    assert client.patch(urls[0], {"note": "slow"}, content_type="application/json").status_code == 200
    version = Environment.objects.get().versions.get().version
    pages = (f"/runs/{run.pk}/team/", f"/hub/capitals/{version}/team/")
    for url in pages:
        client.post(url, {"team": "shared"})
    form = {"name": "small", "provider": "openai", "model": "m", "parameters": "{}", "enabled": "on", "team": "vision"}
    for _ in range(2):  # the second time, the team stays
        assert client.post(f"/endpoints/{endpoint.pk}/", form).status_code == 302
    assert list(AuditEntry.objects.order_by("id").values_list("path", flat=True)) == [
        *(f"{url}?team={team}" for url in urls for team in ("shared", "vision")),
        urls[0],
        *(f"{url}?team=shared" for url in pages),
        f"/endpoints/{endpoint.pk}/?team=vision",
        f"/endpoints/{endpoint.pk}/",
    ]


def test_cases_that_a_trainer_reads_are_not_recorded(client: Client, runner: User) -> None:
    client.force_login(runner)
    body = json.dumps({"environment": "capitals", "opened": False})
    assert client.post("/api/v1/episodes/cases", body, content_type="application/json").status_code == 200
    assert not AuditEntry.objects.exists()


def test_entries_outlive_their_user(client: Client, runner: User) -> None:
    client.force_login(runner)
    start(client)
    Run.objects.all().delete()
    name = runner.username
    runner.delete()
    entry = AuditEntry.objects.get()
    assert (entry.user, entry.username) == (None, name)


def test_administrators_can_read_but_not_change_the_audit_log(admin_client: Client) -> None:
    entry = AuditEntry.objects.create(username="ann", action="runs:cancel", method="POST", path="/runs/1/", status=302)
    page = admin_client.get("/admin/llmeval_site/auditentry/")
    assert b"runs:cancel" in page.content
    assert admin_client.post(f"/admin/llmeval_site/auditentry/{entry.pk}/delete/", {"post": "yes"}).status_code == 403
    assert admin_client.post(f"/admin/llmeval_site/auditentry/{entry.pk}/change/", {"status": 1}).status_code == 403


def test_names_of_views_in_the_lists_exist() -> None:
    assert {name for name, _ in views(get_resolver())} >= DOWNLOADS | FREQUENT


# Downloads whose content is on a page, too. To read a page is not recorded.
READING = {"hub:file", "hub:starter", "runs:report", "api-run-report", "api-run-events", "manual"}


def test_each_download_is_recorded_or_listed_as_reading() -> None:
    downloads = {name for name, view in views(get_resolver()) if may_be_a_download(view)}
    assert "runs:rollouts" in downloads
    assert downloads == DOWNLOADS | READING


def may_be_a_download(view: Any) -> bool:
    """Return whether *view* returns a file or a stream according to its annotation."""
    cls = getattr(view, "view_class", None) or getattr(view, "cls", None)
    handler = inspect.unwrap(view if cls is None else getattr(cls, "get", lambda: None))
    returned = str(handler.__annotations__.get("return", ""))
    return any(word in returned for word in ("FileResponse", "StreamingHttpResponse", "HttpResponseBase"))


def views(resolver: URLResolver, namespace: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name of each URL and its view."""
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLPattern):
            yield f"{namespace}{pattern.name}", pattern.callback
        else:
            yield from views(pattern, f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace)
