"""Which pairs wait for whom, in which order, and how far each reviewer is."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Count, Exists, Min, OuterRef, QuerySet, Subquery

from review.models import Assignment, Pair
from runs.selectors import visible_runs

WAITING_SHOWN = 100  # more are shown as 100+
RUNS_AT_ONCE = 20  # whose pairs are handed out mixed; the oldest that have one waiting


def _available_pairs(user: User) -> QuerySet[Pair]:
    """Pairs with a free seat that *user* neither holds nor has decided or skipped, whatever run they are of."""
    mine = Assignment.objects.filter(pair=OuterRef("pk"), reviewer=user).exclude(state=Assignment.State.LAPSED)
    return Pair.objects.filter(~Exists(mine), free__gt=0)


def next_pair_by_run(user: User, *, run: int | None = None) -> dict[int, int]:
    """By run, the pair that waits next for *user* there; only runs that *user* may see, the RUNS_AT_ONCE oldest.

    Asked run by run, each time from the index's beginning: asked pair by pair, 200,000 pairs of a run that *user* may
    not see would all be looked at before the first one that waits.
    """
    untouched = _available_pairs(user).filter(run=OuterRef("pk")).order_by("position", "id").values("pk")
    runs = visible_runs(user).order_by("pk").filter(**({} if run is None else {"pk": run}))
    waiting = runs.annotate(head=Subquery(untouched[:1])).filter(head__isnull=False)
    return dict(waiting.values_list("pk", "head")[:RUNS_AT_ONCE])


def first_waiting_pair(user: User, *, run: int | None = None) -> Pair | None:
    """The pair that waits next for *user*; None where the queue is empty for them."""
    waiting = next_pair_by_run(user, run=run).values()
    return Pair.objects.filter(pk__in=list(waiting)).order_by("position", "id").first() if waiting else None


@dataclass(frozen=True, slots=True)
class Held:
    """A pair that would wait for a reviewer if others did not hold its seats. `until`: when the first lease ends."""

    pair: int
    until: datetime


def held_by_others(user: User, *, run: int | None = None) -> list[Held]:
    """The first WAITING_SHOWN of them, those that may be free soonest first."""
    mine = Assignment.objects.filter(pair=OuterRef("pair"), reviewer=user).exclude(state=Assignment.State.LAPSED)
    held = Assignment.objects.filter(~Exists(mine), state=Assignment.State.OPEN, pair__free=0)
    held = held.filter(pair__run__in=visible_runs(user).order_by().values("pk"))
    if run is not None:
        held = held.filter(pair__run_id=run)
    rows = held.order_by().values_list("pair").annotate(until=Min("lease_until")).order_by("until", "pair")
    return [Held(pair, until) for pair, until in rows[:WAITING_SHOWN]]


@dataclass(frozen=True, slots=True)
class Progress:
    """What *user* did, and what waits for them: at most WAITING_SHOWN are counted, and `more` may wait."""

    done: int
    skipped: int
    waiting: int
    more: bool


def review_progress(user: User, *, run: int | None = None) -> Progress:
    """Counted over all runs, or over one."""
    mine = Assignment.objects.filter(reviewer=user, state__in=[Assignment.State.DONE, Assignment.State.SKIPPED])
    if run is not None:
        mine = mine.filter(pair__run_id=run)
    counts = dict(mine.order_by().values_list("state").annotate(Count("pk")))
    runs = next_pair_by_run(user, run=run)
    # In no order, so that the count ends at the first WAITING_SHOWN instead of sorting them all.
    waiting = _available_pairs(user).filter(run__in=runs).order_by()[:WAITING_SHOWN].count() if runs else 0
    return Progress(
        done=counts.get(Assignment.State.DONE, 0),
        skipped=counts.get(Assignment.State.SKIPPED, 0),
        waiting=waiting,
        more=waiting == WAITING_SHOWN or len(runs) == RUNS_AT_ONCE,
    )
