"""Rejection of URLs that contain U+0000, which no database accepts in a query."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from llmeval_site.pages.errors import bad_request, is_rest, rest_error


class NullCharacterMiddleware:
    """Middleware that responds with 400 if the path or the query string contains U+0000."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        query = request.META.get("QUERY_STRING", "")
        if "\0" not in request.path_info and "%00" not in query and "\0" not in query:
            return self._get_response(request)
        if is_rest(request):
            return rest_error(request, 400, "The address contains the character U+0000; remove %00.")
        return bad_request(request, ValueError("U+0000 in the URL"))
