"""Held-out environments: title, summary and figures for everybody, content for the owner and curators."""

import html

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from hub.gates.certificates import Certificate, GateResult
from hub.gates.queue import TRIES
from hub.models import Environment, EnvironmentVersion, GateRequest
from hub.protocols.calls import quoting
from hub.selectors import list_withheld_environments, may_see_content
from preferences.evidence import without_reasons
from runs.models import Run, RunModel
from tests.factories import stored_archive, stored_response, stored_run, stored_score, stored_version
from tests.members import member

pytestmark = pytest.mark.django_db
TARGET = "Expected fifteen-target"


@pytest.fixture
def run() -> Run:
    version = stored_version(
        cases=[{"id": "c0", "input": "the-input", "target": TARGET}], rules_mark="manifest-content", held_out=True
    )
    EnvironmentVersion.objects.update(readme="# Sums\n\nreadme-content")
    Environment.objects.update(
        latest=version, visibility=Environment.Visibility.PUBLISHED, owner=member(name="owner"), summary="the summary"
    )
    EnvironmentVersion.objects.update(certificate=certificate(version))
    stored_archive(version)
    tracking = {"parent": "mlflow-run", "experiment_id": "1", "uri": "https://mlflow.example"}
    run = stored_run(version, tracking_state="logged", tracking=tracking)
    response = stored_response(run, version.cases.get(), "failed", reason=TARGET)
    stored_score(response, reason=TARGET, detail={"expected": TARGET}, execution={"stdout": TARGET})
    return run


def certificate(version: EnvironmentVersion) -> Certificate:
    """Return a certificate whose failure quotes the target, and whose note names a case."""
    gate: GateResult = {
        "name": "gold",
        "what": "Gold answers pass.",
        "status": "failed",
        "checked": 1,
        "failed": 1,
        "failures": [{"case": "c0", "message": f"failed. {TARGET}"}],
        "note": "case 'c0': noted",
    }
    return {
        "digest": version.digest,
        "environment": str(version),
        "cases": 1,
        "gates": [gate],
        "sandbox": None,
        "versions": {},
        "date": "2026-01-31",
    }


def permitted() -> User:
    user = member(name="permitted")
    user.user_permissions.add(Permission.objects.get(codename="view_held_out"))
    return user


def people() -> dict[User, bool]:
    """Users, and whether they may see the content."""
    return {
        User.objects.get(username="owner"): True,
        member("Curator"): True,
        permitted(): True,
        User.objects.create_superuser("root"): True,
        member("Runner"): False,
        member("Reviewer"): False,
        member(staff=True): False,
    }


CLOSED = [
    "/hub/sums/1.0.0/cases/c0/",
    "/hub/sums/1.0.0/cases/c0/defect/",
    "/hub/sums/1.0.0/changes/",
    "/hub/sums/1.0.0/bundle",
    "/hub/sums/1.0.0/files/",
    "/hub/sums/1.0.0/file",
    "/api/v1/environments/sums/versions/1.0.0/cases/",
    "/api/v1/environments/sums/versions/latest/cases/",
    "/api/v1/environments/sums/versions/1.0.0/bundle",
    "/runs/{run}/failures?format=jsonl",
    "/runs/{run}/rollouts?format=jsonl",
    "/api/v1/runs/{run}/failures?format=jsonl",
    "/api/v1/runs/{run}/rollouts",
    "/runs/{run}/report?format=markdown",
    "/runs/{run}/report?format=junit",
    "/api/v1/runs/{run}/report?format=junit",
]
OPEN = [
    "/hub/",
    "/hub/sums/",
    "/hub/sums/1.0.0/",
    "/hub/sums/1.0.0/cases/",
    "/hub/sums/1.0.0/cases/?q=the-input&sort=passed",
    "/hub/sums/1.0.0/results/",
    "/hub/sums/1.0.0/certificate/",
    "/search/?q=c0",
    "/runs/{run}/",
    "/runs/{run}/report",
    "/runs/{run}/cases/{case}/",
    "/responses/{response}/",
    "/responses/{response}/raw",
    "/review/runs/{run}/",
    "/review/responses/{response}/",
    "/compare/?a={run}",
    "/preferences/",
    "/api/v1/environments/",
    "/api/v1/environments/sums/",
    "/api/v1/environments/sums/versions/1.0.0/",
    "/api/v1/runs/{run}/",
    "/api/v1/runs/{run}/responses/",
    "/api/v1/runs/{run}/report",
    "/api/v1/runs/{run}/report?format=html",
]


