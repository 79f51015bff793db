"""The main navigation: an app's page appears by adding a line to NAVIGATION."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True, slots=True)
class Place:
    """A page of the main navigation. `view` is a URL name; `g` then `key` goes there; `permission` hides it without."""

    title: str
    view: str
    key: str
    permission: str = ""


NAVIGATION = [
    Place("Hub", "hub:catalogue", "h"),
    Place("Runs", "runs:list", "r"),
    Place("Review", "review:next", "v", "review.decide_pair"),
    Place("Preferences", "preferences:list", "p"),
    Place("Models", "runs:models", "m"),
]


def navigation(request: HttpRequest) -> dict[str, list[dict[str, Any]]]:
    """`navigation` for every template: what the signed-in user may open, and where they are."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"navigation": []}
    places = []
    for place in NAVIGATION:
        if place.permission and not user.has_perm(place.permission):
            continue
        url = reverse(place.view)
        places.append(
            {"title": place.title, "url": url, "key": place.key, "current": request.path_info.startswith(url)}
        )
    return {"navigation": places}
