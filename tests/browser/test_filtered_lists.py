"""Filters, order and pages of lists with htmx: the back button, clicks right after typing, a session that has ended."""

import re

import pytest
from django.conf import settings
from playwright.sync_api import Page, Request, expect

from hub.models import Environment
from tests.browser.conftest import Visit
from tests.factories import stored_run, stored_version
from tests.members import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def open_runs(visit: Visit) -> Page:
    version = stored_version("sums")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    for i in range(32):
        stored_run(version, name=f"nightly {i:02}")
    stored_run(version, name="other")
    page = visit("/runs/", member())
    expect(page.locator("tbody tr")).to_have_count(30)
    return page


def search(page: Page, text: str) -> None:
    page.get_by_label("Name").press_sequentially(text)
    page.wait_for_url(re.compile(f"q={text}"))


def test_back_button_restores_rows_with_their_filters(visit: Visit) -> None:
    page = open_runs(visit)
    search(page, "other")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Name").fill("")
    page.wait_for_url(re.compile("q=&"))
    expect(page.locator("tbody tr")).to_have_count(30)
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_label("Name")).to_have_value("other")
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(30)
    expect(page.get_by_label("Name")).to_have_value("")


def test_order_and_filter_are_kept_while_paging(visit: Visit) -> None:
    page = open_runs(visit)
    search(page, "nightly")
    page.get_by_role("link", name="Run", exact=True).click()
    expect(page.locator("tbody th").first).to_contain_text("nightly 00")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("tbody th").first).to_contain_text("nightly 30")
    expect(page).to_have_url(re.compile("q=nightly.*sort=run.*after="))


def test_leaving_a_search_field_does_not_load_the_rows_again(visit: Visit) -> None:
    page = open_runs(visit)
    search(page, "other")
    expect(page.locator("tbody tr")).to_have_count(1)
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    page.on("request", note)
    page.get_by_label("Name").press("Tab")
    page.wait_for_timeout(600)
    assert asked == []
    page.get_by_label("Status").select_option("running")
    expect(page.locator("#runs .empty")).to_be_visible()
    assert len(asked) == 1


def test_filter_with_ended_session_opens_the_sign_in_page(visit: Visit) -> None:
    page = open_runs(visit)
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_label("Name").press_sequentially("other")
    page.wait_for_url("**/login/?next=/runs/**")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
