"""The order of waiting runs, time slices, and queues that do not wait for runs; with real Celery workers."""

import random
import time
from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hub.common import leases
from hub.common.leases import new_owner
from hub.gates.queue import dispatch_gates
from hub.models import GateRequest
from runs.execution.dispatch import dispatch_run
from runs.execution.shards import should_leave, take_any_shard
from runs.leases import take_lease
from runs.models import Response, Run, Shard
from runs.queue import PATIENCE, count_workers, should_make_way, take_next_lease
from runs.selectors import models_under_test
from runs.services import cancel_run, create_run, resume_run
from tests.endpoint import Answer, endpoint
from tests.factories import stored_run, stored_version
from tests.processes import send_task, wait_until, worker
from tests.runs.capitals import CAPITALS, ONE, answer_capital, config_text, load
from tests.runs.config.resolution import find_environments
from tests.services import empty_redis_url

pytestmark = pytest.mark.django_db(transaction=True)


def waiting_run(*, remaining: int, minutes: float = 0.1, user: str = "") -> Run:
    """Store a run with 10 missing responses that *user* queued this long ago with *remaining* ones."""
    version = stored_version(cases=10, version=f"1.{Run.objects.count()}.0")
    run = stored_run(version, status=Run.Status.QUEUED, started_at=None, finished_at=None)
    owner = User.objects.get_or_create(username=user)[0] if user else None
    ready_at = timezone.now() - timedelta(minutes=minutes)
    Run.objects.filter(pk=run.pk).update(remaining=remaining, ready_at=ready_at, created_by=owner)
    run.refresh_from_db()
    return run


def executing_run(user: str, *, helpers: int = 0, free_shards: int = 0) -> Run:
    """Store a run of *user* that one process leads, with shards for *helpers* other processes."""
    run = waiting_run(remaining=10, user=user)
    take_lease(run=run, owner=new_owner())
    Run.objects.filter(pk=run.pk).update(status=Run.Status.RUNNING)
    for first in range(helpers + free_shards):
        shard = Shard.objects.create(
            run=run,
            run_environment=run.environments.get(),
            run_model=models_under_test(run)[0],
            first=first,
            last=first,
        )
        if first < helpers:
            assert leases.take(shard, new_owner(), timedelta(seconds=60))
    return run


def taken_in_order() -> list[int]:
    taken = []
    while (run := take_next_lease(owner=new_owner())) is not None:
        taken.append(run.pk)
    return taken


def test_run_with_the_fewest_missing_responses_goes_first() -> None:
    large, small, medium = (waiting_run(remaining=count) for count in (500, 5, 50))
    assert taken_in_order() == [small.pk, medium.pk, large.pk]


def test_run_cancelled_while_a_worker_chooses_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled, other = waiting_run(remaining=1), waiting_run(remaining=2)
    take = leases.take

    def cancel_and_take(run: Run, *args: Any, **given: Any) -> bool:
        if run.pk == cancelled.pk:
            cancel_run(run=Run.objects.get(pk=cancelled.pk))
        return take(run, *args, **given)

    monkeypatch.setattr(leases, "take", cancel_and_take)
    assert taken_in_order() == [other.pk]
    assert resume_run(run=Run.objects.get(pk=cancelled.pk))


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


def test_free_worker_goes_to_the_user_with_the_fewest_workers() -> None:
    executing_run("ada", helpers=1)
    executing_run("ben")
    small, large = waiting_run(remaining=5, user="ada"), waiting_run(remaining=900, user="cleo")
    longest = waiting_run(remaining=500, minutes=PATIENCE.total_seconds(), user="ben")
    nobody = waiting_run(remaining=700)
    # Without a user and "cleo" have no worker, then one; "ben" has one from the beginning, and "ada" two.
    assert taken_in_order() == [nobody.pk, large.pk, longest.pk, small.pk]


def test_process_that_leads_a_run_and_has_its_shards_is_one_worker() -> None:
    run = executing_run("ada", helpers=2, free_shards=1)
    assert leases.take(Shard.objects.get(lease_owner=""), run.lease_owner, timedelta(seconds=60))
    assert count_workers() == {run.created_by_id: 3}


@pytest.mark.parametrize(
    ("own", "others", "makes_way"),
    [
        pytest.param(0, 0, False, id="no-worker-for-the-other-but-only-one-here"),
        pytest.param(1, 0, True, id="two-here-and-none-there"),
        pytest.param(2, 1, True, id="three-here-and-one-there"),
        pytest.param(1, 1, False, id="two-here-and-one-there"),
    ],
)
def test_run_makes_way_for_a_larger_one_of_a_user_with_fewer_workers(
    own: int, others: int, makes_way: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "random", lambda: 0.0)
    executing = executing_run("ada", helpers=own)
    for _ in range(others):
        executing_run("ben")
    waiting_run(remaining=500, user="ben")
    assert should_make_way(executing) is makes_way


def test_run_does_not_make_way_for_a_smaller_one_of_a_user_with_as_many_workers() -> None:
    executing = executing_run("ada")
    other = executing_run("ben")
    waiting_run(remaining=5, user="ben")
    assert not should_make_way(executing)
    assert {should_make_way(other) for _ in range(100)} == {True, False}, "only one of two workers makes way at a time"


def test_helper_takes_shards_of_the_user_with_the_fewest_workers_and_leaves_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(random, "random", lambda: 0.0)
    ada, ben = executing_run("ada", helpers=2, free_shards=2), executing_run("ben", free_shards=3)
    assert should_leave(ada)
    assert not should_leave(ben)
    shard = take_any_shard(owner=new_owner())
    assert shard is not None and shard.run == ben
    assert not should_leave(ada), "three workers here and two there are as equal as they can be"


def start_run(folder: Path, url: str, user: User | None = None, **changes: object) -> Run:
    config = load(folder, config_text(url, concurrency=2, **changes))
    run = create_run(config=config, environments=find_environments(config))
    Run.objects.filter(pk=run.pk).update(created_by=user)
    return run


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


@pytest.mark.exhaustive
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


@pytest.mark.exhaustive
def test_workers_are_shared_between_users(folder: Path) -> None:
    def script(request: dict[str, object], number: int) -> Answer:
        time.sleep(0.2)
        return answer_capital(request)

    ada, ben = (User.objects.create_user(name) for name in ("ada", "ben"))
    with endpoint(script) as server, ExitStack() as stack:
        broker = empty_redis_url()
        first = start_run(folder, server.url, attempts=200, user=ada)
        for _ in range(3):
            stack.enter_context(worker(broker, LLMEVAL_RUN_SLICE_SECONDS="1", LLMEVAL_SHARD_RESPONSES="10"))
        send_task(broker)
        wait_until(lambda: count_workers() == {ada.pk: 3})
        second = start_run(folder, server.url, attempts=300, user=ben)  # the size does not give it a worker
        send_task(broker)
        running = Run.objects.filter(pk__in=[first.pk, second.pk], status="running")
        wait_until(lambda: count_workers() == {ada.pk: 2, ben.pk: 1} and running.count() == 2)
        Run.objects.update(cancel_requested=True)
        wait_until(lambda: set(Run.objects.values_list("status", flat=True)) == {"cancelled"})
    assert count_workers() == {}
