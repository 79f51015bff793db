"""Answers with the status 201 or 202: they have the address of the result in `Location`."""

from collections.abc import Mapping

from django.urls import reverse
from rest_framework.response import Response


def created(
    body: object, url_name: str, *args: object, status: int = 201, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response with *body* and the address of what was created: the URL *url_name* with *args*."""
    return Response(body, status=status, headers={**(headers or {}), "Location": reverse(url_name, args=args)})
