"""The queue of runs: selects the waiting run that a worker executes next, and decides when a run makes way for another.

Workers are shared between users: a free worker goes to the user for whom the fewest workers work. Among the runs of
users with equally few, the one with the fewest missing responses goes first, so that a small run does not wait behind a
large one. But a run that has waited for PATIENCE goes before those, so that a large run makes progress although small
ones keep arriving.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import timedelta
from typing import TypeVar

from django.db.models import F, Model, Q, QuerySet
from django.db.models.functions import Now

from hub.common import leases
from runs.leases import LEASE
from runs.missing import count_missing
from runs.models import ACTIVE, Run, Shard

PATIENCE = timedelta(minutes=10)
_IDLE_WORKERS_TAKE_IT = timedelta(seconds=2)  # if a run waits longer, no worker is idle
_CANDIDATES = 20
# A worker changes to another user only if that makes the shares more equal. With a difference of one it would not.
_UNFAIR_DIFFERENCE = 2

T = TypeVar("T", bound=Model)
UserId = int | None  # None: runs without a user, which share as if they had one


def take_next_lease(*, owner: str) -> Run | None:
    """Take the lease of the run that goes first, and return the run; None if none waits.

    A run waits if it is queued and ready, or if its process ended while it was running, with or without its lease.
    """
    left_behind = Q(leases.lapsed(), status__in=ACTIVE) | Q(leases.free(), status=Run.Status.RUNNING)
    waiting = Run.objects.filter(_queued(before=Now()) | left_behind)
    for runs in by_fewest_workers(waiting, "created_by"):
        impatient = runs.filter(ready_at__lt=Now() - PATIENCE).order_by("ready_at", "id")
        for run in [*impatient[:_CANDIDATES], *runs.order_by("remaining", "ready_at", "id")[:_CANDIDATES]]:
            if _take(run, owner):
                return run
    for run in Run.objects.filter(leases.held(), status__in=ACTIVE).order_by("id")[:_CANDIDATES]:
        # Its process may have been killed on this machine; then nobody has to wait until the lease lapses.
        if leases.has_ended(run.lease_owner) and _take(run, owner):
            return run
    return None


def by_fewest_workers(rows: QuerySet[T], path: str) -> Iterator[QuerySet[T]]:
    """Yield *rows* in parts, first those of the users for whom the fewest workers work. path: from a row to its user"""
    users = _users(rows, path)
    workers = count_workers() if len(users) > 1 else Counter()
    for number in sorted({workers[user] for user in users}):
        yield rows.filter(_of_users(path, {user for user in users if workers[user] == number}))


def count_workers() -> Counter[UserId]:
    """Return how many processes execute the runs of each user."""
    runs = Run.objects.filter(leases.held()).order_by().values_list("created_by", "lease_owner")
    shards = Shard.objects.filter(leases.held(), done=False).order_by().values_list("run__created_by", "lease_owner")
    return Counter(user for user, _ in runs.union(shards))  # a process that leads a run may also have its shards


def should_make_way(run: Run) -> bool:
    """Return whether a waiting run goes before *run*, which is being executed, and no idle worker takes it.

    If several processes ask, about as many make way as runs wait.
    """
    waiting = Run.objects.filter(_queued(before=Now() - _IDLE_WORKERS_TAKE_IT)).exclude(pk=run.pk)
    users = _users(waiting, "created_by")
    if not users:
        return False
    own, workers = run.created_by_id, count_workers()
    if not _has_unfair_share(own, users, workers):
        behind = {user for user in users if user == own or workers[user] < workers[own]}
        before = Q(ready_at__lt=Now() - PATIENCE) | Q(remaining__lt=count_missing(run))
        waiting = waiting.filter(before, _of_users("created_by", behind))
    return _is_chosen(waiting.count(), workers)


def should_help_another_user(run: Run, shards: QuerySet[Shard]) -> bool:
    """Return whether a process that helps with *run* should help a user for whom fewer workers work.

    shards: those that a process may take.
    """
    own = run.created_by_id
    users = _users(shards, "run__created_by") - {own}
    if not users:
        return False
    workers = count_workers()
    return _has_unfair_share(own, users, workers) and _is_chosen(len(users), workers)


def _is_chosen(waiting: int, workers: Counter[UserId]) -> bool:
    """Draw whether this process leaves its run: of all that look, about one leaves for each run that waits."""
    return waiting > 0 and random.random() * workers.total() <= waiting  # noqa: S311  # nothing secret


def _has_unfair_share(own: UserId, users: Collection[UserId], workers: Counter[UserId]) -> bool:
    """Return whether at least two workers more work for *own* than for one of *users*."""
    return any(workers[user] + _UNFAIR_DIFFERENCE <= workers[own] for user in users if user != own)


def _users(rows: QuerySet[T], path: str) -> set[UserId]:
    return set(rows.order_by().values_list(path, flat=True).distinct())


def _of_users(path: str, users: Collection[UserId]) -> Q:
    chosen = Q(**{f"{path}__in": [user for user in users if user is not None]})
    return chosen | Q(**{f"{path}__isnull": True}) if None in users else chosen


def _take(run: Run, owner: str) -> bool:
    """Take the lease of *run*, unless its status has changed. If a process that died was executing it, that is counted.

    Otherwise a run that is cancelled at this moment would have a lease, with which it could not be resumed.
    """
    died = run.status == Run.Status.RUNNING and run.lease_owner != ""
    takeovers = F("takeovers") + 1 if died else F("takeovers")
    return leases.take(run, owner, LEASE, condition=Q(status=run.status), takeovers=takeovers)


def _queued(*, before: object) -> Q:
    return Q(status=Run.Status.QUEUED, lease_owner="", ready_at__lte=before)
