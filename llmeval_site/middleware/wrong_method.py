"""Error page for requests with a method that an address does not accept, such as the reload of an action's address."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.urls import Resolver404, resolve

from llmeval_site.pages.errors import error_page, is_rest


class WrongMethodMiddleware:
    """Middleware that gives a 405 without content an error page, with a link to the page above the address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        if not isinstance(response, HttpResponseNotAllowed) or response.content or is_rest(request):
            return response
        if request.method in ("GET", "HEAD"):
            title, link = "This address is not a page", page_above(request.path_info)
            text = "It only receives forms, so there is nothing to open or to reload here. Nothing was changed."
        else:
            title, link = "This address receives no forms", request.path_info
            text = "Open it as a page instead. Nothing was changed."
        page = error_page(request, response.status_code, title, text, link=link)
        page.headers["Allow"] = response.headers["Allow"]
        return page


def page_above(path: str) -> str:
    """Return the closest address above *path* that the site has, such as /runs/1/ for /runs/1/cancel/."""
    while path != "/":
        path = path.rstrip("/").rpartition("/")[0] + "/"
        try:
            resolve(path)
        except Resolver404:
            continue
        return path
    return path
