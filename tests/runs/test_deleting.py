"""Deleting runs: who may, where a deleted run is hidden, how it is restored, and `manage.py runs`."""

import json

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hub.models import Environment
from llmeval_site.accounts.tokens import create_token
from preferences.models import Preference
from preferences.selectors import visible_preferences
from review.models import Pair
from review.queue.backlog import next_pair_by_run
from runs.models import Run
from runs.selectors import RunNotFound, get_run
from runs.services import RunActive, delete_run, restore_run, resume_run
from tests.factories import stored_outcomes, stored_response, stored_run, stored_version
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    return member("Runner", name="owner")


@pytest.fixture
def run(owner: User) -> Run:
    version = stored_version()
    Environment.objects.update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    run = stored_run(version, ["alpha", "beta"], name="old evaluation", created_by=owner)
    stored_outcomes(run, "ppff", model="alpha")
    return run


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_deleted_run_is_hidden_everywhere_and_can_be_restored(run: Run, owner: User) -> None:
    client = client_of(owner)
    response = run.environments.get().responses.first()
    pages = [
        f"/runs/{run.pk}/",
        f"/runs/{run.pk}/report",
        f"/runs/{run.pk}/failures?format=jsonl",
        f"/responses/{response.pk}/",
        f"/api/v1/runs/{run.pk}/",
        f"/api/v1/runs/{run.pk}/report",
        f"/api/v1/runs/{run.pk}/responses/",
        f"/api/v1/compare/?a={run.pk}&model_a=alpha&model_b=beta",
    ]
    lists = [
        "/",
        "/runs/",
        "/search/?q=old",
        "/api/v1/runs/",
        "/compare/",
        "/hub/sums/1.0.0/results/",
        "/models/alpha/",
    ]
    named = [url for url in lists if b"old evaluation" in client.get(url).content]
    assert {"/", "/runs/", "/search/?q=old", "/api/v1/runs/"} <= set(named)
    assert [client.get(url).status_code for url in pages] == [200] * len(pages)

    delete_run(run=run, user=owner)
    assert [client.get(url).status_code for url in pages] == [404] * len(pages)
    for url in lists:
        assert b"old evaluation" not in client.get(url).content, url
    assert client.get("/api/v1/runs/").json()["results"] == []

    restore_run(run=run)
    assert [client.get(url).status_code for url in pages] == [200] * len(pages)
    assert (run.deleted_at, run.deleted_by) == (None, None)


def test_owner_and_staff_may_delete_on_the_page_and_over_rest(run: Run, owner: User) -> None:
    for user, status in ((member("Runner", name="other"), 403), (owner, 302), (member(name="staff", staff=True), 302)):
        assert client_of(user).post(f"/runs/{run.pk}/delete/").status_code == status
        assert bool(Run.objects.get().deleted_at) is (status == 302)
        restore_run(run=run)
    for user, status in ((member("Runner", name="another"), 403), (owner, 204)):
        _, key = create_token(user=user, scopes=["run"])
        answer = Client(headers={"Authorization": f"Token {key}"}).delete(f"/api/v1/runs/{run.pk}/")
        assert answer.status_code == status
    assert Run.objects.get().deleted_by == owner


def test_the_page_offers_deleting_only_to_those_who_may(run: Run, owner: User) -> None:
    action = f'action="/runs/{run.pk}/delete/"'.encode()
    assert action in client_of(owner).get(f"/runs/{run.pk}/").content
    assert action not in client_of(member()).get(f"/runs/{run.pk}/").content


def test_a_run_that_was_deleted_since_it_was_read_is_not_resumed(run: Run) -> None:
    Run.objects.update(status="cancelled")
    run.refresh_from_db()
    delete_run(run=Run.objects.get())
    with pytest.raises(RunNotFound, match=f"Run {run.pk} is deleted"):
        resume_run(run=run)
    assert Run.objects.get().status == "cancelled"


@pytest.mark.parametrize("status", ["queued", "running"])
def test_a_run_that_has_not_ended_cannot_be_deleted(run: Run, owner: User, status: str) -> None:
    Run.objects.update(status=status)
    with pytest.raises(RunActive, match="Cancel it first"):
        delete_run(run=run)
    answer = client_of(owner).delete(f"/api/v1/runs/{run.pk}/")
    assert answer.status_code == 409 and "Cancel it first" in answer.json()["message"]
    client_of(owner).post(f"/runs/{run.pk}/delete/")
    assert Run.objects.get().deleted_at is None


