"""The main navigation. To add a page to it, add an entry to NAVIGATION."""

from dataclasses import dataclass
from typing import TypedDict

from django.http import HttpRequest
from django.urls import get_script_prefix, reverse

from hub.teams.visibility import has_teams


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """A page of the main navigation.

    *view* is a URL name. Pressing `g` and then *key* opens the page. Users without *permission* do not see the entry.
    Pages below the address of *view*, and below those of *others*, belong to the entry.
    """

    title: str
    view: str
    key: str
    permission: str = ""
    others: tuple[str, ...] = ()


class NavigationLink(TypedDict):
    """A navigation entry as templates show it."""

    title: str
    url: str
    key: str
    current: bool


NAVIGATION = [
    NavigationEntry("Hub", "hub:catalogue", "h"),
    NavigationEntry("Runs", "runs:list", "r", others=("compare/", "responses/")),
    NavigationEntry("Review", "review:next", "v", "review.decide_pair"),
    NavigationEntry("Preferences", "preferences:list", "p", others=("agreement/", "ranking/")),
    NavigationEntry("Models", "runs:models", "m", others=("endpoints/",)),
]


def navigation(request: HttpRequest) -> dict[str, object]:
    """Return `navigation` for every template, the pages that the signed-in user may open, and `has_teams`."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"navigation": []}
    links: list[NavigationLink] = []
    for entry in NAVIGATION:
        if entry.permission and not user.has_perm(entry.permission):
            continue
        url = reverse(entry.view)
        below = (url, *(f"{get_script_prefix()}{other}" for other in entry.others))
        links.append({"title": entry.title, "url": url, "key": entry.key, "current": request.path.startswith(below)})
    return {"navigation": links, "has_teams": has_teams(user)}
