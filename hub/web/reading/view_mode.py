"""The choice between rendered texts and texts as they were written: in the URL, else in a cookie."""

from django.http import HttpRequest

COOKIE = "view"  # written by a script when the reader switches


def shows_source(request: HttpRequest) -> bool:
    """Return whether the page shows texts as they were written: `?view=source`."""
    return request.GET.get("view", request.COOKIES.get(COOKIE, "")) == "source"