def test_deleting_twice_keeps_the_first_deletion(run: Run, owner: User) -> None:
    delete_run(run=run, user=owner)
    before = run.deleted_at
    delete_run(run=run, user=None)
    assert (run.deleted_at, run.deleted_by) == (before, owner)


def test_pairs_of_a_deleted_run_are_not_reviewed_and_its_preferences_are_kept(run: Run) -> None:
    case = run.environments.get().version.cases.order_by("position").first()
    first = run.environments.get().responses.get(case=case)
    second = stored_response(run, case, "failed", model="beta")
    Pair.objects.create(run=run, case=case, first=first, second=second, kind="models", position=0, overlap=1, free=1)
    Preference.objects.create(
        first=first, second=second, verdict="first", source="execution", run=run, version=case.version, case=case
    )
    reviewer = member("Reviewer")
    assert next_pair_by_run(reviewer)
    delete_run(run=run)
    assert not next_pair_by_run(reviewer)
    assert visible_preferences(User.objects.create_superuser("root")).count() == 1


def test_admin_hides_runs_of_private_environments_of_others(run: Run) -> None:
    client = client_of(member("Runner", name="staff", staff=True))
    assert b"old evaluation" in client.get("/admin/runs/run/").content
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE)
    assert b"old evaluation" not in client.get("/admin/runs/run/").content


def test_staff_delete_and_restore_runs_in_the_admin(run: Run) -> None:
    client = client_of(User.objects.create_superuser("root"))
    for action, deleted in (("delete_runs", True), ("restore_runs", False)):
        answer = client.post("/admin/runs/run/", {"action": action, "_selected_action": [run.pk]}, follow=True)
        assert f"{'Deleted' if deleted else 'Restored'} 1 run." in answer.content.decode()
        assert bool(Run.objects.get().deleted_at) is deleted
        for wanted in ("0", "1"):
            listed = b"old evaluation" in client.get(f"/admin/runs/run/?deleted={wanted}").content
            assert listed is ((wanted == "1") == deleted)
    assert client.get(f"/admin/runs/run/{run.pk}/change/").status_code == 200


# ---- commands --------------------------------------------------------------------------------------------------------


def test_latest_is_the_latest_run_that_is_not_deleted(run: Run) -> None:
    newer = stored_run(run.environments.get().version)
    assert get_run("latest") == newer
    delete_run(run=newer)
    assert get_run("latest") == run
    with pytest.raises(RunNotFound, match=rf"Run {newer.pk} is deleted\. An administrator can restore it"):
        get_run(newer.pk)
    delete_run(run=run)
    with pytest.raises(RunNotFound, match="none is stored yet"):
        get_run("latest")


def test_the_command_lists_shows_deletes_and_restores_runs(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("runs", "list", "--limit", str(10**25))
    assert "old evaluation  (failed 2, passed 2)" in capsys.readouterr().out
    call_command("runs", "delete", "latest")
    assert "completed, deleted" in capsys.readouterr().out
    call_command("runs", "list", "--json")
    assert json.loads(capsys.readouterr().out) == []
    call_command("runs", "list", "--deleted", "--json")
    assert json.loads(capsys.readouterr().out)[0]["run"] == run.pk
    call_command("runs", "restore", str(run.pk))
    call_command("runs", "show", str(run.pk), "--json")
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["responses"] == {"passed": 2, "failed": 2}


def test_the_command_lists_many_runs_with_as_many_queries_as_one(run: Run) -> None:
    with CaptureQueriesContext(connection) as one:
        call_command("runs", "list")
    for number in range(3):
        stored_outcomes(stored_run(stored_version(f"other-{number}")), "ppff")
    with CaptureQueriesContext(connection) as several:
        call_command("runs", "list")
    assert len(several) == len(one)


def test_the_command_cancels_a_queued_run(run: Run) -> None:
    Run.objects.update(status="queued", finished_at=None)
    call_command("runs", "cancel", "latest")
    assert Run.objects.get().status == "cancelled"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show"], "Name the run"),
        (["list", "3"], "takes no run"),
        (["list", "--limit", "0"], "--limit is a number from 1"),
        (["show", "abc"], "There is no run abc; the latest is"),
        (["delete", "99999"], "There is no run 99999"),
        (["restore", "latest"], "No deleted run has the number latest"),
        (["show", "latest", "--deleted"], "--deleted belongs to `runs list`"),
    ],
)
def test_wrong_arguments_are_refused(run: Run, capsys: pytest.CaptureFixture[str], arguments, message) -> None:
    with pytest.raises(SystemExit) as caught:
        call_command("runs", *arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
