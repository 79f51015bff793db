"""Error page for a large transcript whose file is missing or damaged in the storage of archives."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from hub.common.fields import ContentUnavailable
from llmeval_site.pages.errors import error_page


class UnavailableContentMiddleware:
    """Middleware that responds with 503 and the reason if a file of a large transcript is missing or damaged."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the error page, or None for other exceptions."""
        if not isinstance(exception, ContentUnavailable):
            return None
        return error_page(request, exception.status_code, "Content unavailable", f"{exception} Nothing was changed.")
