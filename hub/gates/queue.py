"""Queue of gate requests: versions whose gates are to be run, each leased by one worker at a time.

The queue is stored in the database. Messages only wake workers up; a lost one costs seconds, as workers also poll.
"""

import logging
from contextlib import AbstractContextManager
from datetime import timedelta

from django.db import transaction
from django.db.models import F

from hub.common import leases
from hub.common.worker import task_messages
from hub.models import EnvironmentVersion, GateRequest

logger = logging.getLogger(__name__)

GATES = "hub.gates"
LEASE = timedelta(seconds=60)
RENEW_EVERY_S = 20.0
TRIES = 3  # a bundle that crashes its worker is not retried forever
_KILLED = "each time the worker was killed, perhaps because the gates need more memory than it has"


def dispatch_gates(*, version: EnvironmentVersion) -> None:
    """Request the gates of *version*, again if they were given up."""
    GateRequest.objects.update_or_create(version=version, defaults={"tries": 0, "problem": ""})
    transaction.on_commit(lambda: _send(version.pk))


def _send(version_id: int) -> None:
    try:
        task_messages.send(GATES)
    except task_messages.BrokerUnavailable as error:
        logger.warning(
            "gates of version %s wait for the next poll of a worker: the broker cannot be reached (%s)",
            version_id,
            error,
        )


def pending_request(version: EnvironmentVersion) -> GateRequest | None:
    """Return the request for the gates of *version* that has no result yet; None if there is no such request."""
    return GateRequest.objects.filter(version=version).first() if version.certificate is None else None


def next_gate_request(*, owner: str) -> GateRequest | None:
    """Take the lease of the oldest request that waits, or whose worker ended; None if there is none."""
    waiting = GateRequest.objects.filter(leases.free(), tries__lt=TRIES).order_by("pk")
    for request in waiting[:20]:
        if leases.take(request, owner, LEASE, tries=F("tries") + 1):
            return GateRequest.objects.select_related("version__environment").get(pk=request.pk)
    return None


def renewed_lease(request: GateRequest, owner: str) -> AbstractContextManager[None]:
    """Renew the lease of *request* while the block runs."""
    return leases.renewed(request, owner, LEASE, RENEW_EVERY_S)


def postpone_gate_request(request: GateRequest, *, problem: str, counts: bool) -> None:
    """Retry *request* once its lease lapses, or give it up. *counts*: False if the bundle is not at fault."""
    tries = request.tries if counts else request.tries - 1
    if tries >= TRIES:
        leases.release(request, request.lease_owner, problem=problem)
    else:
        GateRequest.objects.filter(pk=request.pk).update(problem=problem, tries=tries)


def why_given_up(request: GateRequest) -> str:
    """Return why *request* is not tried again; "" if it is, or is being tried."""
    if request.tries < TRIES or leases.is_held(request):
        return ""
    return request.problem or _KILLED
