"""Messages that make workers execute queued runs. The database is the queue: a lost message costs seconds."""

import logging
from contextlib import suppress

from django.db import transaction

from hub.common.errors import UserError
from hub.common.worker import task_messages
from runs.models import Run

logger = logging.getLogger(__name__)

EXECUTE_QUEUED = "runs.execute_queued"


class WorkersNotNotified(UserError):
    """The run is stored and queued, but the broker cannot be reached, so no worker knows of it yet."""

    exit_code = 3
    status_code = 503
    code = "broker_unavailable"
    stored = True

    def __init__(self, run_id: int) -> None:
        super().__init__(
            f"Run {run_id} is queued, and nothing is lost, but the workers cannot be notified: the broker cannot be "
            "reached (CELERY_BROKER_URL). It starts by itself soon after the broker works again; do not start it twice."
        )
        self.run_id = run_id

    def details(self) -> dict[str, object]:
        return {"run": self.run_id}


def dispatch_run(*, run: Run) -> None:
    """Notify the workers of *run* when the transaction commits. Raises WorkersNotNotified then.

    Without a broker they find it at their first sweep after it works again.
    """
    transaction.on_commit(lambda: _send(run.pk))


def wake_workers(*, run: Run, number: int) -> None:
    """Notify up to *number* workers that *run* has shards. Without a broker they find them at their next sweep."""
    with suppress(WorkersNotNotified):
        _send(run.pk, number)


def _send(run_id: int, number: int = 1) -> None:
    try:
        for _ in range(number):
            task_messages.send(EXECUTE_QUEUED)
    except task_messages.BrokerUnavailable as error:
        logger.warning("run %s waits: the broker cannot be reached (%s)", run_id, error, extra={"run_id": run_id})
        raise WorkersNotNotified(run_id) from error
