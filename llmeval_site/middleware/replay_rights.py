"""Check that the stored response to a repeated POST may still be sent to its user.

Rights change within the day for which responses are stored: a user leaves a team or a group, a token loses a scope, and
an environment is held out.
"""

import json
from collections.abc import Mapping
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import Resolver404, ResolverMatch, resolve
from rest_framework.exceptions import APIException
from rest_framework.views import APIView

from hub.models import Environment, Team
from hub.selectors import list_foreign_environments, may_see_content
from hub.teams.visibility import list_teams
from preferences.evidence import may_read_words
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
    content = _read_object(body)
    if (
        _names_hidden(user, match)
        or (location and _names_hidden(user, _resolve(location)))
        or _is_hidden(user, content)
        or _quotes_withheld(user, match, content)
    ):
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


def _read_object(body: bytes) -> dict[str, object]:
    """Return the JSON object in *body*, and an empty one if it has none."""
    try:
        content = json.loads(body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _is_hidden(user: User, content: Mapping[str, object]) -> bool:
    """Return whether a body, such as that of a batch, is about a run or an environment that is hidden from *user*."""
    run, environment = content.get("run"), content.get("environment")
    if isinstance(run, int) and _run_is_hidden(user, run):
        return True
    return isinstance(environment, str) and _environment_is_hidden(user, environment.partition("@")[0])


def _quotes_withheld(user: User, address: ResolverMatch, content: Mapping[str, object]) -> bool:
    """Return whether a body has reasons of scores, or words of a judge, that *user* may no longer read.

    That includes reasons in an episode that was deleted, because its environment is not known any more.
    """
    if _has_text(content.get("confirm"), "critique", "note"):
        pairs = Pair.objects.select_related("suggestion__version__environment").exclude(suggestion=None)
        pair = pairs.filter(pk=address.kwargs.get("pk", 0)).first()
        return pair is not None and pair.suggestion is not None and not may_read_words(user, pair.suggestion)
    info = content.get("info")
    rules = info.get("rules") if isinstance(info, dict) else None
    if not _has_text([content.get("items"), rules], "reason"):
        return False
    if "pk" in address.kwargs:
        sessions = EpisodeSession.objects.select_related("case__version__environment")
        session = sessions.filter(pk=address.kwargs["pk"]).first()
        environment = None if session is None else session.case.version.environment
    else:
        slug = str(content.get("environment", "")).partition("@")[0]
        environment = Environment.objects.filter(slug=slug).first()
    return environment is None or not may_see_content(user, environment)


def _has_text(value: object, *keys: str) -> bool:
    """Return whether an object in *value* has a text that is not empty under one of *keys*."""
    if isinstance(value, list):
        return any(_has_text(item, *keys) for item in value)
    if not isinstance(value, dict):
        return False
    found = (value.get(key) for key in keys)
    return any(isinstance(text, str) and text for text in found) or _has_text(list(value.values()), *keys)


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
