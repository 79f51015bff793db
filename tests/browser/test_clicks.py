"""Clicks that frequent tasks take on the pages of a finished run. `test_first_run.py` counts those of a first run."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from runs.models import Response
from tests.browser.conftest import Visit
from tests.browser.looks.full_site import FullSite

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_first_failing_transcript_is_one_click_from_the_run(visit: Visit, site: FullSite) -> None:
    page = visit(f"/runs/{site.run.pk}/", site.user)
    page.get_by_role("link", name="First failure").first.click()  # 1
    page.wait_for_url(re.compile(r"/responses/\d+/$"))
    response = Response.objects.get(pk=page.url.rstrip("/").rpartition("/")[2])
    assert response.status == "failed"
    expect(page.get_by_role("heading", name="Transcript")).to_be_visible()


@pytest.mark.exhaustive
def test_first_differing_answer_is_two_clicks_from_the_comparison(visit: Visit, site: FullSite) -> None:
    page = visit(f"/compare/?a={site.run.pk}", site.user)
    page.get_by_role("link", name="read the cases that differ").first.click()  # 1
    page.locator("main tbody a").first.click()  # 2
    expect(page.get_by_role("heading", name="Differences of the answers")).to_be_visible()


@pytest.mark.exhaustive
def test_first_differing_answer_is_two_clicks_from_the_list_of_runs(visit: Visit, site: FullSite) -> None:
    page = visit("/runs/", site.user)
    page.locator("td.choose a").first.click()  # 1
    page.get_by_role("link", name="First case that differs").first.click()  # 2
    expect(page.get_by_role("heading", name="Differences of the answers")).to_be_visible()


@pytest.mark.exhaustive
def test_failures_are_exported_with_two_clicks_from_the_run(visit: Visit, site: FullSite) -> None:
    page = visit(f"/runs/{site.run.pk}/", site.user)
    page.get_by_text("Failing cases", exact=True).click()  # 1
    with page.expect_download() as download:
        page.locator("details.menu[open]").get_by_role("link", name="jsonl").first.click()  # 2
    assert Path(download.value.path()).read_text().count("\n") >= 1
