"""Changes of a run's status: allowed by one table, fenced by the lease, logged."""

import logging
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from hub.common.leases import LeaseLost
from hub.models import Case
from runs.leases import RunBusy, take_lease
from runs.models import ACTIVE, ENDED, Run
from runs.queue import take_next_lease
from runs.services import cancel_run, fail_run, interrupt_run, resume_run
from runs.transitions import TRANSITIONS, StatusConflict, change_status
from tests.factories import stored_outcomes, stored_response, stored_run, stored_version

pytestmark = pytest.mark.django_db

FIRST, SECOND = "elsewhere:1:a", "elsewhere:2:b"
Status = Run.Status


def run_with(status: Run.Status, **fields: object) -> Run:
    return stored_run(stored_version(cases=2), status=status, started_at=None, finished_at=None, **fields)


def lapse_lease() -> None:
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def test_worker_that_lost_its_lease_cannot_write_any_status() -> None:
    run = run_with(Status.QUEUED)
    first = take_next_lease(owner=FIRST)
    assert first is not None
    change_status(first, Status.RUNNING, owner=FIRST)
    lapse_lease()
    second = take_next_lease(owner=SECOND)
    assert second is not None
    for status in Status:
        with pytest.raises(LeaseLost):
            change_status(first, status, owner=FIRST, message="stale")
    interrupt_run(run=first, owner=FIRST)
    fail_run(run=first, owner=FIRST, message="stale")
    change_status(second, Status.RUNNING, owner=SECOND)
    change_status(second, Status.COMPLETED, owner=SECOND)
    with pytest.raises(LeaseLost):
        change_status(first, Status.FAILED, owner=FIRST, message="stale")
    run.refresh_from_db()
    assert (run.status, run.message, run.lease_owner) == ("completed", "", "")


def test_lost_worker_does_not_change_its_own_copy_of_the_run() -> None:
    run = run_with(Status.RUNNING, lease_owner=SECOND, lease_until=timezone.now() + timedelta(minutes=1))
    with pytest.raises(LeaseLost):
        change_status(run, Status.COMPLETED, owner=FIRST)
    assert run.status == "running"


@pytest.mark.parametrize("before", Status)
@pytest.mark.parametrize("after", Status)
def test_only_the_transitions_of_the_table_are_made(before: Run.Status, after: Run.Status) -> None:
    run = run_with(before)
    if after in TRANSITIONS[before]:
        change_status(run, after)
    else:
        with pytest.raises(StatusConflict, match="cannot become"):
            change_status(run, after)
    assert Run.objects.get().status == run.status == (after if after in TRANSITIONS[before] else before)


def test_every_status_is_either_active_or_ended() -> None:
    assert sorted([*ACTIVE, *ENDED]) == sorted(Status)


def test_timestamps_follow_the_status() -> None:
    run = run_with(Status.QUEUED)
    take_lease(run=run, owner=FIRST)
    change_status(run, Status.RUNNING, owner=FIRST)
    started = run.started_at
    assert started is not None and run.finished_at is None
    change_status(run, Status.COMPLETED, owner=FIRST)
    assert run.finished_at is not None
    assert resume_run(run=run)
    run.refresh_from_db()
    assert (run.status, run.started_at, run.finished_at, run.evaluated_at) == ("queued", started, None, None)


def test_run_of_a_worker_that_shuts_down_is_free_at_once() -> None:
    run = run_with(Status.QUEUED)
    take_lease(run=run, owner=FIRST)
    change_status(run, Status.RUNNING, owner=FIRST)
    change_status(run, Status.QUEUED, owner=FIRST)
    taken = take_next_lease(owner=SECOND)
    assert taken is not None and taken.lease_owner == SECOND


def test_run_that_a_process_holds_cannot_be_changed_without_its_lease() -> None:
    run = run_with(Status.QUEUED)
    take_lease(run=run, owner=FIRST)
    with pytest.raises(RunBusy, match=FIRST):
        change_status(run, Status.CANCELLED)
    assert cancel_run(run=run)
    assert (run.status, run.cancel_requested) == ("queued", True)
    assert not resume_run(run=run)


def test_running_run_of_a_dead_process_is_cancelled_at_once() -> None:
    run = run_with(Status.RUNNING, lease_owner=FIRST)
    lapse_lease()
    assert cancel_run(run=run)
    assert (run.status, run.lease_owner) == ("cancelled", "")
    assert not cancel_run(run=run)


@pytest.mark.parametrize("end", [cancel_run, interrupt_run])
def test_run_of_a_dead_process_ends_with_the_costs_of_its_responses(end: Callable[..., None]) -> None:
    run = run_with(Status.RUNNING)
    for case in Case.objects.all():
        stored_response(run, case, cost_usd=0.25)
    end(run=run)
    run.refresh_from_db()
    assert (run.status in ENDED, run.cost_usd) == (True, 0.5)


def test_resume_clears_the_reasons_of_stopped_models() -> None:
    run = run_with(Status.STOPPED)
    run.models.update(stopped="wrong key")
    assert resume_run(run=run)
    assert run.models.get().stopped == ""


def test_each_change_logs_one_line_with_ids_and_counts(caplog: pytest.LogCaptureFixture) -> None:
    run = run_with(Status.QUEUED)
    stored_outcomes(run, "pe")
    take_lease(run=run, owner=FIRST)
    with caplog.at_level(logging.INFO, logger="runs.transitions"):
        change_status(run, Status.RUNNING, owner=FIRST)
        change_status(run, Status.RUNNING, owner=FIRST)
        change_status(run, Status.COMPLETED, owner=FIRST)
        resume_run(run=run)
    words = ["started", "taken over", "finished", "resumed"]
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        f"run {run.pk} {word}" for word in words
    ]
    assert caplog.records[2].getMessage().endswith("running -> completed; responses: errored 1, passed 1")
    record = vars(caplog.records[2])
    assert (record["run_id"], record["from"], record["to"]) == (run.pk, "running", "completed")
    assert record["responses"] == {"passed": 1, "errored": 1}
