"""Error page for a bundle or a large transcript that cannot be read from, or written to, the storage of archives."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from hub.bundles.stored import ArchiveUnavailable
from hub.common.fields import ContentUnavailable
from llmeval_site.pages.errors import error_page


class UnavailableContentMiddleware:
    """Middleware that responds with 503 and the reason if an archive or a large transcript is unavailable."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the error page, or None for other exceptions."""
        if not isinstance(exception, ContentUnavailable | ArchiveUnavailable):
            return None
        return error_page(request, exception.status_code, "Content unavailable", f"{exception} Nothing was changed.")
