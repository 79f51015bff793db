"""The team that will own something new."""

from collections.abc import Iterable

from django.contrib.auth.models import AnonymousUser, User

from hub.common import wording
from hub.common.errors import UserError
from hub.models import Team, TeamOwned
from hub.teams.visibility import list_teams

SHARED_CHOICE = (Team.SHARED, "shared with everybody")


class TeamError(UserError):
    """The team that is to own something is missing or cannot own it. The path is `team`."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "team")


def list_own_teams(user: User | AnonymousUser) -> list[Team]:
    """Return the teams of which *user* is a member, also for a superuser."""
    return list(Team.objects.select_related("group").filter(group__user=user.pk)) if user.pk else []


def list_choices(user: User | AnonymousUser) -> list[tuple[str, str]]:
    """Return what *user* may choose as the owner of something new, (slug, name); empty if there is no choice."""
    teams = [(team.slug, team.name) for team in list_teams(user)]
    return [*teams, SHARED_CHOICE] if teams else []


def initial_choice(user: User) -> str:
    """Return the choice that a form begins with: the only team of *user*; "" if there are several."""
    own = list_own_teams(user)
    return own[0].slug if len(own) == 1 else "" if own else Team.SHARED


def choose_team(user: User | None, given: str = "", parts: Iterable[TeamOwned] = ()) -> Team | None:
    """Return the team that will own something new that is made of *parts*; None if it is shared.

    given: slug of the team, `shared`, or "" for the default: the team that owns the parts, or else the only team of
    *user*. user: None for the command line, which may name every team and shares by default.

    Raises TeamError, also if the parts belong to several teams or to another one: members of the owning team must be
    allowed to see all parts.
    """
    owners = {part.team: part for part in parts if part.team is not None}
    if len(owners) > 1:
        (a, first), (b, second), *_ = owners.items()
        raise TeamError(
            f"{first} belongs to the team {a}, and {second} to the team {b}. Use only what one team owns, and what is "
            "shared."
        )
    owner = next(iter(owners), None)
    if not given:
        return owner or _default_team(user)
    chosen = _find_team(user, given)
    if owner is not None and chosen != owner:
        raise TeamError(f"{owners[owner]} belongs to the team {owner}, so this must, too: set `team` to {owner}.")
    return chosen


def _default_team(user: User | None) -> Team | None:
    own = list_own_teams(user) if user is not None else []
    if len(own) > 1:
        slugs = ", ".join(team.slug for team in own)
        raise TeamError(f"You are in several teams. Name the one that will own this: {slugs}, or {Team.SHARED}.")
    return own[0] if own else None


def _find_team(user: User | None, slug: str) -> Team | None:
    if slug == Team.SHARED:
        return None
    teams = Team.objects.select_related("group").all() if user is None else list_teams(user)
    known = {team.slug: team for team in teams}
    if slug not in known:
        whose = "There is no team" if user is None else "You are in no team"
        raise TeamError(f"{whose} {slug!r}; {wording.suggest(slug, [*known, Team.SHARED])}.")
    return known[slug]
