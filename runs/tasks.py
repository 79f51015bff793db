"""Celery tasks of runs: execute queued runs, log runs in MLflow later."""

import logging
import threading
import time
from contextlib import closing, suppress

from celery import shared_task
from django.conf import settings

from hub.common.leases import end_owner, new_owner
from hub.common.worker.shutdown import is_shutting_down
from runs.config.parsed import ConfigError
from runs.execution.dispatch import EXECUTE_QUEUED, WorkersNotNotified, dispatch_run
from runs.execution.faults import DATABASE_ERRORS, find_fault
from runs.execution.runner import execute_run, execute_shards
from runs.execution.session.context import ExecutionOptions
from runs.execution.shards import release_shards, take_any_shard
from runs.leases import LeaseLost, release_lease
from runs.models import Response, Run
from runs.queue import take_next_lease
from runs.selectors import describe_failure
from runs.services import config_of, fail_run
from runs.tracking.sync import runs_to_log, track_in_turn
from sandbox.errors import SandboxUnavailable

logger = logging.getLogger(__name__)

_HELP_AGAIN_S = 60.0
_TRACKING_FAILURES = 5  # runs that could not be logged, one after the other, until logging waits for the next call
_failed_to_help: dict[int, float] = {}  # run -> until when this process does not execute its shards
_syncing = threading.Lock()


class _WorkerListener:
    """Listener of runs that a worker executes."""

    def response_finished(self, response: Response) -> None:
        """Do nothing: the page of the run reads the database."""

    def model_stopped(self, label: str, reason: str) -> None:
        logger.warning("%s was stopped: %s", label, reason)

    def run_delayed(self, reason: str, seconds: float) -> None:
        """Do nothing: a run that must wait returns to the queue."""


@shared_task(name=EXECUTE_QUEUED, ignore_result=True, acks_late=True, reject_on_worker_lost=True)
def execute_queued_runs() -> None:
    """Execute waiting runs, one at a time in the order of the queue, until none waits or the worker shuts down.

    If no run waits, execute shards of a run that another worker leads.
    """
    while not is_shutting_down():
        owner = new_owner()
        try:
            run = take_next_lease(owner=owner)
        except DATABASE_ERRORS as error:
            logger.warning("runs wait for the next sweep of a worker: the database does not work (%s)", error)
            end_owner(owner)
            return
        if run is not None:
            _execute(run, owner)
        elif not _help_another_worker(owner):
            end_owner(owner)
            return


def _help_another_worker(owner: str) -> bool:
    """Execute shards of a run that another worker leads. Return False if there are none."""
    now = time.monotonic()
    without = [run_id for run_id, until in _failed_to_help.items() if until > now]
    try:
        shard = take_any_shard(owner=owner, without=without)
        if shard is None:
            return False
        run = Run.objects.get(pk=shard.run_id)
    except (*DATABASE_ERRORS, Run.DoesNotExist) as error:
        logger.warning("shards wait for the next sweep of a worker: %s", error)
        return False
    try:
        execute_shards(
            run=run,
            config=config_of(run),
            listener=_WorkerListener(),
            options=_options(),
            owner=owner,
            reserved_for="",
            taken=shard,
        )
    except LeaseLost as error:
        logger.info("%s", error, extra={"run_id": run.pk})
    except Exception as error:
        # The run continues without this worker. If the run itself is at fault, the worker that leads it finds out.
        _failed_to_help[run.pk] = time.monotonic() + _HELP_AGAIN_S
        known = isinstance(error, ConfigError | SandboxUnavailable) or find_fault(error) is not None
        log = logger.warning if known else logger.exception
        log("this worker cannot execute shards of run %s: %s", run.pk, error, extra={"run_id": run.pk})
        with suppress(*DATABASE_ERRORS):
            release_shards(run.pk, owner)
        end_owner(owner)
    return True


def _options() -> ExecutionOptions:
    return ExecutionOptions(stopping=is_shutting_down, slice_s=settings.RUN_SLICE_SECONDS, workers_help=True)


@shared_task(name="runs.sync_tracking", ignore_result=True)
def sync_tracking() -> None:
    """Log the runs that are not in MLflow yet or have newer preferences. If MLflow is down, wait for the next call."""
    if not _syncing.acquire(blocking=False):
        return
    try:
        if runs := runs_to_log():
            _log_in_turn(runs)
    finally:
        _syncing.release()


def _log_in_turn(runs: list[Run]) -> None:
    """Log *runs*. A run that MLflow rejects does not hold up the others; several in a row mean that MLflow is down."""
    failures = 0
    with closing(track_in_turn(runs)) as tracked:
        while not is_shutting_down() and failures < _TRACKING_FAILURES and (found := next(tracked, None)):
            run, outcome = found
            if outcome["state"] == Run.TrackingState.LOGGED:
                failures = 0
            else:
                failures += 1
                logger.warning(
                    "run %s is not logged in MLflow yet: %s", run.pk, outcome["error"], extra={"run_id": run.pk}
                )


def _execute(run: Run, owner: str) -> None:
    """Execute *run*. A failure is stored in the run; the worker continues with the next one."""
    extra = {"run_id": run.pk}
    try:
        execute_run(run=run, config=config_of(run), listener=_WorkerListener(), options=_options(), owner=owner)
    except LeaseLost as error:
        logger.warning("%s", error, extra=extra)
    except (ConfigError, SandboxUnavailable) as error:
        logger.warning("run %s: %s", run.pk, error, extra=extra)
        fail_run(run=run, message=str(error), owner=owner)
    except Exception as error:
        if find_fault(error) is not None:
            # It could not even be returned to the queue. Another worker takes it over when its lease has lapsed.
            logger.warning("run %s waits until its lease lapses: %s", run.pk, error, extra=extra)
            end_owner(owner)  # `release_lease` leaves the lock file open, since the run keeps its lease
            return
        logger.exception("run %s failed", run.pk, extra=extra)
        fail_run(run=run, message=describe_failure(run, error), owner=owner)
    finally:
        with suppress(*DATABASE_ERRORS):  # the lease lapses then
            release_lease(run=run, owner=owner)
    if run.status == Run.Status.QUEUED and not run.faults:
        with suppress(WorkersNotNotified):  # it is logged
            dispatch_run(run=run)  # another worker can continue it at once
