"""Sign-in for every page, also for requests that cannot be repeated by following a link."""

from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class SignInRequiredMiddleware(LoginRequiredMiddleware):
    """Django's middleware, but users whose session has ended return to the page that they were on.

    The address of a form or of a part that htmx loads is not a page: after the sign-in it would show an error or a
    fragment. For htmx, the browser is told to open the sign-in page instead of putting it into a part of the page.
    """

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., HttpResponseBase],
        view_args: tuple[object, ...],
        view_kwargs: dict[str, object],
    ) -> HttpResponseBase | None:
        response = super().process_view(request, view_func, view_args, view_kwargs)
        if isinstance(response, HttpResponseRedirect) and _is_of_htmx(request):
            return HttpResponseClientRedirect(response.url)
        return response

    def handle_no_permission(
        self, request: HttpRequest, view_func: Callable[..., HttpResponseBase]
    ) -> HttpResponseRedirect:
        safe = request.method in _SAFE_METHODS
        if safe and not _is_of_htmx(request):
            return super().handle_no_permission(request, view_func)
        if not safe:
            messages.warning(request, "You were signed out, so nothing was changed. Sign in and submit the form again.")
        return redirect_to_login(_page_before(request), settings.LOGIN_URL)


def _is_of_htmx(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"


def _page_before(request: HttpRequest) -> str:
    """Return the path and query of the page that sent *request*, or of the dashboard if it is unknown."""
    url = request.headers.get("HX-Current-URL") or request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(url, {request.get_host()}):
        return "/"
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
