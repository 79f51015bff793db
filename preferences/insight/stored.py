"""Stored agreement and rankings, so that pages and REST do not compute them again from all preferences.

Preferences are append-only, so figures are current until the next preference is recorded or the next defect resolved.
Figures that take long to compute are shown for up to ten minutes after that, with the time of their computation. A
periodic task computes figures again if somebody has looked at them in the last hour.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import Generic, TypeVar, cast

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Max, QuerySet
from django.utils import timezone
from pydantic import TypeAdapter

from hub.common.digests import digest
from hub.common.worker.shutdown import is_shutting_down
from hub.models import CaseDefect
from hub.selectors import list_foreign_environments
from hub.teams.visibility import foreign_team_ids
from preferences.insight.agreement import Agreement, compute_agreement
from preferences.insight.ranking import Ranking, compute_rankings
from preferences.models import InsightResult, Preference
from preferences.selectors import (
    PreferenceFilters,
    current_preferences,
    filter_preferences,
    sees_all_preferences,
    visible_preferences,
)
from runs.models import Run

REVISION = 4  # increase it if Agreement or Ranking changes; rows of another revision are not read
SLOW_S = 0.5  # figures that take longer to compute may be shown for KEEP after they have changed
KEEP = timedelta(minutes=10)
USED = timedelta(hours=1)  # figures that nobody looked at for longer are not refreshed
UNUSED = timedelta(days=1)  # figures that nobody looked at for longer are deleted
_USED_STEP = timedelta(minutes=5)  # of storing the time of the last look, so that not every request writes

Viewer = User | AnonymousUser
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Stored(Generic[F]):
    """Figures and the time at which they were computed."""

    figures: F
    computed_at: datetime


@dataclass(frozen=True, slots=True)
class _Insight(Generic[F]):
    """A kind of figures: how they are computed, and stored as JSON."""

    kind: InsightResult.Kind
    compute: Callable[[QuerySet[Preference]], F]
    adapter: TypeAdapter[F]

    def get(self, user: Viewer, filters: PreferenceFilters) -> Stored[F]:
        viewer = None if sees_all_preferences(user) or not user.is_authenticated else user
        scope = _scope(viewer, filters)
        row = InsightResult.objects.filter(kind=self.kind, scope=scope, revision=REVISION).first()
        now = timezone.now()
        if row is None or not user.is_authenticated or not _may_be_shown(row, now):
            return self.compute_and_store(user, viewer, filters)
        if now - row.used_at > _USED_STEP:
            InsightResult.objects.filter(pk=row.pk).update(used_at=now)
        return Stored(self.adapter.validate_python(row.figures), row.computed_at)

    def compute_and_store(self, user: Viewer, viewer: User | None, filters: PreferenceFilters) -> Stored[F]:
        """Compute the figures. Store them, unless only this user sees them and they are computed fast."""
        now, state, start = timezone.now(), _state(), time.monotonic()
        rows = visible_preferences(user) if viewer or not user.is_authenticated else current_preferences()
        figures = self.compute(filter_preferences(rows, **filters))
        seconds = time.monotonic() - start
        if user.is_authenticated and (viewer is None or seconds >= SLOW_S):
            values = {
                "viewer": viewer,
                "filters": _filters_to_json(filters),
                "figures": self.adapter.dump_python(figures, mode="json"),
                "state": state,
                "seconds": seconds,
                "computed_at": now,
            }
            InsightResult.objects.update_or_create(
                kind=self.kind,
                scope=_scope(viewer, filters),
                defaults=values | {"revision": REVISION},
                create_defaults=values | {"revision": REVISION, "used_at": now},
            )
        return Stored(figures, now)


@cache
def _agreement() -> _Insight[Agreement]:
    return _Insight(InsightResult.Kind.AGREEMENT, compute_agreement, TypeAdapter(Agreement))


@cache
def _ranking() -> _Insight[dict[str, Ranking]]:
    return _Insight(InsightResult.Kind.RANKING, compute_rankings, TypeAdapter(dict[str, Ranking]))


def get_agreement(user: Viewer, filters: PreferenceFilters) -> Stored[Agreement]:
    """Return the agreement about the preferences that *user* may see and that match *filters*."""
    return _agreement().get(user, filters)


def get_rankings(user: Viewer, filters: PreferenceFilters) -> Stored[dict[str, Ranking]]:
    """Return the ranking of each environment from the preferences that *user* may see and that match *filters*."""
    return _ranking().get(user, filters)


def refresh_results() -> None:
    """Compute slow figures that were looked at lately again if they may have changed. Delete unused ones."""
    now, state = timezone.now(), _state()
    InsightResult.objects.filter(used_at__lt=now - UNUSED).delete()
    rows = InsightResult.objects.filter(seconds__gte=SLOW_S, used_at__gte=now - USED, revision=REVISION)
    for row in rows.select_related("viewer").defer("figures").order_by("computed_at"):
        if is_shutting_down():
            return
        filters = _filters_from_json(row.filters)
        if row.scope != _scope(row.viewer, filters):
            row.delete()  # the user may see other environments now
        elif row.viewer is not None or row.state != state:
            insight = _agreement() if row.kind == InsightResult.Kind.AGREEMENT else _ranking()
            insight.compute_and_store(row.viewer or User(), row.viewer, filters)


def _may_be_shown(row: InsightResult, now: datetime) -> bool:
    recent = row.seconds >= SLOW_S and now - row.computed_at < KEEP
    return recent or (row.viewer_id is None and row.state == _state())


def _state() -> str:
    """Return a text that changes whenever a preference is recorded or a defect is resolved."""
    newest = Preference.objects.aggregate(newest=Max("id"))["newest"]
    resolved = CaseDefect.objects.aggregate(latest=Max("resolved_at"))["latest"]
    return f"{newest} {resolved}"


def _scope(viewer: User | None, filters: PreferenceFilters) -> str:
    """Return the digest of the filters and, if *viewer* may not see everything, of what is hidden from them."""
    hidden: list[object] = []
    if viewer is not None:
        hidden += sorted(list_foreign_environments(viewer).values_list("pk", flat=True))
        teams = foreign_team_ids(viewer)
        if teams:  # a run may be moved into a team
            theirs = Run.objects.filter(team__in=teams).aggregate(count=Count("pk"), newest=Max("pk"))
            hidden.append([teams, theirs["count"], theirs["newest"]])
    return digest([viewer and viewer.pk, hidden, _filters_to_json(filters)])


def _filters_to_json(filters: PreferenceFilters) -> dict[str, object]:
    given = {name: str(value) if isinstance(value, date) else value for name, value in filters.items()}
    return dict(sorted(given.items()))


def _filters_from_json(stored: dict[str, object]) -> PreferenceFilters:
    since = stored.get("since")
    return cast(PreferenceFilters, stored | ({"since": date.fromisoformat(str(since))} if since else {}))
