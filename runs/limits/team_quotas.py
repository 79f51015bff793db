"""Quotas of runs of a team: runs per day, and the spending in a calendar month.

What a run spends is kept in a row for each month. A process that executes a run is granted parts of what its team has
left, in the same way as parts of the run's budget. So all runs of the team together keep the quota. When a run ends,
its cost is recorded, because processes that were killed have returned nothing of their grants. Episodes that trainers
drive are granted nothing in advance: the quota is checked before each call of a role model, and the cost is added to a
row of all episodes of the team after it (docs/decisions/0028-spending-of-episodes.md).
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from math import inf
from typing import Protocol, TypeVar

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, Sum

from hub.common.errors import UserError
from hub.common.wording import counted, dollars
from hub.models import Team
from hub.teams.quotas import (
    QuotaExceeded,
    Use,
    end_of_day,
    end_of_month,
    lock_team,
    start_of_day,
    this_month,
)
from runs.limits.budget import Budget, Part, grant_part, part_of
from runs.models import Run, TeamSpend

_UNLIMITED_PART = 1.0  # USD; without a quota, what is granted at a time. A quota that is set later applies to the next


class PaidModel(Protocol):
    """A model whose calls cost something. price: None if it is unknown."""

    @property
    def name(self) -> str: ...

    @property
    def price(self) -> object | None: ...


def get_spend_use(team: Team) -> Use:
    """Return the US dollars that runs and episodes of *team* have spent this month, or that runs were granted."""
    rows = TeamSpend.objects.filter(team=team, month=this_month())
    return Use(max(rows.aggregate(total=Sum("usd"))["total"] or 0.0, 0.0), team.spend_usd_per_month, end_of_month())


def get_runs_use(team: Team) -> Use:
    """Return the number of runs of today that *team* owns or has executed, deleted and moved ones included."""
    executed = TeamSpend.objects.filter(team=team, run=OuterRef("pk"))  # kept when a run is moved to another team
    runs = Run.objects.filter(Q(team=team) | Exists(executed), created_at__gte=start_of_day())
    return Use(runs.count(), team.runs_per_day, end_of_day())


def check_new_run(team: Team, paid: Iterable[PaidModel]) -> None:
    """Raise QuotaExceeded if *team* may start no run of the models *paid*. Call it in a transaction."""
    locked = lock_team(team)
    runs = get_runs_use(locked)
    if runs.quota is not None and runs.exhausted:
        raise QuotaExceeded(
            f"The team {team} may start {counted(int(runs.quota), 'run')} a day, and started {runs.used:.0f} today.",
            quota=runs.quota,
            used=runs.used,
            resets_at=runs.resets_at,
        )
    check_spend(locked, paid)


def check_spend(team: Team, paid: Iterable[PaidModel], path: str = "models") -> None:
    """Raise QuotaExceeded if *team* has spent its quota, and UserError at the key *path* if a model has no price.

    paid: the models that cost something. If it is empty, nothing is checked.
    """
    models = list(paid)
    use = get_spend_use(team)
    if use.quota is None or not models:
        return
    unpriced = next((model.name for model in models if model.price is None), None)
    if unpriced is not None:
        raise UserError(
            f"{unpriced} has no price, so the spending quota of the team {team} cannot be kept. Enter the price of the "
            "model, 0 if it is free.",
            path,
        )
    if use.exhausted:
        raise spend_exceeded(team, use)


def spend_exceeded(team: Team, use: Use) -> QuotaExceeded:
    """Return the error that *team* has spent its quota."""
    quota = use.quota or 0.0
    return QuotaExceeded(
        f"The team {team} may spend {dollars(quota)} in {this_month():%B %Y}, and its runs and episodes have spent "
        f"{dollars(use.used)}.",
        quota=quota,
        used=use.used,
        resets_at=use.resets_at,
    )


def has_quota_left(run: Run) -> bool:
    """Return whether the team of *run* may spend something."""
    if run.team is None or run.team.spend_usd_per_month is None:
        return True
    return not get_spend_use(run.team).exhausted


def start_team_spend(run: Run, spent: float) -> None:
    """Record that *run* has spent *spent* USD so far, and that no process is granted more."""
    if run.team_id is None:
        return
    with transaction.atomic():
        month = this_month()
        rows = TeamSpend.objects.filter(run=run)
        earlier = rows.exclude(team=run.team_id, month=month).aggregate(total=Sum("usd"))["total"] or 0.0
        TeamSpend.objects.update_or_create(
            run=run, team_id=run.team_id, month=month, defaults={"usd": max(spent - earlier, 0.0)}
        )


def grant_team_part(run: Run, beyond: float) -> Part:
    """Return the next part of what the team of *run* has left, for a process that has spent *beyond* USD more than it
    was granted.
    """
    if run.team is None:
        return Part(inf)
    with transaction.atomic():
        team, month = lock_team(run.team), this_month()
        use = get_spend_use(team)
        part = _UNLIMITED_PART
        if use.quota is not None:
            part = part_of(use.quota - use.used - beyond, use.quota)
        _add(beyond + part, team=team, month=month, run=run)
    return Part(part) if part else Part(0.0, spend_exceeded(team, get_spend_use(team)).message)


def grant_next(run: Run, limit: float | None, beyond: float) -> Part:
    """Return the next part of what is left of both the budget *limit* of *run* and the quota of its team."""
    of_team = grant_team_part(run, beyond)
    if limit is None or not of_team.usd:
        return of_team
    part = grant_part(run.pk, limit, beyond, of_team.usd)
    return_team_rest(run, of_team.usd - part)
    return Part(part)


def return_team_rest(run: Run, rest: float) -> None:
    """Return *rest* USD that a process was granted and has not spent; negative if it has spent more."""
    if run.team is None or not rest:
        return
    latest = TeamSpend.objects.filter(run=run, team=run.team).order_by("-month").first()
    _add(-rest, team=run.team, month=latest.month if latest else this_month(), run=run)


def _add(usd: float, *, team: Team, month: date, run: Run | None = None) -> None:
    """Add *usd* to what *run* has spent of the quota of *team* in *month*; without a run, its episodes together."""
    row, _ = TeamSpend.objects.get_or_create(run=run, team=team, month=month, of_episodes=run is None)
    TeamSpend.objects.filter(pk=row.pk).update(usd=F("usd") + usd)


# ---- episodes of trainers --------------------------------------------------------------------------------------------

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class EpisodeBudget(Budget):
    """Budget of one step of an episode, whose calls the quota of *team* limits. exceeded: set once it is spent."""

    team: Team
    exceeded: QuotaExceeded | None = None

    async def may_spend(self) -> bool:
        if self.exceeded is None:
            self.exceeded = await _in_thread(lambda: _find_exceeded(self.team))
            self.refusal = self.exceeded.message if self.exceeded else ""
        return self.exceeded is None

    async def settle(self) -> None:
        """Add what was spent since the last time to the spending of the team."""
        usd, self.spent = self.spent, 0.0
        if usd:
            await _in_thread(lambda: _add(usd, team=self.team, month=this_month()))

    async def keeps_quota(self) -> bool:
        """Return whether the quota can still be kept: it cannot after a reply of unknown cost."""
        return not self.unmetered or not await _in_thread(lambda: _has_quota(self.team))


def _find_exceeded(team: Team) -> QuotaExceeded | None:
    now = Team.objects.get(pk=team.pk)
    use = get_spend_use(now)
    return spend_exceeded(now, use) if use.exhausted else None


def _has_quota(team: Team) -> bool:
    return Team.objects.filter(pk=team.pk, spend_usd_per_month__isnull=False).exists()


async def _in_thread(query: Callable[[], T]) -> T:
    """Return what *query* returns. It uses a connection of its own, because Django's belong to threads."""

    def execute() -> T:
        try:
            return query()
        finally:
            connection.close()

    return await asyncio.to_thread(execute)
