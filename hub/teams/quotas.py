"""Quotas of teams: what exceeds one, and the storage that a team uses."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Sum
from django.utils import timezone

from hub.common.errors import UserError
from hub.common.wording import counted
from hub.models import EnvironmentVersion, Team

_ADVICE = "An administrator can raise it."


class QuotaExceeded(UserError):
    """A team has used up a quota. `used` and `quota` are in the unit of the quota.

    reason: the message without the date of the reset and without advice.
    """

    status_code = 429
    code = "quota_exceeded"

    def __init__(self, message: str, *, quota: float, used: float, resets_at: datetime | None = None) -> None:
        reset = f" It resets on {resets_at:%-d %B %Y, %H:%M} UTC." if resets_at else ""
        self.reason = message
        super().__init__(f"{message}{reset} {_ADVICE}")
        self.quota = quota
        self.used = used
        self.resets_at = resets_at
        if resets_at is not None:
            self.retry_after = max(1, round((resets_at - timezone.now()).total_seconds()))

    def details(self) -> dict[str, object]:
        reset = self.resets_at.isoformat() if self.resets_at else None
        return {"quota": self.quota, "used": self.used, "resets_at": reset}


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a quota a team has used. quota: None if there is no limit."""

    used: float
    quota: float | None
    resets_at: datetime | None = None

    @property
    def exhausted(self) -> bool:
        """Whether nothing of the quota is left."""
        return self.quota is not None and self.used >= self.quota

    @property
    def share(self) -> float | None:
        """Return the used part, from 0 to 1; None without a limit."""
        if self.quota is None:
            return None
        return min(self.used / self.quota, 1.0) if self.quota else 1.0


def start_of_day() -> datetime:
    """Return when today began, in UTC."""
    return datetime.combine(timezone.now().astimezone(UTC).date(), time(), UTC)


def end_of_day() -> datetime:
    return start_of_day() + timedelta(days=1)


def this_month() -> date:
    """Return the first day of this month, in UTC."""
    return timezone.now().astimezone(UTC).date().replace(day=1)


def end_of_month() -> datetime:
    following = (this_month() + timedelta(days=32)).replace(day=1)
    return datetime.combine(following, time(), UTC)


def get_storage_use(team: Team) -> Use:
    """Return the bytes of the bundles of the team's environments, all versions together."""
    versions = EnvironmentVersion.objects.filter(environment__team=team)
    return Use(versions.aggregate(total=Sum("archive_bytes"))["total"] or 0, team.storage_bytes)


def check_storage(team: Team, adding: int) -> None:
    """Raise QuotaExceeded if *team* may not store *adding* more bytes."""
    use = get_storage_use(team)
    if use.quota is not None and use.used + adding > use.quota:
        raise QuotaExceeded(
            f"The team {team} may store {counted(int(use.quota), 'byte')} of bundles. It stores {use.used:,.0f}, and "
            f"this needs {adding:,} more.",
            quota=use.quota,
            used=use.used,
        )


def lock_team(team: Team) -> Team:
    """Return the row of *team* as it is now, locked until the transaction ends, so that checks of quotas follow one
    another."""
    return Team.objects.select_for_update().get(pk=team.pk)
