"""Keyset paging for pages: as quick on the last page of a million rows as on the first."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows, and the values for `?after=` and `?before=` that lead on; empty where there is nothing there."""

    rows: list[Row]
    after: str = ""
    before: str = ""


def keyset_page(
    rows: QuerySet[Row], request: HttpRequest, *, by: str, size: int, descending: bool = False
) -> Page[Row]:
    """The page of *rows* that the request's `after` or `before` names. *by* is unique among them, and indexed."""
    after, before = _value(rows, by, request.GET.get("after")), _value(rows, by, request.GET.get("before"))
    backwards = before is not None
    mark = before if backwards else after
    falling = descending != backwards
    if mark is not None:
        rows = rows.filter(**{f"{by}__{'lt' if falling else 'gt'}": mark})
    found = list(rows.order_by(f"-{by}" if falling else by)[: size + 1])
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


def page_or_part(request: HttpRequest, page: str, part: str) -> str:
    """The template *page*, or its partial *part* where htmx asks for that: the id of its target is the part's name."""
    return f"{page}#{part}" if request.headers.get("HX-Target") == part else page


def render_part(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    """Render what `page_or_part` chose; caches are told that one address has both."""
    response = render(request, template, context, status=status)
    patch_vary_headers(response, ["HX-Target"])
    return response


def _value(rows: QuerySet[Row], by: str, given: str | None) -> int | str | None:
    """What the address names, as the field's type; None where it is absent or nonsense."""
    if not given or "\x00" in given:
        return None
    if rows.model._meta.get_field(by).get_internal_type() in ("CharField", "SlugField"):
        return given
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 16 else None
