"""Replies to HEAD requests for downloads, without making the download."""

from collections.abc import Callable

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase


class HeadRequestMiddleware:
    """Middleware that leaves out the content of streamed responses to HEAD requests.

    The server would make all of it, an export for example, and then discard it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        if request.method == "HEAD" and isinstance(response, StreamingHttpResponse):
            response.streaming_content = ()
        return response
