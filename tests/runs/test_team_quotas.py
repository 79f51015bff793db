"""Quotas of teams for runs: spending in a month, across runs and processes, and runs per day."""

import json
import time
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.db.models import F
from django.test import Client

from hub.models import Case, Environment, Team
from hub.services import import_bundle
from hub.teams.quotas import QuotaExceeded, end_of_month, this_month
from runs.config.endpoints import endpoint_spec
from runs.execution.runner import execute_run
from runs.execution.session.context import ExecutionOptions
from runs.execution.session.run_budget import return_grants
from runs.execution.session.session import RunSession
from runs.leases import RENEW_EVERY_S
from runs.limits.budget import Part, SharedBudget
from runs.limits.team_quotas import (
    check_new_run,
    get_runs_use,
    get_spend_use,
    grant_next,
    grant_team_part,
    return_team_rest,
    start_team_spend,
)
from runs.models import ModelEndpoint, Response, Run, TeamSpend
from runs.providers.registry import costs_money
from runs.services import cancel_run, config_of, create_run, move_run, resume_run
from tests.endpoint import Answer, endpoint
from tests.factories import stored_response, stored_run, stored_version
from tests.listeners import SilentListener
from tests.members import member
from tests.runs.capitals import CAPITALS, answer_capital, config_text, execute, load
from tests.runs.config.resolution import find_environments
from tests.runs.execution.test_shards import create_numbers_run, numbers, repeat_number

__all__ = ["numbers"]
pytestmark = pytest.mark.django_db(transaction=True)


def team(**quotas: Any) -> Team:
    return Team.objects.create(group=Group.objects.create(name="Vision"), slug="vision", **quotas)


def new_run(folder: Path, url: str, owner: Team, **changes: Any) -> Run:
    config = load(folder, config_text(url, **changes))
    return create_run(config=config, environments=find_environments(config), team=owner)


def spent(owner: Team) -> float:
    return get_spend_use(owner).used


def test_run_records_what_it_spends_this_month(folder: Path) -> None:
    owner = team()
    with endpoint(answer_capital) as server:
        run = new_run(folder, server.url, owner)
        done, _ = execute(run, config_of(run))
    assert done.status == "completed" and done.cost_usd
    assert spent(owner) == pytest.approx(done.cost_usd)
    row = TeamSpend.objects.get()
    assert (row.run, row.team, row.month) == (run, owner, this_month())


def test_run_stops_when_the_quota_is_spent_and_continues_once_it_is_raised(folder: Path) -> None:
    owner = team(spend_usd_per_month=0.00013)
    with endpoint(answer_capital) as server:
        run = new_run(folder, server.url, owner, concurrency=1)
        stopped, _ = execute(run, config_of(run))
        assert stopped.status == "stopped"
        assert "The team vision may spend" in stopped.message and "It resets on" in stopped.message
        assert 0 < len(server.requests) < len(CAPITALS)
        assert spent(owner) == pytest.approx(stopped.cost_usd)
        with pytest.raises(QuotaExceeded):
            resume_run(run=Run.objects.get(pk=run.pk))
        Team.objects.update(spend_usd_per_month=1.0)
        run = Run.objects.get(pk=run.pk)
        assert resume_run(run=run)
        done, _ = execute(Run.objects.get(pk=run.pk), config_of(run))
    assert (done.status, len(server.requests)) == ("completed", len(CAPITALS))
    assert spent(owner) == pytest.approx(done.cost_usd)


def test_smaller_of_budget_and_quota_stops_the_run(folder: Path) -> None:
    owner = team(spend_usd_per_month=5.0)
    with endpoint(answer_capital) as server:
        run = new_run(folder, server.url, owner, concurrency=1, limits={"budget_usd": 0.00013, "retries": 0})
        stopped, _ = execute(run, config_of(run))
    assert stopped.status == "stopped" and "of the budget of $0.00013 is spent" in stopped.message
    assert spent(owner) == pytest.approx(stopped.cost_usd)


def test_processes_of_a_divided_run_keep_the_quota_together(numbers: Path, settings: Any) -> None:
    settings.SHARD_RESPONSES = 30
    owner = team(spend_usd_per_month=0.004)
    with endpoint(repeat_number) as server:
        run = create_numbers_run(numbers, server.url)
        Run.objects.update(team=owner)
        run.refresh_from_db()
        options = ExecutionOptions(workers_help=True)
        execute_run(run=run, config=config_of(run), listener=SilentListener(), options=options)
    costs = list(Response.objects.values_list("cost_usd", flat=True))
    assert run.status == "stopped" and "The team vision" in run.message
    assert 0.9 * 0.004 <= sum(costs) <= 0.004 + 8 * max(costs)
    assert spent(owner) == pytest.approx(sum(costs))


