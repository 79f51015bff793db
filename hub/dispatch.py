"""Handing work of the hub to workers: a message once the transaction is committed. A lost one is sent again by hand."""

import logging

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from hub.models import EnvironmentVersion

logger = logging.getLogger(__name__)

GATES = "hub.gates"


def gates_dispatch(*, version: EnvironmentVersion) -> None:
    """Ask the workers to run the gates of *version*."""
    transaction.on_commit(lambda: _send(version.pk))


def _send(version_id: int) -> None:
    try:
        current_app.send_task(GATES, args=[version_id], ignore_result=True)
    except (OperationalError, OSError) as error:
        logger.warning("the gates of version %s wait to be asked for again: the broker is away (%s)", version_id, error)
