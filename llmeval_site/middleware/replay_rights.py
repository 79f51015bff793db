"""Check that the stored response to a repeated POST may still be sent to its user.

Rights change within the day for which responses are stored: a user leaves a team or a group, and a token loses a scope.
"""

import json
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import Resolver404, ResolverMatch, resolve
from rest_framework.exceptions import APIException
from rest_framework.views import APIView

from hub.models import Team
from hub.selectors import list_foreign_environments
from hub.teams.visibility import list_teams
from review.models import Pair
from runs.models import EpisodeSession, Run
from runs.selectors import visible_runs


def find_lost_right(request: HttpRequest, user: User, *, location: str, body: bytes) -> tuple[int, str] | None:
    """Return the status and the message of the refusal, or None if the response may be sent.

    location: the header of the stored response. body: its text.
    """
    match = resolve(request.path_info)
    refusal = _refusal_of_view(request, match)
    if refusal is not None:
        return refusal
    if _names_hidden(user, match) or (location and _names_hidden(user, _resolve(location))) or _is_hidden(user, body):
        return 404, "The first request succeeded, but your account may no longer see what its response shows."
    return None


def _refusal_of_view(request: HttpRequest, match: ResolverMatch) -> tuple[int, str] | None:
    """Return what the view responds if the token lacks its scope, or the user a permission."""
    view_class = getattr(match.func, "cls", None)
    if view_class is None:
        return None
    view: APIView = view_class()
    view.setup(request, *match.args, **match.kwargs)
    rest_request = view.initialize_request(request)
    try:
        view.perform_authentication(rest_request)
        view.check_permissions(rest_request)
    except APIException as error:
        return error.status_code, str(error.detail)
    except PermissionDenied as error:
        return 403, str(error)
    return None


def _resolve(location: str) -> ResolverMatch | None:
    try:
        return resolve(urlsplit(location).path)
    except Resolver404:
        return None


def _names_hidden(user: User, address: ResolverMatch | None) -> bool:
    """Return whether an address below /api/v1/ names an object that is hidden from *user*."""
    if address is None or not address.kwargs:
        return False
    collection, named = address.route.split("/")[2], next(iter(address.kwargs.values()))
    match collection:
        case "runs":
            return _run_is_hidden(user, named)
        case "environments":
            return _environment_is_hidden(user, named)
        case "episodes":
            return _episode_is_hidden(user, named)
        case "pairs":
            return _pair_is_hidden(user, named)
        case "teams":
            return _team_is_hidden(user, named)
    return False


def _is_hidden(user: User, body: bytes) -> bool:
    """Return whether a body, such as that of a batch, is about a run or an environment that is hidden from *user*."""
    try:
        content = json.loads(body)
    except ValueError:
        return False
    if not isinstance(content, dict):
        return False
    run, environment = content.get("run"), content.get("environment")
    if isinstance(run, int) and _run_is_hidden(user, run):
        return True
    return isinstance(environment, str) and _environment_is_hidden(user, environment.partition("@")[0])


def _run_is_hidden(user: User, pk: int) -> bool:
    return Run.objects.filter(pk=pk).exists() and not visible_runs(user, deleted=True).filter(pk=pk).exists()


def _environment_is_hidden(user: User, slug: str) -> bool:
    return list_foreign_environments(user).filter(slug=slug).exists()


def _episode_is_hidden(user: User, pk: UUID) -> bool:
    hidden = list_foreign_environments(user).values("pk")
    return EpisodeSession.objects.filter(pk=pk, case__version__environment__in=hidden).exists()


def _pair_is_hidden(user: User, pk: int) -> bool:
    run = Pair.objects.filter(pk=pk).values_list("run_id", flat=True).first()
    return run is not None and _run_is_hidden(user, run)


def _team_is_hidden(user: User, slug: str) -> bool:
    return Team.objects.filter(slug=slug).exists() and not list_teams(user).filter(slug=slug).exists()