def test_parts_of_several_runs_never_exceed_the_quota() -> None:
    owner, version = team(spend_usd_per_month=10.0), stored_version()
    runs = [stored_run(version, team=owner) for _ in range(2)]
    parts = [grant_team_part(runs[number % 2], 0.0) for number in range(200)]
    assert sum(part.usd for part in parts) == pytest.approx(10.0)
    assert parts[-1].usd == 0.0 and "$10.00" in parts[-1].refusal
    return_team_rest(runs[0], 2.0)
    assert sum(grant_team_part(runs[1], 0.0).usd for _ in range(200)) == pytest.approx(2.0)


def test_part_is_no_larger_than_what_is_left_of_the_budget() -> None:
    owner = team(spend_usd_per_month=10.0)
    run = stored_run(stored_version(), team=owner)
    part = grant_next(run, 1.0, 0.0)
    assert part == Part(0.25) and spent(owner) == pytest.approx(0.25)
    Run.objects.update(budget_granted=1.0)
    assert grant_next(run, 1.0, 0.0).usd == 0.0 and spent(owner) == pytest.approx(0.25)


def test_what_a_killed_process_was_granted_is_returned_at_the_next_start() -> None:
    owner = team(spend_usd_per_month=10.0)
    run = stored_run(stored_version(), team=owner)
    grant_team_part(run, 0.0)
    assert spent(owner) == 2.5
    start_team_spend(run, 0.75)
    assert spent(owner) == 0.75