def address(url: str, run: Run) -> str:
    response = run.models.get().responses.get()
    return url.format(run=run.pk, response=response.pk, case=response.case_id)


@pytest.mark.parametrize("url", CLOSED)
def test_held_out_cases_and_files_are_visible_to_owner_and_curators_only(run: Run, url: str) -> None:
    for user, may in people().items():
        client = Client()
        client.force_login(user)
        status = client.get(address(url, run)).status_code
        assert (status != 403) if may else (status == 403), f"{user}: {status}"


@pytest.mark.parametrize("url", OPEN)
def test_public_pages_of_a_held_out_environment_show_no_target_and_no_reason(run: Run, url: str) -> None:
    for user, may in people().items():
        client = Client()
        client.force_login(user)
        answer = client.get(address(url, run))
        assert answer.status_code == 200, user
        if not may:
            page = answer.getvalue().decode()
            for secret in (TARGET, "readme-content", "manifest-content", "mlflow.example"):
                assert secret not in page, f"{user} sees {secret}"


def test_owner_and_curators_see_held_out_reasons_details_and_mlflow(run: Run) -> None:
    client = Client()
    for user, may in people().items():
        client.force_login(user)
        for url in ("/runs/{run}/", "/responses/{response}/", "/api/v1/runs/{run}/responses/", "/runs/{run}/report"):
            assert (TARGET in client.get(address(url, run)).getvalue().decode()) is may, (url, user)
        assert ("mlflow.example" in client.get(address("/runs/{run}/", run)).content.decode()) is may


def test_certificates_say_what_failed_only_to_those_who_may_see_cases(run: Run) -> None:
    client = Client()
    for user, may in people().items():
        client.force_login(user)
        (gate,) = client.get("/api/v1/environments/sums/versions/1.0.0/").json()["certificate"]["gates"]
        assert (gate["status"], gate["failed"]) == ("failed", 1)
        assert bool(gate["failures"]) is bool(gate["note"]) is may, user
        page = client.get("/hub/sums/1.0.0/certificate/").text
        assert (TARGET in page) is ("noted" in page) is may, user


@pytest.mark.parametrize("tries", [1, TRIES])
def test_problem_of_unfinished_gates_is_for_those_who_may_see_cases(run: Run, tries: int) -> None:
    EnvironmentVersion.objects.update(certificate=None)
    GateRequest.objects.create(version=EnvironmentVersion.objects.get(), tries=tries, problem=f"ValueError: {TARGET}")
    client = Client()
    for user, may in people().items():
        client.force_login(user)
        for url in ("/hub/sums/1.0.0/certificate/", "/hub/sums/1.0.0/"):
            page = client.get(url).text
            assert TARGET not in page or may, (user, url)
        assert (TARGET in client.get("/hub/sums/1.0.0/certificate/").text) is may, user


def test_search_does_not_match_withheld_reasons(run: Run) -> None:
    client = Client()
    for user, may in people().items():
        client.force_login(user)
        found = client.get(f"/api/v1/runs/{run.pk}/responses/?q=fifteen").json()["results"]
        assert len(found) == may, user
        assert len(client.get(f"/api/v1/runs/{run.pk}/responses/?q=c0").json()["results"]) == 1


def test_reasons_of_errors_and_of_other_environments_stay_visible(run: Run) -> None:
    run.models.get().responses.update(status="errored", reason="The endpoint of small answered 500.")
    client = Client()
    client.force_login(member())
    page = f"/api/v1/runs/{run.pk}/responses/"
    assert client.get(page).json()["results"][0]["reason"] == "The endpoint of small answered 500."
    run.models.get().responses.update(status="failed", reason=TARGET)
    Environment.objects.update(held_out=False)
    assert client.get(page).json()["results"][0]["reason"] == TARGET


