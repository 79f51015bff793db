"""The URLs of the site, and one whose view raises an exception."""

from typing import NoReturn

from django.http import HttpRequest
from django.urls import path

from llmeval_site.urls import handler400, handler403, handler404, handler500, urlpatterns

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]


def fails(request: HttpRequest) -> NoReturn:
    raise RuntimeError("secret detail")


urlpatterns = [path("fails/", fails), *urlpatterns]
