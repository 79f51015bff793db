"""Pagination of REST lists, named in settings. Imports no views: the views of REST framework import this module."""

from django.db.models import Model, QuerySet
from rest_framework.pagination import CursorPagination as BaseCursorPagination
from rest_framework.request import Request


class CursorPagination(BaseCursorPagination):
    """Cursor pagination with `?page_size=` up to 500, ordered by the view's `ordering`."""

    page_size_query_param = "page_size"
    max_page_size = 500

    def get_ordering(self, request: Request, queryset: QuerySet[Model], view: object) -> tuple[str, ...]:
        return (getattr(view, "ordering", "-id"),)
