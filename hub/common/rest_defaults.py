"""Paging and throttling of every REST view, named in settings; kept apart because REST framework's own views load it.

Nothing here may import those views, or anything that does.
"""

from typing import Any

from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.throttling import UserRateThrottle


class Cursor(CursorPagination):
    """`?cursor=` as `next` and `previous` give it, `?page_size=` up to 500. A view orders by its own `ordering`."""

    page_size_query_param = "page_size"
    max_page_size = 500

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        return (getattr(view, "ordering", "-id"),)


class WriteThrottle(UserRateThrottle):
    """Limits what changes something, beside the limit for everything."""

    scope = "write"

    def allow_request(self, request: Request, view: Any) -> bool:
        return request.method in ("GET", "HEAD", "OPTIONS") or super().allow_request(request, view)
