"""A hundred texts that try to be more than text are shown as text on every page that holds them."""

from typing import Any

import pytest
from playwright.sync_api import Page

from preferences.models import IssueCategory
from preferences.services import NewIssue
from preferences.spans import span_at
from review import queue
from review.display import visible
from tests.browser.review_fixtures import SignIn, browser, sign_in
from tests.browser.tricks import TRICKS
from tests.review.pages import reviewer, suggest, waiting_pairs

__all__ = ["browser", "sign_in"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ALL = "\n".join(TRICKS)


def watch(page: Page) -> list[str]:
    """What a page does that text does not: requests elsewhere, dialogs, errors."""
    seen: list[str] = []
    page.on("request", lambda r: seen.append(r.url) if "example.invalid" in r.url or "/logout" in r.url else None)
    page.on("dialog", lambda d: (seen.append(d.message), d.dismiss()))
    page.on("pageerror", lambda e: seen.append(str(e)))
    return seen


def test_there_are_a_hundred_of_them() -> None:
    assert len(set(TRICKS)) >= 100


def test_they_are_text_everywhere(sign_in: SignIn, monkeypatch: Any) -> None:
    monkeypatch.setattr(queue, "_drawn", lambda what, pair, user: 0.99)
    category = IssueCategory.objects.get_or_create(slug="style", defaults={"title": "style"})[0]
    (pair,) = waiting_pairs(1, texts=(ALL, "two"), prompt=ALL)
    issue = NewIssue(response=pair.first, category=category, note=ALL, span=span_at(ALL, 0, 4000, 1))
    preference = suggest(pair, "first", critique=ALL, issues=[issue])
    user = reviewer()
    user.is_staff = user.is_superuser = True
    user.save()
    page = sign_in(user)
    seen = watch(page)
    for address in (
        f"/review/{pair.pk}/",
        "/preferences/",
        f"/preferences/{preference.pk}/",
        "/agreement/",
        "/ranking/",
        f"/admin/preferences/preference/{preference.pk}/change/",
    ):
        page.goto(address)
        assert page.evaluate("window.tricked") is None, address
        assert page.locator("main, #content").first.is_visible()
    assert seen == []
    page.goto(f"/review/{pair.pk}/")
    shown = page.evaluate("document.querySelector('pre.answer[data-side=a]').textContent")
    assert shown == visible(ALL)
    assert len(shown) >= len(ALL)
    for hidden in ("\u202e", "\x1b", "\u200b"):
        assert hidden not in page.content()
