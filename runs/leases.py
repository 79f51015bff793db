"""Lease on a run: the process that holds it executes the run."""

from collections.abc import Iterable
from datetime import timedelta

from django.db.models import BooleanField, ExpressionWrapper

from hub.common import leases
from hub.common.errors import Conflict
from hub.common.leases import LeaseLost
from runs.models import ACTIVE, Run

__all__ = [
    "LEASE",
    "RENEW_EVERY_S",
    "LeaseLost",
    "RunBusy",
    "left_behind",
    "release_lease",
    "renew_lease",
    "take_lease",
]

LEASE = timedelta(seconds=60)
RENEW_EVERY_S = 1.5  # also how soon a cancelled run stops


class RunBusy(Conflict):
    """Another process, *holder*, is executing the run."""

    def __init__(self, run: Run, holder: str) -> None:
        super().__init__(f"Run {run.pk} is being executed by {holder}. Wait until it ends, or cancel it first.")


def take_lease(*, run: Run, owner: str) -> None:
    """Take the lease of *run*. Raises RunBusy if another process holds it."""
    if not leases.take(run, owner, LEASE):
        holder = Run.objects.values_list("lease_owner", flat=True).get(pk=run.pk)
        raise RunBusy(run, holder)


def renew_lease(*, run_id: int, owner: str) -> bool:
    """Extend the lease and return whether cancelling the run was requested. Raises LeaseLost."""
    leases.renew(Run, run_id, owner, LEASE)
    return Run.objects.values_list("cancel_requested", flat=True).get(pk=run_id)


def left_behind(runs: Iterable[Run]) -> set[int]:
    """Return the ids of those of *runs* whose process ended before they did, so that nobody executes them now.

    A run without a lease waits for a worker and is not left behind. A process on another machine counts as alive until
    its lease lapses.
    """
    active = [run.pk for run in runs if run.status in ACTIVE]
    if not active:
        return set()
    is_held = ExpressionWrapper(leases.held(), output_field=BooleanField())
    rows = Run.objects.filter(pk__in=active, status__in=ACTIVE).exclude(lease_owner="")
    return {
        pk
        for pk, owner, held in rows.order_by().values_list("pk", "lease_owner", is_held)
        if not held or leases.has_ended(owner)
    }


def release_lease(*, run: Run, owner: str) -> None:
    """Give the lease back; does nothing if another process holds it.

    A run that is still running keeps its lease until it lapses, and another worker takes it over then. What kept this
    process from ending the run, such as a full disk, may last for a while.
    """
    if Run.objects.filter(pk=run.pk, lease_owner=owner, status=Run.Status.RUNNING).exists():
        return
    try:
        leases.release(run, owner)
    finally:
        leases.end_owner(owner)
