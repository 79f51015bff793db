"""Tests of HEAD requests for downloads."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.http import HttpRequest, StreamingHttpResponse
from django.test import RequestFactory

from llmeval_site.middleware.head_requests import HeadRequestMiddleware


@pytest.mark.parametrize(("method", "content"), [("HEAD", b""), ("GET", b"rows")])
def test_download_is_made_for_get_only(rf: RequestFactory, method: str, content: bytes) -> None:
    made = []

    def rows() -> Iterator[bytes]:
        made.append(True)
        yield b"rows"

    def view(request: HttpRequest) -> StreamingHttpResponse:
        return StreamingHttpResponse(rows(), content_type="application/zip")

    response = HeadRequestMiddleware(view)(rf.generic(method, "/"))
    assert isinstance(response, StreamingHttpResponse)
    assert response["Content-Type"] == "application/zip"
    assert b"".join(response) == content
    assert bool(made) == bool(content)


def test_middleware_is_installed() -> None:
    assert f"{HeadRequestMiddleware.__module__}.{HeadRequestMiddleware.__qualname__}" in settings.MIDDLEWARE
