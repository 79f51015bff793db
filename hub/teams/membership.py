"""Members and managers of teams, and who may move what a team owns."""

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied

from hub.models import Team, TeamOwned
from hub.teams.choice import SHARED_CHOICE, choose_team, list_own_teams
from hub.teams.visibility import list_teams, sees_all_teams


def is_manager(user: User | AnonymousUser, team: Team) -> bool:
    """Return whether *user* manages *team*: as a superuser, or as a member who is one of its managers."""
    if sees_all_teams(user):
        return True
    return user.pk is not None and team.managers.filter(pk=user.pk, groups=team.group_id).exists()


def may_move(user: User | AnonymousUser, owned: TeamOwned, creator_id: int | None) -> bool:
    """Return whether *user* may move *owned* to another team.

    Superusers may move everything, managers what their team owns, and people what is shared and they have created.
    """
    if owned.team is not None:
        return is_manager(user, owned.team)
    return sees_all_teams(user) or (creator_id is not None and creator_id == user.pk)


def list_targets(user: User | AnonymousUser, owned: TeamOwned, creator_id: int | None = None) -> list[tuple[str, str]]:
    """Return where *user* may move *owned*, (slug, name), its present team included; empty if nowhere."""
    if not may_move(user, owned, creator_id):
        return []
    teams = list_teams(user) if sees_all_teams(user) else list_own_teams(user)
    return [*((team.slug, team.name) for team in teams), SHARED_CHOICE] if teams else []


def choose_target(user: User, owned: TeamOwned, slug: str, *, creator_id: int | None, what: str) -> Team | None:
    """Return the team with *slug* to which *user* may move *owned*; None: shared. *what* names it, as "a run".

    Raises PermissionDenied and TeamError.
    """
    if not may_move(user, owned, creator_id):
        whose = "the user who created it" if owned.team is None else "managers of its team"
        raise PermissionDenied(f"Only {whose} and superusers may move {what} to another team.")
    return choose_team(user, slug or Team.SHARED)
