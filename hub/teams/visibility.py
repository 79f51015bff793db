"""Who sees what a team owns: the one rule that every selector of owned rows applies.

Shared rows, which no team owns, are visible to everybody; other rows to the members of their team and to superusers.
"""

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q, QuerySet

from hub.models import Team, TeamOwned

Viewer = User | AnonymousUser


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
    if sees_all_teams(user):
        return Q()
    # With `team IS NULL OR team IN ...`, SQLite finds rows by their team and then sorts all of them.
    return ~Q(team__in=list_foreign_teams(user).order_by().values("pk"))


def owned_by(slug: str) -> Q:
    """Return the condition on rows of a `TeamOwned` model that the team *slug* owns them; `shared`: no team."""
    return Q(team=None) if slug == Team.SHARED else Q(team__slug=slug)


def list_foreign_teams(user: Viewer) -> QuerySet[Team]:
    """Return the teams of which *user* sees nothing."""
    return Team.objects.exclude(pk__in=list_teams(user).order_by().values("pk"))


def may_see(user: Viewer, owned: TeamOwned) -> bool:
    """Return whether *user* may see *owned* as to its team."""
    return owned.team_id is None or list_teams(user).filter(pk=owned.team_id).exists()
