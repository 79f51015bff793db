"""Status of a run: which changes are allowed, and the one function that makes them."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypedDict, Unpack

from django.db import transaction
from django.db.models import Expression
from django.db.models.functions import Now
from django.utils import timezone

from hub.common import leases
from hub.common.errors import Conflict
from hub.common.leases import LeaseLost
from hub.protocols.messages import JSON
from runs.leases import RunBusy
from runs.missing import count_missing
from runs.models import ACTIVE, ENDED, Run
from runs.selectors import stored_counts

logger = logging.getLogger(__name__)
Status = Run.Status

_FINISHED: dict[Run.Status, str] = dict.fromkeys(ENDED, "finished")
# Status -> statuses that may follow, each with the word for the change in the log.
TRANSITIONS: Mapping[Run.Status, Mapping[Run.Status, str]] = {
    Status.QUEUED: {
        Status.QUEUED: "returned to the queue",
        Status.RUNNING: "started",
        Status.INTERRUPTED: "finished",
        Status.CANCELLED: "finished",
        Status.FAILED: "finished",
    },
    Status.RUNNING: {Status.RUNNING: "taken over", Status.QUEUED: "returned to the queue", **_FINISHED},
    **{status: {Status.QUEUED: "resumed"} for status in ENDED},
}

_end_listeners: list[Callable[[int, Run.Status], None]] = []


class StatusConflict(Conflict):
    """The status of the run does not allow the change."""


class RunChanges(TypedDict, total=False):
    """Fields of a run that are stored together with its status."""

    message: str
    cancel_requested: bool
    seconds: float
    cost_usd: float | None
    summaries: dict[str, JSON]
    ready_at: Expression
    faults: int
    failing_since: datetime | None


class _Timestamps(TypedDict, total=False):
    started_at: datetime
    evaluated_at: datetime | None
    finished_at: datetime | None
    stage_progress: dict[str, JSON]


class _Waiting(TypedDict, total=False):
    ready_at: Expression
    remaining: int
    faults: int
    failing_since: datetime | None


def on_end(listener: Callable[[int, Run.Status], None]) -> None:
    """Call *listener* with the id and status of each run that ends, in the transaction that stores the status."""
    _end_listeners.append(listener)


def change_status(run: Run, to: Run.Status, *, owner: str = "", **changes: Unpack[RunChanges]) -> None:
    """Store the status *to* and *changes*, in the database and in *run*, and log the change.

    owner: holder of the run's lease. Raises LeaseLost if it no longer holds the lease, so a worker whose run was taken
    over cannot write a status. Without an owner the lease must be free: raises RunBusy if a process holds it. Raises
    StatusConflict if TRANSITIONS does not allow the change.

    The lease is given up in the same statement when the run ends or returns to the queue.
    """
    now = timezone.now()
    row = Run.objects.values("status", "started_at").get(pk=run.pk)
    before = Status(row["status"])
    event = TRANSITIONS[before].get(to)
    rows = Run.objects.filter(pk=run.pk, status=before)
    rows = rows.filter(lease_owner=owner) if owner else rows.filter(leases.free())
    if event is None:
        _check_lease(run, owner)
        raise StatusConflict(f"Run {run.pk} is {before.label}; it cannot become {to.label}.")
    timestamps: _Timestamps = {"finished_at": now if to in ENDED else None, "stage_progress": {}}
    if to == Status.RUNNING:
        timestamps |= {"started_at": row["started_at"] or now}
    if to in (Status.RUNNING, Status.QUEUED):
        timestamps |= {"evaluated_at": None}
    waiting: _Waiting = {}
    if to == Status.QUEUED:
        waiting |= {"ready_at": Now(), "remaining": count_missing(run)}
    if to in ENDED or before in ENDED:
        waiting |= {"faults": 0, "failing_since": None}
    gives_up_lease = to in ENDED or (before in ACTIVE and to == Status.QUEUED)
    released = {"lease_owner": "", "lease_until": None} if gives_up_lease else {}
    values = {"status": to, "message": "", **waiting, **changes, **timestamps, **released}
    with transaction.atomic():
        stored = rows.update(**values)
        if stored and to in ENDED:
            run.shards.all().delete()  # a process that still executes a shard cannot store results any more
            for listener in _end_listeners:
                listener(run.pk, to)
    if not stored:
        _check_lease(run, owner)
        raise StatusConflict(f"Run {run.pk} was changed by another process.")
    for name, value in values.items():
        setattr(run, name, value)
    if to == Status.QUEUED:
        run.refresh_from_db(fields=["ready_at"])  # computed by the database
    _log(run, event, before, to, owner)


def _check_lease(run: Run, owner: str) -> None:
    """Raise LeaseLost or RunBusy if the lease does not allow *owner*, or somebody without a lease, to write."""
    rows = Run.objects.filter(pk=run.pk)
    if owner:
        if not rows.filter(lease_owner=owner).exists():
            raise LeaseLost(f"run {run.pk} was taken over by another process.")
    elif not rows.filter(leases.free()).exists():
        raise RunBusy(run, rows.values_list("lease_owner", flat=True).get())


def _log(run: Run, event: str, before: Run.Status, to: Run.Status, owner: str) -> None:
    if not logger.isEnabledFor(logging.INFO):
        return  # the counts are a query over all responses
    counts = stored_counts(run).by_status
    shown = ", ".join(f"{status} {count:,}" for status, count in sorted(counts.items())) or "none"
    logger.info(
        "run %s %s: %s -> %s; responses: %s",
        run.pk,
        event,
        before.value,
        to.value,
        shown,
        extra={"run_id": run.pk, "from": before.value, "to": to.value, "responses": counts, "lease_owner": owner},
    )
