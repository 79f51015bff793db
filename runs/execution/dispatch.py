"""Handing runs to workers: a message that says "look", sent once the run is committed. A lost one costs seconds."""

import logging

from django.db import transaction

from hub.common import task_messages
from runs.models import Run

logger = logging.getLogger(__name__)

LOOK = "runs.look"


def dispatch_run(*, run: Run) -> None:
    """Tell the workers that *run* waits. Where the broker is away they find it at their next sweep."""
    transaction.on_commit(lambda: _send(run.pk))


def _send(run_id: int) -> None:
    try:
        task_messages.send(LOOK)
    except task_messages.BrokerAway as error:
        logger.warning("run %s waits for a worker's sweep: the broker is away (%s)", run_id, error)
