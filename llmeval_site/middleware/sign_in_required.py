"""Redirects to the sign-in page, which lead back to a page afterwards."""

from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
_NOT_SAVED = "Your session has ended, so what you submitted was not saved. Sign in, then submit it again."


class SignInRequiredMiddleware(LoginRequiredMiddleware):
    """Middleware that redirects all requests without a session to the sign-in page.

    After the sign-in, users return to the page that they requested. If they submitted a form, or htmx requested a part
    of a page, they return to the page with that form or part: the address of the request itself may be no page. But if
    htmx requested the page at its own address, for example with another filter, they return to what was requested.
    """

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., HttpResponseBase],
        view_args: tuple[object, ...],
        view_kwargs: dict[str, object],
    ) -> HttpResponseBase | None:
        """Return None if the view may be called, otherwise the redirect."""
        response = super().process_view(request, view_func, view_args, view_kwargs)
        by_htmx = bool(getattr(request, "htmx", False))
        submitted = request.method not in _SAFE_METHODS
        if response is None or not (by_htmx or submitted):
            return response
        if submitted:
            messages.warning(request, _NOT_SAVED)
        page = request.headers.get("HX-Current-URL" if by_htmx else "Referer", "")
        target = _own_path(request, page)
        if not submitted and urlsplit(target).path == request.path:
            target = request.get_full_path()
        redirect = redirect_to_login(target, self.get_login_url(view_func))
        return HttpResponseClientRedirect(redirect.url) if by_htmx else redirect


def _own_path(request: HttpRequest, url: str) -> str:
    """Return the path and query of *url*, or those of the first page if it is not an address of this site."""
    if not url or not url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure()):
        return resolve_url(settings.LOGIN_REDIRECT_URL)
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
