"""Who executes a run: one process at a time, by a lease that it renews and that others take over once it lapses.

The database is the queue of record. A lease is taken by compare-and-set, so that two workers never get the same run.
"""

import os
import platform
import uuid
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from hub.common.errors import Conflict
from runs.models import Run

LEASE = timedelta(seconds=60)
RENEW_EVERY_S = 3.0  # also how soon a cancelled run notices


class RunBusy(Conflict):
    """Another process is executing the run; the text is a sentence."""


class LeaseLost(Exception):
    """The lease lapsed and somebody else has taken the run."""


def owner_name() -> str:
    """A name for one sitting: the host and process for people, a random part against restarts."""
    return f"{platform.node()[:40]}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def lease_take(*, run: Run, owner: str) -> None:
    """Take the lease of *run*. Raises RunBusy where another process holds it."""
    now = timezone.now()
    holder = Run.objects.values_list("lease_owner", flat=True).get(pk=run.pk)
    free = Q(lease_owner="") | Q(lease_until__lt=now) | Q(lease_until=None)
    if _is_gone(holder):
        free |= Q(lease_owner=holder)
    if not Run.objects.filter(free, pk=run.pk).update(lease_owner=owner, lease_until=now + LEASE):
        raise RunBusy(f"Run {run.pk} is being executed by {holder}; wait for it, or cancel it first.")
    run.refresh_from_db()


def _is_gone(holder: str) -> bool:
    """Whether *holder* was a process of this machine that is no more: nobody need wait for its lease to lapse."""
    host, _, rest = holder.partition(":")
    pid = rest.partition(":")[0]
    if host != platform.node()[:40] or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def lease_next(*, owner: str) -> Run | None:
    """Take the lease of the oldest run that waits: queued, or left running by a process that is gone."""
    now = timezone.now()
    waiting = Run.objects.filter(
        Q(status=Run.Status.QUEUED, lease_owner="")
        | Q(status__in=[Run.Status.QUEUED, Run.Status.RUNNING], lease_until__lt=now)
    )
    for pk in waiting.order_by("id").values_list("pk", flat=True)[:20]:
        run = Run(pk=pk)
        try:
            lease_take(run=run, owner=owner)
        except RunBusy:
            continue
        return run
    return None


def lease_renew(*, run_id: int, owner: str) -> bool:
    """Hold on for another while; whether somebody asked to cancel. Raises LeaseLost."""
    held = Run.objects.filter(pk=run_id, lease_owner=owner)
    if not held.update(lease_until=timezone.now() + LEASE):
        raise LeaseLost(f"Run {run_id} was taken over by another process.")
    return bool(held.values_list("cancel_requested", flat=True)[0])


def lease_release(*, run: Run, owner: str) -> None:
    """Give the lease back; nothing where it is somebody else's by now."""
    if Run.objects.filter(pk=run.pk, lease_owner=owner).update(lease_owner="", lease_until=None):
        run.lease_owner, run.lease_until = "", None
