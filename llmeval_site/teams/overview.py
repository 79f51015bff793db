"""What pages and REST show about a team: the role of the viewer, what it owns, and the use of its quotas."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.http import Http404
from django.template.defaultfilters import filesizeformat

from hub.models import Team
from hub.teams.quotas import Use, get_storage_use
from hub.teams.visibility import list_teams
from hub.web.queries import filter_environments
from runs.limits.team_quotas import get_runs_use, get_spend_use
from runs.reports.formats import money
from runs.web.queries import filter_models, filter_runs


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """Use of one quota. name: the field of `Team` with the quota."""

    name: str
    title: str
    unit: str
    use: Use

    @property
    def used_text(self) -> str:
        return self._text(self.use.used)

    @property
    def quota_text(self) -> str:
        return "no limit" if self.use.quota is None else self._text(self.use.quota)

    @property
    def percent(self) -> int | None:
        """Return the used part in percent; None without a limit."""
        return None if self.use.share is None else round(100 * self.use.share)

    def _text(self, value: float) -> str:
        if self.unit == "USD":
            return money(value)
        return filesizeformat(value) if self.unit == "bytes" else f"{value:,.0f}"


@dataclass(frozen=True, slots=True)
class Owned:
    """Numbers of what a team owns that the viewer may see."""

    environments: int
    runs: int
    models: int


def get_visible_team(user: User | AnonymousUser, slug: str) -> Team:
    """Return the team *slug* of *user*. Raises Http404 if it does not exist or *user* is not a member."""
    team = list_teams(user).filter(slug=slug).first()
    if team is None:
        raise Http404(f"There is no team {slug!r}, or you are not one of its members.")
    return team


def list_quota_uses(team: Team) -> list[QuotaUse]:
    """Return the use of each quota of *team*."""
    return [
        QuotaUse("spend_usd_per_month", "Spending this month", "USD", get_spend_use(team)),
        QuotaUse("runs_per_day", "Runs started today", "runs", get_runs_use(team)),
        QuotaUse("storage_bytes", "Storage of bundles", "bytes", get_storage_use(team)),
    ]


def count_owned(user: User | AnonymousUser, team: Team) -> Owned:
    """Return how much of what *team* owns the filtered lists show to *user*."""
    return Owned(
        environments=filter_environments(user, team=team.slug).count(),
        runs=filter_runs(user, team=team.slug).count(),
        models=filter_models(user, team=team.slug).count(),
    )
