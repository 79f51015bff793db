"""Selectors of the review queue: the pairs that wait for a reviewer, in order, and the reviewer's progress."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Count, Exists, Min, OuterRef, QuerySet, Subquery

from review.models import Assignment, Pair
from review.queue.loading import with_run_and_case
from runs.selectors import visible_runs

WAITING_SHOWN = 100  # more are shown as "100+"
RUNS_AT_ONCE = 20  # the oldest runs with waiting pairs; their pairs are mixed in the queue


def _available_pairs(user: User) -> QuerySet[Pair]:
    """Return the pairs of all runs that have a free slot and that *user* neither holds nor has decided or skipped."""
    mine = Assignment.objects.filter(pair=OuterRef("pk"), reviewer=user).exclude(state=Assignment.State.LAPSED)
    return Pair.objects.filter(~Exists(mine), free__gt=0)


def next_pair_by_run(user: User, *, run: int | None = None) -> dict[int, int]:
    """Return run id -> id of the next pair for *user*, for the RUNS_AT_ONCE oldest runs that *user* may see.

    The query looks up one pair per run, each by the index. A query over pairs would read all pairs of runs that *user*
    may not see (200,000 in one case) before the first match.
    """
    first = _available_pairs(user).filter(run=OuterRef("pk")).order_by("position", "id").values("pk")[:1]
    runs = visible_runs(user).order_by("pk").filter(**({} if run is None else {"pk": run}))
    waiting = runs.annotate(head=Subquery(first)).filter(head__isnull=False)
    return dict(waiting.values_list("pk", "head")[:RUNS_AT_ONCE])


def lock_first_pair(user: User, *, among: Collection[int], waits: bool) -> Pair | None:
    """Return the next pair for *user* and lock it for the current transaction, or None if no pair is left.

    The pair is loaded by `with_run_and_case`.

    among: ids from `next_pair_by_run`; the run of the first of them is used. Pairs of the run that other transactions
    have locked are skipped, or awaited if *waits* is true. SQLite does not lock rows; there one transaction writes at a
    time.
    """
    run = Pair.objects.filter(pk__in=among).order_by("position", "id").values("run")[:1]
    pairs = with_run_and_case(_available_pairs(user)).filter(run=Subquery(run)).order_by("position", "id")
    return pairs.select_for_update(of=("self",), no_key=True, skip_locked=not waits).first()


@dataclass(frozen=True, slots=True)
class AssignedPair:
    """Pair whose slots are all held by other reviewers. `until` is when the first lease ends."""

    pair: int
    until: datetime


def pairs_assigned_to_others(user: User, *, run: int | None = None) -> list[AssignedPair]:
    """Return up to WAITING_SHOWN pairs that other reviewers hold, the first to lapse first."""
    mine = Assignment.objects.filter(pair=OuterRef("pair"), reviewer=user).exclude(state=Assignment.State.LAPSED)
    held = Assignment.objects.filter(~Exists(mine), state=Assignment.State.OPEN, pair__free=0)
    held = held.filter(pair__run__in=visible_runs(user).order_by().values("pk"))
    if run is not None:
        held = held.filter(pair__run_id=run)
    rows = held.order_by().values_list("pair").annotate(until=Min("lease_until")).order_by("until", "pair")
    return [AssignedPair(pair, until) for pair, until in rows[:WAITING_SHOWN]]


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of a reviewer's pairs. `waiting` counts at most WAITING_SHOWN; `more` says that there may be others."""

    done: int
    skipped: int
    waiting: int
    more: bool


def review_progress(user: User, *, run: int | None = None, runs: Collection[int] | None = None) -> Progress:
    """Return the progress of *user* over all runs, or over one.

    runs: the keys of `next_pair_by_run`, if the caller knows them.
    """
    if runs is None:
        runs = next_pair_by_run(user, run=run).keys()
    mine = Assignment.objects.filter(reviewer=user, state__in=[Assignment.State.DONE, Assignment.State.SKIPPED])
    if run is not None:
        mine = mine.filter(pair__run_id=run)
    counts = dict(mine.order_by().values_list("state").annotate(Count("pk")))
    # The database stops counting at WAITING_SHOWN. Pairs of a single run are read in the order of the index, because
    # PostgreSQL would search the table for unordered ones. Those of several runs would be sorted first.
    pairs = _available_pairs(user).filter(run__in=runs).order_by(*(["position", "id"] if len(runs) == 1 else []))
    waiting = pairs[:WAITING_SHOWN].count() if runs else 0
    return Progress(
        done=counts.get(Assignment.State.DONE, 0),
        skipped=counts.get(Assignment.State.SKIPPED, 0),
        waiting=waiting,
        more=waiting == WAITING_SHOWN or len(runs) == RUNS_AT_ONCE,
    )
