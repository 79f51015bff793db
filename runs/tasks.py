"""The worker's side of runs: take the lease of what waits, execute it, look again."""

import logging
import threading
from contextlib import closing
from typing import Any

from celery import shared_task
from celery.signals import worker_shutting_down

from hub.common.leases import end_owner, new_owner
from runs.config.parsing import ConfigError
from runs.execution.dispatch import LOOK
from runs.execution.runner import Execution, execute_run
from runs.leases import LeaseLost, release_lease, take_next_lease
from runs.models import Response, Run
from runs.rollouts.services import delete_expired_rollouts
from runs.services import config_of, fail_run
from runs.tracking.client import Tracker
from runs.tracking.config import TrackingConfig, tracking_config
from runs.tracking.sync import runs_to_log, track
from sandbox.errors import SandboxUnavailable

logger = logging.getLogger(__name__)

_shutting_down = threading.Event()
_catching_up = threading.Lock()


@worker_shutting_down.connect
def _on_shutdown(**_: Any) -> None:
    _shutting_down.set()


class _WorkerListener:
    """Listener of runs that a worker executes."""

    def response_finished(self, response: Response) -> None:
        """Do nothing: the page of the run reads the database."""

    def model_stopped(self, label: str, reason: str) -> None:
        logger.warning("%s was stopped: %s", label, reason)


@shared_task(name=LOOK, ignore_result=True)
def look() -> None:
    """Execute waiting runs, one after the other, until none waits or the worker shuts down."""
    while not _shutting_down.is_set():
        owner = new_owner()
        run = take_next_lease(owner=owner)
        if run is None:
            end_owner(owner)
            return
        _execute(run, owner)


@shared_task(name="runs.track", ignore_result=True)
def catch_up() -> None:
    """Log in MLflow what could not be logged when it ran, and judgments made since; next time, where MLflow is away."""
    if not _catching_up.acquire(blocking=False):
        return
    try:
        if runs := runs_to_log():
            with closing(Tracker.start(TrackingConfig())) as tracker:
                _log_in_turn(runs, tracker)
    finally:
        _catching_up.release()


def _log_in_turn(runs: list[Run], tracker: Tracker) -> None:
    for run in runs:
        if _shutting_down.is_set():
            return
        outcome = track(run, tracker, tracking_config(run))
        if outcome["state"] != Run.TrackingState.LOGGED:
            logger.warning("run %s is not logged in MLflow yet: %s", run.pk, outcome["error"])
            return


@shared_task(name="runs.forget", ignore_result=True)
def forget() -> None:
    """Forget trainers' episodes that have been kept for long enough."""
    count = delete_expired_rollouts()
    if count:
        logger.info("%s episodes are forgotten", count)


def _execute(run: Run, owner: str) -> None:
    """A failure is the run's to tell; the worker goes on with the next."""
    try:
        how = Execution(stopping=_shutting_down.is_set)
        execute_run(run=run, config=config_of(run), listener=_WorkerListener(), how=how, owner=owner)
    except LeaseLost as error:
        logger.warning("%s", error)
    except (ConfigError, SandboxUnavailable) as error:
        fail_run(run=run, message=str(error))
    except Exception as error:
        logger.exception("run %s", run.pk)
        fail_run(run=run, message=f"{type(error).__name__}: {error}")
    finally:
        release_lease(run=run, owner=owner)
