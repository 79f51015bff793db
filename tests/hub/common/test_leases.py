"""Leases of runs, shards, gates and pairs, if the clock of one machine is ten minutes ahead or behind."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from hub.common import leases
from hub.gates.queue import next_gate_request
from hub.models import GateRequest
from review.models import Assignment
from review.queue.assignments import claim_next_pair, release_lapsed_assignments
from runs.execution.shards import held_by_others, renew_shards, take_shard
from runs.leases import RunBusy, renew_lease, take_lease
from runs.models import Run, Shard
from runs.queue import count_workers, take_next_lease
from runs.services import create_run
from runs.transitions import change_status
from tests.factories import stored_run, stored_version
from tests.review.pages import reviewer, waiting_pairs
from tests.runs.capitals import config_text, load, write_bundle
from tests.runs.config.resolution import find_environments

pytestmark = pytest.mark.django_db

WRONG, RIGHT = "wrong-clock:1:a", "right-clock:1:b"
Clock = Callable[[], AbstractContextManager[None]]


@pytest.fixture(params=[10, -10], ids=["ahead", "behind"])
def wrong_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return a context manager in which the clock of this process is ten minutes ahead or behind."""
    now = timezone.now

    def wrong_now() -> datetime:
        return now() + timedelta(minutes=request.param)

    @contextmanager
    def wrong() -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setattr(timezone, "now", wrong_now)
            yield

    return wrong


def test_live_run_is_not_taken_over(wrong_clock: Clock) -> None:
    run = stored_run(stored_version(cases=2), status=Run.Status.RUNNING)
    take_lease(run=run, owner=RIGHT)
    with wrong_clock():
        assert take_next_lease(owner=WRONG) is None
        with pytest.raises(RunBusy):
            take_lease(run=run, owner=WRONG)
        assert leases.is_held(run)
        assert count_workers() == {None: 1}


def test_run_of_a_machine_with_a_wrong_clock_is_not_taken_over(wrong_clock: Clock) -> None:
    run = stored_run(stored_version(cases=2), status=Run.Status.RUNNING)
    with wrong_clock():
        take_lease(run=run, owner=WRONG)
    assert take_next_lease(owner=RIGHT) is None
    with wrong_clock():
        renew_lease(run_id=run.pk, owner=WRONG)
    assert take_next_lease(owner=RIGHT) is None
    until = Run.objects.get().lease_until
    assert until is not None and abs(until - timezone.now()) < timedelta(minutes=2)


def test_run_that_is_started_with_a_wrong_clock_is_executed_at_once(wrong_clock: Clock, tmp_path: Path) -> None:
    write_bundle(tmp_path / "capitals")
    config = load(tmp_path, config_text("http://127.0.0.1:9/v1"))
    with wrong_clock():
        run = create_run(config=config, environments=find_environments(config))
    taken = take_next_lease(owner=RIGHT)
    assert taken == run
    change_status(taken, Run.Status.RUNNING, owner=RIGHT)
    with wrong_clock():
        change_status(taken, Run.Status.QUEUED, owner=RIGHT)
    assert take_next_lease(owner=RIGHT) == run


def test_shards_are_not_taken_over(wrong_clock: Clock) -> None:
    run = stored_run(stored_version(cases=2), status=Run.Status.RUNNING)
    model = run.models.get()
    environment = run.environments.get()
    Shard.objects.create(run=run, run_environment=environment, run_model=model, first=0, last=1)
    with wrong_clock():
        assert take_shard(run.pk, model.pk, owner=WRONG, reserved_for="") is not None
    assert take_shard(run.pk, model.pk, owner=RIGHT, reserved_for="") is None
    assert held_by_others(run.pk, RIGHT)
    with wrong_clock():
        renew_shards(run.pk, WRONG)
        assert take_shard(run.pk, model.pk, owner="third:1:c", reserved_for="") is None
    assert take_shard(run.pk, model.pk, owner=RIGHT, reserved_for="") is None


def test_gates_are_not_run_twice(wrong_clock: Clock) -> None:
    GateRequest.objects.create(version=stored_version())
    assert next_gate_request(owner=RIGHT) is not None
    with wrong_clock():
        assert next_gate_request(owner=WRONG) is None


def test_pair_of_a_reviewer_is_not_given_to_another_one(wrong_clock: Clock) -> None:
    waiting_pairs(1)
    ann, bob = reviewer("ann"), reviewer("bob")
    with wrong_clock():
        mine = claim_next_pair(ann).assignment
        assert mine is not None
        assert claim_next_pair(bob).assignment is None
        assert release_lapsed_assignments() == 0
    assert claim_next_pair(bob).assignment is None
    Assignment.objects.update(lease_until=timezone.now() + timedelta(seconds=5))
    with wrong_clock():
        assert claim_next_pair(ann).assignment == mine
    until = Assignment.objects.get().lease_until
    assert until is not None and timedelta(minutes=9) < until - timezone.now() <= timedelta(minutes=10)
    Assignment.objects.update(lease_until=timezone.now() - timedelta(seconds=5))
    with wrong_clock():
        assert claim_next_pair(bob).assignment is not None
