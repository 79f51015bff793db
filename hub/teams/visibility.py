"""Who sees what a team owns: the one rule that every selector of owned rows applies.

Shared rows, which no team owns, are visible to everybody; other rows to the members of their team and to superusers.
"""

from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.db.models import Q, QuerySet

from hub.models import Team, TeamOwned

Viewer = User | AnonymousUser

_FOREIGN = "_foreign_team_ids"
# Nearly every request needs it. As a query of Django's, it took five times the processor time of the site.
_FOREIGN_TEAMS = """
    SELECT id FROM hub_team
    WHERE group_id NOT IN (SELECT group_id FROM auth_user_groups WHERE user_id = %s) ORDER BY id
"""


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


def foreign_team_ids(user: Viewer) -> list[int]:
    """Return the ids of the teams of which *user* sees nothing, in order.

    They are read once for each instance of a user, as permissions are. With them in place of subqueries, PostgreSQL
    plans the list of runs in a quarter of the time.
    """
    known: list[int] | None = getattr(user, _FOREIGN, None)
    if known is None:
        known = []
        if not sees_all_teams(user):
            with connection.cursor() as cursor:
                cursor.execute(_FOREIGN_TEAMS, [user.pk])
                known = [pk for (pk,) in cursor.fetchall()]
        setattr(user, _FOREIGN, known)
    return known


def may_see(user: Viewer, owned: TeamOwned) -> bool:
    """Return whether *user* may see *owned* as to its team."""
    return owned.team_id is None or list_teams(user).filter(pk=owned.team_id).exists()
