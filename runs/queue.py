"""The queue of runs: selects the waiting run that a worker executes next, and decides when a run makes way for another.

The run with the fewest missing responses goes first, so that a small run does not wait behind a large one. A run that
has waited for PATIENCE goes before all others, so that a large run makes progress although small ones keep arriving.
"""

from datetime import timedelta

from django.db.models import F, Q
from django.utils import timezone

from hub.common import leases
from runs.leases import LEASE
from runs.missing import count_missing
from runs.models import ACTIVE, Run

PATIENCE = timedelta(minutes=10)
_IDLE_WORKERS_TAKE_IT = timedelta(seconds=2)  # if a run waits longer, no worker is idle


def take_next_lease(*, owner: str) -> Run | None:
    """Take the lease of the run that goes first, and return the run; None if none waits.

    A run waits if it is queued and ready, or if its process ended while it was running.
    """
    now = timezone.now()
    waiting = Run.objects.filter(_queued(before=now) | Q(status__in=ACTIVE, lease_until__lt=now))
    impatient = waiting.filter(ready_at__lt=now - PATIENCE).order_by("ready_at", "id")
    for run in [*impatient[:20], *waiting.order_by("remaining", "ready_at", "id")[:20]]:
        if _take(run, owner):
            return run
    for run in Run.objects.filter(status__in=ACTIVE, lease_until__gte=now).order_by("id")[:20]:
        # Its process may have been killed on this machine; then nobody has to wait until the lease lapses.
        if leases.has_ended(run.lease_owner) and _take(run, owner):
            return run
    return None


def _take(run: Run, owner: str) -> bool:
    """Take the lease of *run*. If a process that died was executing it, that is counted."""
    died = run.status == Run.Status.RUNNING and run.lease_owner != ""
    return leases.take(run, owner, LEASE, takeovers=F("takeovers") + 1 if died else F("takeovers"))


def should_make_way(run: Run) -> bool:
    """Return whether a waiting run goes before *run*, which is being executed, and no idle worker takes it."""
    waiting = Run.objects.filter(_queued(before=timezone.now() - _IDLE_WORKERS_TAKE_IT)).exclude(pk=run.pk)
    if not waiting.exists():
        return False
    impatient = Q(ready_at__lt=timezone.now() - PATIENCE)
    return waiting.filter(impatient | Q(remaining__lt=count_missing(run))).exists()


def _queued(*, before: object) -> Q:
    return Q(status=Run.Status.QUEUED, lease_owner="", ready_at__lte=before)
