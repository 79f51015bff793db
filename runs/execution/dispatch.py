"""Messages that make workers execute queued runs. The database is the queue: a lost message costs seconds."""

import logging

from django.db import transaction

from hub.common import task_messages
from runs.models import Run

logger = logging.getLogger(__name__)

EXECUTE_QUEUED = "runs.execute_queued"


def dispatch_run(*, run: Run) -> None:
    """Notify the workers of *run* when the transaction commits. Without a broker they find it at their next sweep."""
    transaction.on_commit(lambda: _send(run.pk))


def _send(run_id: int) -> None:
    try:
        task_messages.send(EXECUTE_QUEUED)
    except task_messages.BrokerUnavailable as error:
        logger.warning(
            "run %s waits for the next sweep of a worker: the broker cannot be reached (%s)",
            run_id,
            error,
            extra={"run_id": run_id},
        )
