"""The queue of gates: versions whose gates somebody asked for, each leased by one worker at a time.

The database is the queue of record. Messages only say "look", so that a lost one costs seconds: workers sweep.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from hub.common import task_messages
from hub.models import EnvironmentVersion, GateRequest

logger = logging.getLogger(__name__)

GATES = "hub.gates"
LEASE = timedelta(seconds=60)
RENEW_EVERY_S = 20.0
TRIES = 3  # a bundle that breaks its worker would otherwise do so for ever


def gates_dispatch(*, version: EnvironmentVersion) -> None:
    """Ask the workers to run the gates of *version*, once more where they were given up."""
    GateRequest.objects.update_or_create(version=version, defaults={"tries": 0, "problem": ""})
    transaction.on_commit(lambda: _send(version.pk))


def _send(version_id: int) -> None:
    try:
        task_messages.send(GATES)
    except task_messages.BrokerAway as error:
        logger.warning("the gates of version %s wait for a worker's sweep: the broker is away (%s)", version_id, error)


def request_next() -> GateRequest | None:
    """Take the lease of the oldest request that waits, or whose worker is gone; None where there is none."""
    now = timezone.now()
    waiting = GateRequest.objects.filter(Q(lease_until=None) | Q(lease_until__lt=now), tries__lt=TRIES)
    for pk, until in waiting.order_by("pk").values_list("pk", "lease_until")[:20]:
        # By compare-and-set, so that two workers never run the same gates.
        same = GateRequest.objects.filter(pk=pk, lease_until=until)
        if same.update(lease_until=now + LEASE, tries=F("tries") + 1):
            return GateRequest.objects.select_related("version__environment").get(pk=pk)
    return None


@contextmanager
def lease_held(request: GateRequest) -> Iterator[None]:
    """Renew the lease of *request* for as long as the block takes."""
    done = threading.Event()

    def renew() -> None:
        try:
            while not done.wait(RENEW_EVERY_S):
                GateRequest.objects.filter(pk=request.pk).update(lease_until=timezone.now() + LEASE)
        finally:
            connection.close()  # this thread's own

    thread = threading.Thread(target=renew, name="gates-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def request_put_off(request: GateRequest, *, problem: str, counts: bool) -> None:
    """Leave *request* to be tried again once its lease lapses. *counts* not: it was no fault of the bundle's."""
    tries = request.tries if counts else request.tries - 1
    GateRequest.objects.filter(pk=request.pk).update(problem=problem, tries=tries)
