"""Who sees what a team owns: the one rule that every selector of owned rows applies.

Shared rows, which no team owns, are visible to everybody; other rows to the members of their team and to superusers.
"""

from dataclasses import dataclass

from django.db import connection
from django.db.models import Q, QuerySet

from hub.models import Team, TeamOwned
from hub.teams.per_user import Viewer, read_once

# Nearly every request needs it. Built by Django, the query took six times the processor time of the site.
_TEAMS_BY_MEMBERSHIP = """
    SELECT id, group_id IN (SELECT group_id FROM auth_user_groups WHERE user_id = %s) FROM hub_team ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class _TeamIds:
    """Ids of the teams that a user is a member of, and of all others."""

    own: list[int]
    foreign: list[int]


def sees_all_teams(user: Viewer) -> bool:
    """Return whether *user* sees what every team owns."""
    return bool(user.is_active and user.is_superuser)


def list_teams(user: Viewer) -> QuerySet[Team]:
    """Return the teams of *user*; all teams for a superuser."""
    teams = Team.objects.select_related("group")
    if sees_all_teams(user):
        return teams
    return teams.filter(group__user=user.pk) if user.pk else teams.none()


def visible_to(user: Viewer) -> Q:
    """Return the condition on rows of a `TeamOwned` model that *user* may see as to their team."""
    foreign = foreign_team_ids(user)
    # With `team IS NULL OR team IN ...`, SQLite finds rows by their team and then sorts all of them.
    return ~Q(team__in=foreign) if foreign else Q()


def owned_by(slug: str) -> Q:
    """Return the condition on rows of a `TeamOwned` model that the team *slug* owns them.

    `shared`: rows without a team. "": all rows.
    """
    if not slug:
        return Q()
    return Q(team=None) if slug == Team.SHARED else Q(team__slug=slug)


def has_teams(user: Viewer) -> bool:
    """Return whether `list_teams` returns any for *user*."""
    return Team.objects.exists() if sees_all_teams(user) else bool(_team_ids(user).own)


def foreign_team_ids(user: Viewer) -> list[int]:
    """Return the ids of the teams of which *user* sees nothing, in order.

    They are read once for each instance of a user, as permissions are. With them in place of subqueries, PostgreSQL
    plans the list of runs in a quarter of the time.
    """
    return [] if sees_all_teams(user) else _team_ids(user).foreign


@read_once
def _team_ids(user: Viewer) -> _TeamIds:
    with connection.cursor() as cursor:
        cursor.execute(_TEAMS_BY_MEMBERSHIP, [user.pk])
        rows = cursor.fetchall()
    return _TeamIds([pk for pk, mine in rows if mine], [pk for pk, mine in rows if not mine])


def may_see(user: Viewer, owned: TeamOwned) -> bool:
    """Return whether *user* may see *owned* as to its team."""
    return sees_team(user, owned.team_id)


def sees_team(user: Viewer, team: int | None) -> bool:
    """Return whether *user* sees what the team with the id *team* owns; None: what is shared."""
    return team is None or list_teams(user).filter(pk=team).exists()
