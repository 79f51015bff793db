"""The spending quota of a team with two Celery workers, each of which executes a run of the team at the same time."""

import threading
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Sum

from hub.common.wording import dollars
from hub.models import Team
from runs.limits.team_quotas import get_spend_use
from runs.models import Response, Run
from tests.endpoint import Answer, endpoint
from tests.processes import send_task, wait_until, worker
from tests.runs.execution.test_shards import create_numbers_run, numbers, repeat_number
from tests.services import empty_redis_url
from tests.site.teams.world import stored_team

__all__ = ["numbers"]
pytestmark = pytest.mark.django_db(transaction=True)

QUOTA = 0.003  # USD; one of the runs would cost 0.0036
CALL = 15e-6  # USD; each has 15 tokens
CONCURRENCY = 4  # of each run
MODELS = ("one", "two")  # of different names, because one run would get the replies of the other from the cache


def create_run_of_team(folder: Path, url: str, model: str, team: Team) -> Run:
    listed = {"name": model, "provider": "openai", "model": model, "base_url": url, "price": {"input": 1, "output": 1}}
    run = create_numbers_run(folder, url, models=[listed], concurrency=CONCURRENCY)
    Run.objects.filter(pk=run.pk).update(team=team)
    return run


def cost_of(run: Run) -> float:
    rows = Response.objects.filter(run_environment__run=run)
    return float(rows.aggregate(total=Sum("cost_usd"))["total"] or 0.0)


@pytest.mark.exhaustive
def test_two_runs_at_once_stop_when_their_team_has_spent_its_quota(numbers: Path) -> None:
    team = stored_team("vision", spend_usd_per_month=QUOTA)
    asked: set[str] = set()
    both = threading.Event()

    def script(request: dict[str, Any], number: int) -> Answer:
        """Reply once both runs are executed."""
        asked.add(request["model"])
        if asked == set(MODELS):
            both.set()
        both.wait(60)
        return repeat_number(request)

    broker = empty_redis_url()
    with endpoint(script) as server:
        runs = [create_run_of_team(numbers, server.url, model, team) for model in MODELS]
        try:
            with worker(broker), worker(broker):
                for _ in runs:
                    send_task(broker)
                wait_until(lambda: Run.objects.filter(status="stopped").count() == 2)
                wait_until(lambda: not Run.objects.exclude(lease_owner="").exists())
        finally:
            both.set()
        for run in runs:
            run.refresh_from_db()
            assert f"The team vision may spend {dollars(QUOTA)} in " in run.message and "It resets on" in run.message
            assert 0 < cost_of(run) < 240 * CALL
        total = sum(cost_of(run) for run in runs)
        assert len(server.requests) * CALL == pytest.approx(total) == pytest.approx(get_spend_use(team).used)
        assert QUOTA - CALL <= total <= QUOTA + 2 * CONCURRENCY * CALL
