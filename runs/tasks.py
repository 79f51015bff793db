"""Celery tasks of runs: execute queued runs, log runs in MLflow later, delete expired episodes of trainers."""

import logging
import threading
from contextlib import closing

from celery import shared_task
from celery.signals import worker_shutting_down

from hub.common.leases import end_owner, new_owner
from runs.config.parsed import ConfigError
from runs.execution.dispatch import EXECUTE_QUEUED
from runs.execution.runner import ExecutionOptions, execute_run
from runs.leases import LeaseLost, release_lease, take_next_lease
from runs.models import Response, Run
from runs.rollouts import services as rollout_services
from runs.services import config_of, fail_run
from runs.tracking.client import Tracker
from runs.tracking.config import TrackingConfig, tracking_config
from runs.tracking.sync import runs_to_log, track
from sandbox.errors import SandboxUnavailable

logger = logging.getLogger(__name__)

_shutting_down = threading.Event()
_syncing = threading.Lock()


@worker_shutting_down.connect
def _note_shutdown(**_: object) -> None:
    _shutting_down.set()


class _WorkerListener:
    """Listener of runs that a worker executes."""

    def response_finished(self, response: Response) -> None:
        """Do nothing: the page of the run reads the database."""

    def model_stopped(self, label: str, reason: str) -> None:
        logger.warning("%s was stopped: %s", label, reason)


@shared_task(name=EXECUTE_QUEUED, ignore_result=True)
def execute_queued_runs() -> None:
    """Execute waiting runs, one after the other, until none waits or the worker shuts down."""
    while not _shutting_down.is_set():
        owner = new_owner()
        run = take_next_lease(owner=owner)
        if run is None:
            end_owner(owner)
            return
        _execute(run, owner)


@shared_task(name="runs.sync_tracking", ignore_result=True)
def sync_tracking() -> None:
    """Log in MLflow the runs that are not logged yet, and those with newer judgments. If MLflow is down: next time."""
    if not _syncing.acquire(blocking=False):
        return
    try:
        if runs := runs_to_log():
            with closing(Tracker.start(TrackingConfig())) as tracker:
                _log_in_turn(runs, tracker)
    finally:
        _syncing.release()


def _log_in_turn(runs: list[Run], tracker: Tracker) -> None:
    for run in runs:
        if _shutting_down.is_set():
            return
        outcome = track(run, tracker, tracking_config(run))
        if outcome["state"] != Run.TrackingState.LOGGED:
            logger.warning("run %s is not logged in MLflow yet: %s", run.pk, outcome["error"], extra={"run_id": run.pk})
            return


@shared_task(name="runs.delete_expired_rollouts", ignore_result=True)
def delete_expired_rollouts() -> None:
    """Delete the episodes of trainers that have expired."""
    count = rollout_services.delete_expired_rollouts()
    if count:
        logger.info("%s expired episodes were deleted", count)


def _execute(run: Run, owner: str) -> None:
    """Execute *run*. A failure is stored in the run; the worker continues with the next one."""
    extra = {"run_id": run.pk}
    try:
        options = ExecutionOptions(stopping=_shutting_down.is_set)
        execute_run(run=run, config=config_of(run), listener=_WorkerListener(), options=options, owner=owner)
    except LeaseLost as error:
        logger.warning("%s", error, extra=extra)
    except (ConfigError, SandboxUnavailable) as error:
        logger.warning("run %s: %s", run.pk, error, extra=extra)
        fail_run(run=run, message=str(error), owner=owner)
    except Exception as error:
        logger.exception("run %s failed", run.pk, extra=extra)
        fail_run(run=run, message=f"{type(error).__name__}: {error}", owner=owner)
    finally:
        release_lease(run=run, owner=owner)