@pytest.mark.parametrize("end", ["completed", "cancelled", "failed"])
def test_what_a_killed_process_was_granted_is_returned_when_the_run_ends(
    folder: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = team(spend_usd_per_month=10.0)

    def script(request: dict[str, Any], number: int) -> Answer:
        if number == 1:  # as if another process had been granted a part, and killed
            grant_team_part(Run.objects.get(), 0.0)
            Run.objects.update(cancel_requested=end == "cancelled")
            connection.close()
            if end == "failed":
                monkeypatch.setattr(RunSession, "_status_after_evaluation", fail)
        elif end == "cancelled":
            time.sleep(2 * RENEW_EVERY_S)  # until the run stops
        return answer_capital(request)

    def fail(*_: object) -> None:
        raise ValueError("a mistake in the code")

    with endpoint(script) as server:
        run = new_run(folder, server.url, owner, concurrency=1)
        with nullcontext() if end != "failed" else pytest.raises(ValueError, match="a mistake"):
            execute(run, config_of(run))
    run.refresh_from_db()
    assert run.status == end and run.cost_usd
    assert spent(owner) == pytest.approx(run.cost_usd)


def test_what_a_killed_process_was_granted_is_returned_when_its_run_is_cancelled() -> None:
    owner = team(spend_usd_per_month=10.0)
    version = stored_version()
    run, other = (stored_run(version, team=owner, status="running") for _ in range(2))
    stored_response(run, Case.objects.earliest("position"), cost_usd=0.25)
    for item in (run, other):
        grant_team_part(item, 0.0)
    cancel_run(run=run)
    assert run.status == "cancelled"
    assert spent(owner) == 0.25 + 1.875


def test_process_that_leaves_after_the_end_of_its_run_returns_nothing_twice() -> None:
    owner = team(spend_usd_per_month=10.0)
    run = stored_run(stored_version(), team=owner, status="running")
    part = grant_team_part(run, 0.0)
    cancel_run(run=run)
    stored_response(run, Case.objects.earliest("position"), cost_usd=0.25)
    budget = SharedBudget(request=lambda beyond: None, granted=part.usd, own=0.25)  # type: ignore[arg-type,return-value]
    return_grants(run, budget, holds_lease=True)
    assert spent(owner) == 0.25


@pytest.mark.parametrize(("holds_lease", "granted"), [(True, 2.25), (False, 4.0)])
def test_process_whose_run_was_taken_over_returns_nothing(holds_lease: bool, granted: float) -> None:
    owner = team(spend_usd_per_month=10.0)
    run = stored_run(stored_version(), team=owner, status="running", budget_granted=4.0)
    start_team_spend(run, 4.0)
    budget = SharedBudget(limit=9.0, request=lambda beyond: None, granted=2.0, own=0.25)  # type: ignore[arg-type,return-value]
    return_grants(run, budget, holds_lease=holds_lease)
    run.refresh_from_db()
    assert (spent(owner), run.budget_granted) == (granted, granted)


def test_each_month_begins_with_the_whole_quota() -> None:
    owner = team(spend_usd_per_month=10.0)
    run = stored_run(stored_version(), team=owner)
    start_team_spend(run, 4.0)
    TeamSpend.objects.update(month=this_month() - timedelta(days=1))
    assert spent(owner) == 0.0
    start_team_spend(run, 5.5)  # the run was resumed this month
    assert spent(owner) == 1.5
    assert end_of_month().date() > this_month() and end_of_month().day == 1


def test_moved_run_leaves_its_spending_with_the_earlier_team() -> None:
    owner = team(spend_usd_per_month=10.0)
    run = stored_run(stored_version(), team=owner)
    start_team_spend(run, 4.0)
    other = Team.objects.create(group=Group.objects.create(name="Speech"), slug="speech")
    run.team = other
    run.save()
    start_team_spend(run, 6.0)
    assert (spent(owner), spent(other)) == (4.0, 2.0)


# ---- new runs over REST and on pages ---------------------------------------------------------------------------------


@pytest.fixture
def owner(client: Client) -> Team:
    version = stored_version("sums", 2, harness={"type": "single_turn"}, scoring={"rules": [{"type": "number"}]})
    Environment.objects.update(latest=version, visibility="published")
    ModelEndpoint.objects.create(name="small", model="m", base_url="http://127.0.0.1:9/v1", price_input=1)
    user = member("Runner")
    owner = team()
    owner.group.user_set.add(user)
    client.force_login(user)
    return owner


def spend(owner: Team, usd: float) -> None:
    TeamSpend.objects.create(team=owner, month=this_month(), usd=usd)


def specs(owner: Team) -> list[Any]:
    return [spec for item in ModelEndpoint.objects.all() if costs_money(spec := endpoint_spec(item))]


def check(owner: Team) -> None:
    with transaction.atomic():
        check_new_run(owner, specs(owner))


def test_no_run_starts_once_the_quota_is_spent(owner: Team) -> None:
    Team.objects.update(spend_usd_per_month=2.0)
    owner.refresh_from_db()
    spend(owner, 1.5)
    check(owner)
    TeamSpend.objects.update(usd=F("usd") + 0.5)
    with pytest.raises(QuotaExceeded) as caught:
        check(owner)
    assert caught.value.message.startswith("The team vision may spend $2.00 in ")
    assert caught.value.message.endswith("An administrator can raise it.")
    assert caught.value.details()["used"] == 2.0 and (caught.value.retry_after or 0) > 0
    ModelEndpoint.objects.update(price_input=0)
    check(owner)  # a free model


def test_spending_quota_needs_prices(owner: Team) -> None:
    Team.objects.update(spend_usd_per_month=2.0)
    owner.refresh_from_db()
    ModelEndpoint.objects.update(price_input=None)
    with pytest.raises(ValueError, match="small has no price, so the spending quota of the team vision"):
        check(owner)


def test_runs_per_day_are_limited_over_rest_and_on_pages(client: Client, owner: Team, folder: Path) -> None:
    environment = import_bundle(bundle=folder / "capitals").environment
    Environment.objects.filter(pk=environment.pk).update(visibility="published")
    Team.objects.update(runs_per_day=1)
    config = json.dumps({"name": "a", "environments": ["capitals"], "models": ["small"]})
    assert client.post("/api/v1/runs/", config, content_type="application/json").status_code == 201
    answer = client.post("/api/v1/runs/", config, content_type="application/json")
    body = answer.json()
    assert (answer.status_code, body["code"]) == (429, "quota_exceeded")
    assert (body["quota"], body["used"]) == (1, 1) and int(answer["Retry-After"]) <= 86400
    assert "may start 1 runs a day" not in body["message"]
    assert "may start 1 run a day, and started 1 today. It resets on" in body["message"]
    given = {"environment": "capitals", "model": "small", "cases": "all", "attempts": 1, "concurrency": 1}
    page = client.post("/runs/new/", {**given, "team": "vision", "do": "start"})
    assert page.status_code == 422 and "may start 1 run a day" in page.content.decode()
    page = client.post("/runs/start/capitals/", {"cases": "all", "team": "vision"})
    assert page.status_code == 422 and "may start 1 run a day" in page.content.decode()
    assert Run.objects.count() == 1
    Run.objects.update(created_at=F("created_at") - timedelta(days=1))
    assert client.post("/api/v1/runs/", config, content_type="application/json").status_code == 201


def test_moved_run_still_counts_as_one_of_the_day(folder: Path) -> None:
    owner = team(runs_per_day=1)
    with endpoint(answer_capital) as server:
        run = new_run(folder, server.url, owner)
        done, _ = execute(run, config_of(run))
        move_run(run=done, team=None)
        with pytest.raises(QuotaExceeded, match="may start 1 run a day, and started 1 today"):
            new_run(folder, server.url, owner)
        Run.objects.update(created_at=F("created_at") - timedelta(days=1))
        new_run(folder, server.url, owner)
    assert get_runs_use(owner).used == 1
