"""The audit log: who changed or downloaded what, on the site and over REST."""

from collections.abc import Callable

from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest, HttpResponseBase
from django.views.generic import RedirectView
from django_guid import get_guid

from llmeval_site.models import ApiToken, AuditEntry

# Requests that a page or a trainer sends many times in a minute. Their results are stored with user and time elsewhere.
FREQUENT = {
    "review:draft",
    "review:next",
    "review:take",
    "api-pair-next",
    "api-episodes",
    "api-episode-step",
    "api-episode-finish",
    "api-episodes-batch",
    "api-episodes-cases",
    "api-score",
}
DOWNLOADS = {
    "hub:bundle",
    "hub:draft_bundle",
    "api-bundle",
    "runs:failures",
    "runs:compared_failures",
    "runs:rollouts",
    "api-run-failures",
    "api-run-rollouts",
    "api-episodes-export",
    "preferences:export",
    "api-preferences-export",
}
SIGN_INS = {"openid_callback"}  # by GET, since the provider redirects to it
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class AuditMiddleware:
    """Middleware that stores an entry for each change and each download of a user that succeeded."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # Signing out removes the user from the request. A token is checked by the view, so its user is known later.
        before = None if request.method in _SAFE_METHODS else _user(request)
        response = self._get_response(request)
        # An error may be about something that was stored, such as a run of which no worker could be notified.
        effective = response.status_code < 400 or getattr(response, "stored", False)
        if effective and _is_recorded(request) and not _changed_nothing(request, response):
            user = _user(request) or before
            if user is not None:
                _store(request, response, user)
        return response


def _is_recorded(request: HttpRequest) -> bool:
    name = _action(request)
    if request.method == "GET":
        return name in DOWNLOADS or name in SIGN_INS
    return request.method not in _SAFE_METHODS and name not in FREQUENT


def _changed_nothing(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Return whether the view called `record_nothing` or only redirects, or the admin shows a form again."""
    if not getattr(response, "audited", True) or _only_redirects(request):
        return True
    if not _action(request).startswith("admin:") or response.status_code != 200:
        return False
    # After a change in a window of its own, a page closes the window.
    return "popup_response_data" not in (getattr(response, "context_data", None) or {})


def _only_redirects(request: HttpRequest) -> bool:
    """Return whether the address is an old one, of which the admin has several."""
    view_class = getattr(request.resolver_match.func, "view_class", None) if request.resolver_match else None
    return isinstance(view_class, type) and issubclass(view_class, RedirectView)


def _action(request: HttpRequest) -> str:
    return request.resolver_match.view_name if request.resolver_match else ""


def _user(request: HttpRequest) -> User | None:
    user: User | AnonymousUser = request.user
    return user if isinstance(user, User) else None


def _store(request: HttpRequest, response: HttpResponseBase, user: User) -> None:
    token = getattr(request, "auth", None)
    AuditEntry.objects.create(
        user_id=user.pk,
        username=user.get_username(),
        token=token.prefix if isinstance(token, ApiToken) else "",
        action=_action(request)[:100],
        method=request.method or "",
        path=getattr(response, "audited_path", request.path)[:500],
        status=response.status_code,
        request_id=get_guid() or "",
    )
