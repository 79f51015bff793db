"""The order of waiting runs, time slices, and queues that do not wait for runs; with real Celery workers."""

import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from hub.common.leases import new_owner
from hub.gates.queue import dispatch_gates
from hub.models import GateRequest
from runs.config.resolve import find_environments
from runs.execution.dispatch import dispatch_run
from runs.leases import take_lease
from runs.models import Response, Run
from runs.queue import PATIENCE, should_make_way, take_next_lease
from runs.services import create_run
from tests.endpoint import Answer, endpoint
from tests.factories import stored_run, stored_version
from tests.processes import send_task, wait_until, worker
from tests.runs.capitals import CAPITALS, ONE, answer_capital, config_text, load
from tests.services import empty_redis_url

pytestmark = pytest.mark.django_db(transaction=True)


def waiting_run(*, remaining: int, minutes: float = 0.1) -> Run:
    """Store a run with 10 missing responses that was queued this long ago with *remaining* ones."""
    version = stored_version(cases=10, version=f"1.{Run.objects.count()}.0")
    run = stored_run(version, status=Run.Status.QUEUED, started_at=None, finished_at=None)
    Run.objects.filter(pk=run.pk).update(remaining=remaining, ready_at=timezone.now() - timedelta(minutes=minutes))
    return run


def taken_in_order() -> list[int]:
    taken = []
    while (run := take_next_lease(owner=new_owner())) is not None:
        taken.append(run.pk)
    return taken


def test_run_with_the_fewest_missing_responses_goes_first() -> None:
    large, small, medium = (waiting_run(remaining=count) for count in (500, 5, 50))
    assert taken_in_order() == [small.pk, medium.pk, large.pk]


def test_run_that_has_waited_long_goes_before_smaller_ones() -> None:
    small = waiting_run(remaining=5)
    patient = PATIENCE.total_seconds() / 60
    later, longest = waiting_run(remaining=500, minutes=patient + 1), waiting_run(remaining=900, minutes=patient + 2)
    assert taken_in_order() == [longest.pk, later.pk, small.pk]


def test_run_that_waits_for_a_retry_is_not_taken() -> None:
    waiting_run(remaining=5, minutes=-1)
    assert taken_in_order() == []


@pytest.mark.parametrize(
    ("remaining", "minutes", "makes_way"),
    [
        pytest.param(9, 0.1, True, id="smaller"),
        pytest.param(11, 0.1, False, id="larger"),
        pytest.param(9, 0.0, False, id="an-idle-worker-may-still-take-it"),
        pytest.param(9, -1, False, id="waits-for-a-retry"),
        pytest.param(11, 20, True, id="has-waited-long"),
    ],
)
def test_run_makes_way_only_for_one_that_goes_before_it(remaining: int, minutes: float, makes_way: bool) -> None:
    executing = waiting_run(remaining=10)
    take_lease(run=executing, owner=new_owner())
    waiting_run(remaining=remaining, minutes=minutes)
    assert should_make_way(executing) is makes_way


def start_run(folder: Path, url: str, **changes: object) -> Run:
    config = load(folder, config_text(url, concurrency=2, **changes))
    return create_run(config=config, environments=find_environments(config))


@pytest.mark.exhaustive
def test_small_run_starts_behind_a_long_one_that_continues_later(folder: Path) -> None:
    def script(request: dict[str, object], number: int) -> Answer:
        time.sleep(0.1)
        return answer_capital(request)

    attempts = 60
    with endpoint(script) as server:
        broker = empty_redis_url()
        long = start_run(folder, server.url, attempts=attempts)
        with worker(broker, LLMEVAL_RUN_SLICE_SECONDS="1"):
            send_task(broker)
            wait_until(lambda: Response.objects.count() > 2)
            small = start_run(folder, server.url, environments=ONE)
            send_task(broker)
            wait_until(lambda: Run.objects.get(pk=small.pk).status == "completed")
            assert Response.objects.filter(run_environment__run=long).count() < attempts * len(CAPITALS)
            assert Run.objects.get(pk=long.pk).status in ("queued", "running")
            wait_until(lambda: Run.objects.get(pk=long.pk).status == "completed")
    assert Response.objects.filter(run_environment__run=long, status="passed").count() == attempts * len(CAPITALS)
    asked = Counter(str(request["messages"]) for request in server.requests)
    assert max(asked.values()) <= attempts + 1, "a response was requested again"


def test_gates_do_not_wait_for_runs(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        run = start_run(folder, server.url)
        version = run.environments.get().version
        with worker("filesystem://", queues="gates,maintenance"):
            dispatch_run(run=run)
            dispatch_gates(version=version)
            wait_until(lambda: not GateRequest.objects.exists())
            assert Run.objects.get().status == "queued"
        version.refresh_from_db()
        assert version.certificate is not None
        with worker("filesystem://", queues="runs"):
            wait_until(lambda: Run.objects.get().status == "completed")
