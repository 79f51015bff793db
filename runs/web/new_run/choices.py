"""Lists of environments and models that a new run can be made of: searched, and a page at a time."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from django.contrib.auth.models import User
from django.core.paginator import Page, Paginator
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Lower

from hub.models import Environment
from hub.web.queries import filter_environments
from runs.config.schema import MAX_ITEMS
from runs.models import ModelEndpoint
from runs.selectors import visible_models
from runs.web.new_run.draft import Draft, EnvironmentChoice

PER_PAGE = 12
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Choices(Generic[Row]):
    """One page of a list. rows: each with the value that chooses it, and whether it is chosen.

    elsewhere: chosen values that are not on this page.
    """

    page: Page[Row]
    rows: list[tuple[Row, str, bool]]
    elsewhere: list[str]


def list_environments(user: User, draft: Draft) -> Choices[Environment]:
    """Return the environments that match the search. One that is chosen with a version keeps it."""
    chosen = {EnvironmentChoice.parse(value).slug: value for value in reversed(draft.environments)}
    page = Paginator(_matching_environments(user, draft), PER_PAGE).get_page(draft.fields["page"])
    rows = [(item, chosen.get(item.slug, item.slug), item.slug in chosen) for item in page]
    return _choices(page, rows, draft.environments)


def list_models(user: User, draft: Draft) -> Choices[ModelEndpoint]:
    """Return the registered models that match the search; staff also search the names at the endpoints."""
    found = visible_models(user).filter(enabled=True).order_by("name")
    for word in draft.fields["model_q"][:200].split()[:8]:
        named = Q(name__icontains=word) | Q(family__icontains=word)
        found = found.filter(named | Q(model__icontains=word) if user.is_staff else named)
    page = Paginator(found, PER_PAGE).get_page(draft.fields["model_page"])
    rows = [(item, item.name, item.name in draft.models) for item in page]
    return _choices(page, rows, draft.models)


def choose_all_found(user: User, draft: Draft) -> None:
    """Add all environments that match the search to those chosen in *draft*, as many as a run may have."""
    chosen = draft.environments
    known = {EnvironmentChoice.parse(value).slug for value in chosen}
    found = _matching_environments(user, draft).values_list("slug", flat=True)[: MAX_ITEMS["environments"] + len(known)]
    added = [slug for slug in found if slug not in known]
    draft.environments = [*chosen, *added][: max(MAX_ITEMS["environments"], len(chosen))]


def _matching_environments(user: User, draft: Draft) -> QuerySet[Environment]:
    found = filter_environments(user, q=draft.fields["q"][:200], category=draft.fields["category"])
    return found.order_by("-featured", Lower("title"), "slug")


def _choices(page: Page[Row], rows: list[tuple[Row, str, bool]], chosen: list[str]) -> Choices[Row]:
    shown = {value for _, value, _ in rows}
    return Choices(page, rows, [value for value in chosen if value not in shown])
