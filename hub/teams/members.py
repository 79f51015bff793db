"""Members of teams: list, add and remove them, and make them managers.

Managers and superusers change members. Each change locks the row of the team, so that two managers who remove each
other at the same time do not leave the team without one.
"""

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from hub.common.errors import Conflict, NotFound, UserError
from hub.models import Team
from hub.teams.membership import is_manager
from hub.teams.quotas import lock_team
from hub.teams.visibility import sees_all_teams

WHO_CREATES_ACCOUNTS = "An administrator creates accounts, or the sign-in provider at the first sign-in."


def list_members(team: Team, *, managers: bool | None = None) -> QuerySet[User]:
    """Return the members of *team* by name. `manages` of each says whether they are a manager.

    managers: only those who are, or only those who are not.
    """
    manages = Exists(team.managers.through.objects.filter(team=team, user=OuterRef("pk")))
    found = User.objects.filter(groups=team.group_id)
    if managers is not None:
        found = found.filter(manages if managers else ~manages)
    return found.annotate(manages=manages).order_by("username")


def get_member(team: Team, username: str) -> User:
    """Return the member of *team* with this name. Raises NotFound."""
    found = list_members(team).filter(username=username).first()
    if found is None:
        raise NotFound(f"{username!r} is not a member of the team {team}.")
    return found


@transaction.atomic
def add_member(*, team: Team, username: str, by: User, manages: bool = False) -> User:
    """Add the account *username* to *team*; manages: as a manager.

    Raises PermissionDenied, and UserError with the path `user`.
    """
    _check_may_change(team, by)
    user = _find_account(username)
    if user.groups.filter(pk=team.group_id).exists():
        raise Conflict(f"{user} is a member of the team {team} already.", "user")
    if team.group.permissions.exists() and not sees_all_teams(by):
        raise UserError(
            f"The group {team.group.name} of this team gives its members permissions, so only an administrator can add "
            "members. Ask for a group of the team's own without permissions.",
            "user",
        )
    user.groups.add(team.group)
    if manages:
        team.managers.add(user)
    else:
        team.managers.remove(user)  # a manager who left the group outside of the product is still listed
    return user


@transaction.atomic
def remove_member(*, team: Team, username: str, by: User) -> User:
    """Remove a member from *team*, and from its managers. Raises PermissionDenied, NotFound and Conflict."""
    _check_may_change(team, by)
    user = get_member(team, username)
    _check_manager_remains(team, user, by)
    team.managers.remove(user)
    user.groups.remove(team.group)
    return user


@transaction.atomic
def set_manager(*, team: Team, username: str, manages: bool, by: User) -> User:
    """Make a member a manager of *team*, or a manager a member. Raises PermissionDenied, NotFound and Conflict."""
    _check_may_change(team, by)
    user = get_member(team, username)
    if manages:
        team.managers.add(user)
    else:
        _check_manager_remains(team, user, by)
        team.managers.remove(user)
    return user


def _check_may_change(team: Team, by: User) -> None:
    if not is_manager(by, lock_team(team)):
        raise PermissionDenied(f"Only managers of the team {team} and superusers may change its members.")


def _check_manager_remains(team: Team, leaving: User, by: User) -> None:
    if sees_all_teams(by) or not is_manager(leaving, team):
        return
    if not list_members(team, managers=True).filter(is_active=True).exclude(pk=leaving.pk).exists():
        raise Conflict(
            f"{leaving} is the last manager of the team {team}. Make another member a manager first.", "user"
        )


def _find_account(username: str) -> User:
    found = User.objects.filter(username=username).first()
    if found is None:
        raise UserError(
            f"There is no account named {username!r}. Check its spelling; upper and lower case differ. "
            f"{WHO_CREATES_ACCOUNTS}",
            "user",
        )
    if not found.is_active:
        raise UserError(f"The account {found} is disabled. An administrator can enable it.", "user")
    return found