@pytest.mark.parametrize("kind", ["environment", "case", "internal"])
def test_errors_of_the_code_of_a_bundle_are_withheld_because_they_may_quote_the_target(run: Run, kind: str) -> None:
    reason = f"check.py: ValueError: invalid literal for int() with base 10: '{TARGET}'"
    run.models.get().responses.update(status="errored", error_kind=kind, reason=reason)
    Run.objects.update(status=Run.Status.RUNNING, evaluated_at=None)
    urls = ["/runs/{run}/", "/responses/{response}/", "/runs/{run}/cases/{case}/", "/runs/{run}/progress/"]
    urls += ["/runs/{run}/report", "/api/v1/runs/{run}/responses/", "/api/v1/runs/{run}/report?format=html"]
    for user, may in people().items():
        client = Client()
        client.force_login(user)
        for url in urls:
            page = html.unescape(client.get(address(url, run)).getvalue().decode())
            assert (TARGET in page) is may, (url, user)


@pytest.mark.parametrize("ended", [True, False])
def test_replies_quoted_by_stopped_models_and_stages_are_shown_to_nobody(run: Run, ended: bool) -> None:
    message = quoting("The endpoint answered 400.", f"bad request: {TARGET}")
    run.models.update(stopped=message)
    RunModel.objects.create(run=run, role="grader", label="judge", position=1, spec={}, stopped=message)
    Run.objects.update(summaries={"judge": {"error": message}})
    if not ended:
        Run.objects.update(status=Run.Status.RUNNING, evaluated_at=None)
    pages = ["/runs/{run}/", "/runs/{run}/report", "/runs/{run}/progress/"]
    pages += ["/api/v1/runs/{run}/", "/api/v1/runs/{run}/report", "/api/v1/runs/{run}/report?format=html"]
    for user in people():
        client = Client()
        client.force_login(user)
        for page in pages:
            text = client.get(page.format(run=run.pk)).getvalue().decode()
            assert f"bad request: {TARGET}" not in text, (page, user)
            assert "The endpoint answered 400." in text or (ended and page in ("/runs/{run}/progress/",))
    Environment.objects.update(held_out=False)
    assert f"bad request: {TARGET}" in client.get(f"/api/v1/runs/{run.pk}/report").text


def test_errors_of_mlflow_are_for_those_who_may_see_the_log(run: Run) -> None:
    error = f"MLflow rejected the assessment of trace tr-1: {TARGET}"
    pages = ["/runs/{run}/", "/runs/{run}/report", "/api/v1/runs/{run}/report"]
    client, readers = Client(), people()
    for summary in ({"error": error}, {"state": "pending", "error": error}):
        Run.objects.update(tracking_state="pending", tracking={"error": error}, summaries={"tracking": summary})
        for user, may in readers.items():
            client.force_login(user)
            for page in pages:
                assert ("trace tr-1" in client.get(page.format(run=run.pk)).getvalue().decode()) is may, (user, page)


def test_held_out_rule_is_equal_for_objects_and_querysets(run: Run) -> None:
    environment = Environment.objects.get()
    for user, may in people().items():
        assert may_see_content(user, environment) is may
        assert list_withheld_environments(user).exists() is not may


def test_evidence_without_reasons_keeps_values_but_no_target() -> None:
    side = {"status": "failed", "rules": [{"rule": "r", "value": 0.0, "reason": TARGET, "execution": {"out": TARGET}}]}
    shown = without_reasons({"first": side, "second": side, "winner": ""})
    assert TARGET not in str(shown) and shown["first"]["rules"][0]["value"] == 0.0


@pytest.mark.parametrize(("held_out", "linked"), [(False, True), (True, False)])
def test_dashboard_links_to_changes_only_if_the_user_may_see_them(client: Client, held_out: bool, linked: bool) -> None:
    for version in ("1.0.0", "1.1.0"):
        stored_version("desk", version=version, held_out=held_out)
    Environment.objects.update(
        latest=EnvironmentVersion.objects.get(version="1.1.0"), visibility=Environment.Visibility.PUBLISHED
    )
    client.force_login(member())
    changes = "/hub/desk/1.1.0/changes/"
    assert (changes in client.get("/").content.decode()) is linked
    assert (client.get(changes).status_code == 200) is linked
