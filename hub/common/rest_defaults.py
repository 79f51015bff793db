"""Pagination and throttling of REST views, named in settings. Separate because REST framework's views import it.

This module must not import those views, directly or indirectly.
"""

from typing import Any

from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.throttling import UserRateThrottle


class Cursor(CursorPagination):
    """Cursor pagination with `?page_size=` up to 500. A view orders by its `ordering`."""

    page_size_query_param = "page_size"
    max_page_size = 500

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        return (getattr(view, "ordering", "-id"),)


class WriteThrottle(UserRateThrottle):
    """Throttle of requests that change something, in addition to the general one."""

    scope = "write"

    def allow_request(self, request: Request, view: Any) -> bool:
        return request.method in ("GET", "HEAD", "OPTIONS") or super().allow_request(request, view)
