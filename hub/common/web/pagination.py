"""Keyset pagination of pages in any order, as fast on the last page of a million rows as on the first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.core.exceptions import BadRequest
from django.db.models import F, Model, OrderBy, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from hub.common.web.filters import FilterForm

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """One page of rows, and the values of `?after=` and `?before=` for its neighbours; "" if there is none."""

    rows: list[Row]
    after: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """Sort order of a list: `name` as in `?sort=`, `field` of the rows. Empty: the list's default order."""

    name: str = ""
    field: str = ""
    descending: bool = False


def order_of(request: HttpRequest, columns: Mapping[str, str]) -> Order:
    """Return the order of `?sort=name` or `?sort=-name`; *columns*: name -> field. Raises BadRequest."""
    given = request.GET.get("sort", "")
    name = given.removeprefix("-")
    if not given:
        return Order()
    if name not in columns:
        raise BadRequest(f"sort: this list cannot be sorted by this. Known are {', '.join(columns)}.")
    return Order(name, columns[name], given.startswith("-"))


def keyset_page(
    rows: QuerySet[Row],
    request: HttpRequest,
    *,
    by: str,
    size: int,
    descending: bool = False,
    order: Order | None = None,
) -> Page[Row]:
    """Return the page of *rows* for the request's `after` or `before`. The field *by* is unique and indexed.

    *order* goes before *by*; rows without a value there come last. Raises BadRequest.
    """
    order = order or Order()
    after, before = _value(rows, by, request, "after"), _value(rows, by, request, "before")
    backwards = before is not None
    mark = before if backwards else after
    falling = descending != backwards
    found_mark = None if mark is None else _behind(rows, by, mark, falling, order, backwards)
    if found_mark is not None:
        rows = rows.filter(found_mark)
    tie = F(by).desc() if falling else F(by).asc()
    found = list(rows.order_by(*_ordering(order, backwards), tie)[: size + 1])
    more, found = len(found) > size, found[:size]
    if backwards:
        found.reverse()
    if not found:
        return Page([])
    first, last = str(getattr(found[0], by)), str(getattr(found[-1], by))
    return Page(
        rows=found,
        after=last if more or backwards else "",
        before=first if (more if backwards else mark is not None) else "",
    )


def _ordering(order: Order, backwards: bool) -> list[OrderBy]:
    if not order.field:
        return []
    column, nulls = F(order.field), {"nulls_first" if backwards else "nulls_last": True}
    return [column.desc(**nulls) if order.descending != backwards else column.asc(**nulls)]


def _behind(rows: QuerySet[Row], by: str, mark: int | str, falling: bool, order: Order, backwards: bool) -> Q | None:
    """Return the condition for rows after the row *mark*, in reading direction; None if there is no such row."""
    tie = Q(**{f"{by}__{'lt' if falling else 'gt'}": mark})
    if not order.field:
        return tie
    # The row's value is looked up, because a value in the address could be anything.
    values = list(rows.filter(**{by: mark}).order_by().values_list(order.field, flat=True)[:1])
    if not values:
        return None
    empty = Q(**{f"{order.field}__isnull": True})
    if values[0] is None:
        return (empty & tie) | ~empty if backwards else empty & tie
    further = Q(**{f"{order.field}__{'lt' if order.descending != backwards else 'gt'}": values[0]})
    further |= Q(**{order.field: values[0]}) & tie
    return further if backwards else further | empty


def page_or_part(request: HttpRequest, page: str, part: str) -> str:
    """Return the template *page*, or its partial *part* if that is the id of the element that htmx will replace."""
    return f"{page}#{part}" if request.headers.get("HX-Target") == part else page


def render_part(request: HttpRequest, template: str, context: dict[str, object], *, status: int = 200) -> HttpResponse:
    """Render the template that `page_or_part` returned. The Vary header keeps caches from mixing page and partial."""
    response = render(request, template, context, status=status)
    patch_vary_headers(response, ["HX-Target"])
    return response


def render_list(request: HttpRequest, template: str, context: dict[str, object], form: FilterForm) -> HttpResponse:
    """Render a list that *form* filters. The status is 400 if a filter is invalid.

    htmx replaces an element only if the request succeeds, so its requests get 200 and a partial with the problems.
    """
    status = 200 if form.is_valid() or request.headers.get("HX-Request") else 400
    return render_part(request, template, context, status=status)


def _value(rows: QuerySet[Row], by: str, request: HttpRequest, name: str) -> int | str | None:
    """Return the parameter as the field's type; None if it is missing. Raises BadRequest."""
    given = request.GET.get(name, "")
    if not given:
        return None
    is_text = rows.model._meta.get_field(by).get_internal_type() in ("CharField", "SlugField")
    if is_text and "\x00" not in given:
        return given
    if not is_text and given.isascii() and given.isdecimal() and len(given) < 16:
        return int(given)
    raise BadRequest(f"{name}: this is no place in this list. Follow the links to its pages, or leave {name} out.")
