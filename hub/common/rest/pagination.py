"""Pagination of REST lists, named in settings. Imports no views: the views of REST framework import this module."""

from django.core.exceptions import ValidationError as InvalidValue
from django.core.validators import ProhibitNullCharactersValidator
from django.db.models import Field, Model, QuerySet
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor
from rest_framework.pagination import CursorPagination as BaseCursorPagination
from rest_framework.request import Request

# The filters accept them for pages of the site. A script that sent them here would get the first page each time.
_OF_PAGES = ("after", "before", "sort")


class CursorPagination(BaseCursorPagination):
    """Cursor pagination with `?page_size=` up to 500, ordered by the view's `ordering`."""

    page_size_query_param = "page_size"
    max_page_size = 500

    def get_page_size(self, request: Request) -> int | None:
        """Return the number of rows of a page. Raises ValidationError."""
        given = request.query_params.get(self.page_size_query_param)
        if given is None:
            return self.page_size
        if not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= self.max_page_size):
            raise ValidationError({self.page_size_query_param: f"Must be a number from 1 to {self.max_page_size}."})
        return int(given)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Return the cursor of the request. Raises ValidationError, also for parameters of lists on pages."""
        if unknown := [name for name in _OF_PAGES if name in request.query_params]:
            known = f"Follow `next` and `previous`; {self.page_size_query_param} is the number of rows."
            raise ValidationError({name: f"{name} is not a parameter of this list. {known}" for name in unknown})
        try:
            cursor = super().decode_cursor(request)
            if cursor is not None and cursor.position is not None:
                self._check_position(str(cursor.position))
        except (NotFound, InvalidValue):
            message = "This is not a cursor of this list; follow `next` and `previous`, or leave it out."
            raise ValidationError({self.cursor_query_param: message}) from None
        return cursor

    def _check_position(self, position: str) -> None:
        """Raise InvalidValue unless the column by which the list is ordered may have this value."""
        ProhibitNullCharactersValidator()(position)
        self._ordered_by.to_python(position)

    def get_ordering(self, request: Request, queryset: QuerySet[Model], view: object) -> tuple[str, ...]:
        order: str = getattr(view, "ordering", "-id")
        column = queryset.model._meta.get_field(order.removeprefix("-"))
        assert isinstance(column, Field)
        self._ordered_by = column
        return (order,)
