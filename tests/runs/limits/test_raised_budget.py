"""Budgets that are raised when a run continues: from the command line, on the page and over REST."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client

from hub.models import Environment, Team
from hub.teams.quotas import QuotaExceeded
from runs.models import Run
from runs.services import resume_run
from runs.spending import BudgetError, budget_of, change_budget
from tests.commands import run_command
from tests.endpoint import endpoint
from tests.markup import markup
from tests.members import member
from tests.runs.capitals import CAPITALS, all_passed, answer_capital, config_text, start

pytestmark = pytest.mark.django_db(transaction=True)

SPENT = 0.00013  # US dollars, for three of the six answers
LIMITS = {"budget_usd": SPENT, "retries": 0}


@pytest.fixture
def stopped(folder: Path) -> Run:
    """Return a run whose budget is spent."""
    with endpoint(answer_capital) as server:
        run, _ = start(folder, config_text(server.url, limits=LIMITS, concurrency=1))
    assert run.status == "stopped"
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return Run.objects.get()


@pytest.fixture
def runner(client: Client) -> User:
    user = member("Runner")
    client.force_login(user)
    return user


def test_command_continues_the_same_run_with_a_larger_budget(folder: Path) -> None:
    config = folder / "eval.yaml"
    with endpoint(answer_capital) as server:
        config.write_text(config_text(server.url, limits=LIMITS, concurrency=1))
        said = run_command("eval", "--config", config, code=1)
        run = Run.objects.get()
        assert f"eval --resume {run.pk} --budget USD" in said
        run_command("eval", "--resume", run.pk, "--budget", "1")
        assert len(server.requests) == len(CAPITALS)
    run = Run.objects.get()
    assert run.status == "completed" and all_passed(run)
    assert run.config["limits"]["budget_usd"] == 1.0
    [change] = run.budget_changes
    assert (change["from"], change["to"], change["by"]) == (SPENT, 1.0, "")


def test_run_whose_last_response_spends_the_budget_is_completed(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        run, _ = start(folder, config_text(server.url, limits={"budget_usd": 0.00036, "retries": 0}, concurrency=1))
        assert len(server.requests) == len(CAPITALS)
    assert run.cost_usd is not None and run.cost_usd >= 0.00036
    assert (run.status, run.message) == ("completed", "") and all_passed(run)


def test_budget_of_a_complete_run_is_unchanged_and_this_is_said(client: Client, runner: User, folder: Path) -> None:
    with endpoint(answer_capital) as server:
        run, _ = start(folder, config_text(server.url, limits={"budget_usd": 1, "retries": 0}, concurrency=1))
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    said = run_command("eval", "--resume", run.pk, "--budget", "2")
    assert f"Run {run.pk} is complete" in said and "--budget was ignored; the budget is unchanged." in said
    assert "--budget" not in run_command("eval", "--resume", run.pk)
    page = client.post(f"/runs/{run.pk}/resume/", {"budget_usd": "2"}, follow=True).content.decode()
    assert "no response is to be requested. Its budget is unchanged." in page
    stored = Run.objects.get()
    assert (stored.config["limits"]["budget_usd"], stored.budget_changes) == (1, [])


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf"])
def test_value_of_a_budget_is_checked_although_the_run_is_complete(folder: Path, budget: str) -> None:
    with endpoint(answer_capital) as server:
        run, _ = start(folder, config_text(server.url))
    said = run_command("eval", "--resume", run.pk, "--budget", budget, code=2)
    assert f"A budget is an amount of US dollars greater than zero, not {budget}." in said


@pytest.mark.parametrize("options", [[], ["--budget", "2"]])
def test_resume_of_a_complete_run_does_not_read_its_recordings(folder: Path, options: list[str]) -> None:
    recording = folder / "answers.jsonl"
    recording.write_text("".join(f'{{"case": "{case.lower()}", "content": "Paris"}}\n' for case in CAPITALS))
    models = [{"name": "recorded", "provider": "replay", "responses": "answers.jsonl"}]
    run, _ = start(folder, config_text("", models=models))
    recording.write_text("{")
    said = run_command("eval", "--resume", run.pk, *options)
    assert f"Run {run.pk} is complete" in said and ("--budget was ignored" in said) == bool(options)


@pytest.mark.parametrize("budget", ["0.00001", "0", "-1", "nan", "inf"])
def test_budget_that_leaves_nothing_is_an_error(stopped: Run, budget: str) -> None:
    before = stopped.config
    said = run_command("eval", "--resume", stopped.pk, "--budget", budget, code=2)
    assert "budget" in said.lower() and ("larger" in said or "greater than zero" in said)
    stopped.refresh_from_db()
    assert (stopped.status, stopped.config, stopped.budget_changes) == ("stopped", before, [])
    assert stopped.lease_owner == ""  # it can be resumed at once
    with pytest.raises(BudgetError, match=f"Run {stopped.pk} has spent"):
        resume_run(run=stopped, budget_usd=stopped.cost_usd)


def test_spent_budget_has_to_be_raised_to_resume(client: Client, runner: User, stopped: Run) -> None:
    said = run_command("eval", "--resume", stopped.pk, code=2)
    assert f"Run {stopped.pk} has spent $0.00018 of its budget of $0.00013" in said and "--budget USD" in said
    answer = client.post(f"/api/v1/runs/{stopped.pk}/resume")
    assert answer.status_code == 400
    [error] = answer.json()["errors"]
    assert error["path"] == "budget_usd" and "`budget_usd` over REST" in error["message"]
    stopped.refresh_from_db()
    assert (stopped.status, stopped.lease_owner, stopped.budget_changes) == ("stopped", "", [])


def test_budget_option_needs_a_run_that_has_a_budget(folder: Path, stopped: Run) -> None:
    assert "--budget belongs to --resume" in run_command(
        "eval", "--env", "capitals", "--model", "small", "--budget", "2", code=2
    )
    Run.objects.update(config={**stopped.config, "limits": {}})
    assert "has no budget" in run_command("eval", "--resume", stopped.pk, "--budget", "2", code=2)


@pytest.mark.parametrize("option", [["--budget", "2"], ["--retry-too-long"]])
def test_option_of_a_resume_that_a_run_in_progress_cannot_take_is_an_error(stopped: Run, option: list[str]) -> None:
    Run.objects.update(status="queued")
    said = run_command("eval", "--resume", stopped.pk, "--enqueue", *option, code=2)
    assert "The run is already in progress." in said
    assert Run.objects.get().budget_changes == []


def test_page_asks_for_a_new_budget(client: Client, runner: User, stopped: Run) -> None:
    url = f"/runs/{stopped.pk}/"
    shown = client.get(url).getvalue().decode()
    assert 'name="budget_usd"' in shown and "of $0.00013 is spent" in shown
    answer = client.post(f"{url}resume/", follow=True)
    assert f"Run {stopped.pk} has spent $0.00018 of its budget" in answer.getvalue().decode()
    answer = client.post(f"{url}resume/", {"budget_usd": "much"}, follow=True)
    assert "is not an amount of US dollars" in answer.getvalue().decode()
    assert Run.objects.get().status == "stopped"
    client.post(f"{url}resume/", {"budget_usd": "2.5"})
    run = Run.objects.get()
    assert (run.status, budget_of(run), run.budget_changes[0]["by"]) == ("queued", 2.5, runner.username)
    assert f"from $0.00013 to $2.50 by {runner.username}" in markup(client.get(url))


def test_page_of_a_run_that_ended_otherwise_does_not_ask(client: Client, runner: User, stopped: Run) -> None:
    Run.objects.update(status="interrupted")
    answer = client.get(f"/runs/{stopped.pk}/")
    assert answer.status_code == 200 and 'name="budget_usd"' not in answer.getvalue().decode()


def test_rest_resumes_with_a_larger_budget(client: Client, runner: User, stopped: Run) -> None:
    url = f"/api/v1/runs/{stopped.pk}/"

    def post(body: object) -> Any:
        return client.post(f"{url}resume", json.dumps(body), content_type="application/json")

    answer = post({"budget_usd": 0.0001})
    assert answer.status_code == 400 and answer.json()["errors"][0]["path"] == "budget_usd"
    for wrong in ("nan", True):  # true is no amount, although Python reads it as 1
        answer = post({"budget_usd": wrong})
        assert answer.status_code == 400 and answer.json()["errors"][0]["path"] == "budget_usd"
    assert "budget_usd" in post({"budget": 5}).json()["errors"][0]["message"]
    assert post({"budget_usd": 5}).json()["status"] == "queued"
    details = client.get(url).json()
    assert details["config"]["limits"]["budget_usd"] == 5.0
    assert details["budget_changes"][0].items() >= {"from": SPENT, "to": 5.0, "by": runner.username}.items()
    assert post({"budget_usd": 6}).status_code == 409


def test_json_that_is_sent_as_a_form_is_an_error(client: Client, runner: User, stopped: Run) -> None:
    client.force_login(runner)
    body = "application/x-www-form-urlencoded"
    answer = client.post(f"/api/v1/runs/{stopped.pk}/resume", '{"budget_usd": 20}', content_type=body)
    assert answer.status_code == 400 and "budget_usd" in answer.content.decode()
    assert Run.objects.get().status == Run.Status.STOPPED


def test_quota_of_the_team_holds_although_the_budget_is_raised(stopped: Run) -> None:
    group = Group.objects.create(name="Vision")
    team = Team.objects.create(group=group, slug="vision", spend_usd_per_month=0.0)
    Run.objects.update(team=team)
    with pytest.raises(QuotaExceeded):
        resume_run(run=Run.objects.get(), budget_usd=5.0)
    assert budget_of(Run.objects.get()) == SPENT


def test_change_of_the_budget_keeps_earlier_changes_by_others(stopped: Run) -> None:
    other = Run.objects.get(pk=stopped.pk)
    with transaction.atomic():
        change_budget(other, 2.5, None)
    with transaction.atomic():
        change_budget(stopped, 5.0, None)
    changes = Run.objects.get(pk=stopped.pk).budget_changes
    assert [(change["from"], change["to"]) for change in changes] == [(SPENT, 2.5), (2.5, 5.0)]
