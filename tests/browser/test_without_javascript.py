"""Browser tests without JavaScript: one walk from signing in to the exported preferences."""

import re

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from playwright.sync_api import expect

from hub.models import Environment
from hub.services import import_bundle
from runs.models import Run
from runs.services import register_demo_models
from tests.browser.conftest import Visit, execute_queue
from tests.browser.looks.full_site import FullSite
from tests.review.pages import waiting_pairs

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.exhaustive
def test_models_are_run_read_compared_and_reviewed_without_javascript(visit: Visit) -> None:
    register_demo_models()
    import_bundle(bundle=settings.BASE_DIR / "hub" / "catalog" / "changing-plans")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    waiting_pairs(1)
    User.objects.create_superuser("ann", password="secret")

    page = visit("/", script=False)
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Password").fill("secret")
    page.get_by_role("button", name="Sign in").click()
    navigation = page.get_by_role("navigation", name="Main")
    for model in ("demo", "demo-hasty"):
        navigation.get_by_role("link", name="Hub").click()
        page.locator("a[data-open]", has_text=Environment.objects.get(slug="changing-plans").title).click()
        page.get_by_role("link", name="Choose the model").click()
        page.get_by_label("Model").select_option(model)
        page.get_by_role("button", name=re.compile("^Run all")).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"changing-plans, {model}")
        execute_queue()
        page.get_by_role("link", name="Reload").click()
        expect(page.locator("#outcome")).to_contain_text("completed")
    first, second = (f"changing-plans, {model}" for model in ("demo", "demo-hasty"))

    page.get_by_role("link", name="First failure").first.click()
    expect(page.get_by_role("heading", name="Transcript")).to_be_visible()
    page.get_by_role("link", name="Source", exact=True).click()
    expect(page.locator(".transcript")).to_be_visible()

    navigation.get_by_role("link", name="Runs").click()
    page.get_by_role("link", name=second).click()
    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_label("Run B").select_option(str(Run.objects.get(name=first).pk))
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("link", name=re.compile("read the cases that differ")).click()
    page.locator("a[data-open]").first.click()
    expect(page.get_by_role("heading", name="Transcripts")).to_be_visible()

    navigation.get_by_role("link", name="Review").click()
    page.get_by_label("Tie").check()
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_text("No pairs are waiting for you.")).to_be_visible()
    navigation.get_by_role("link", name="Preferences").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download .zip").click()
    assert download.value.suggested_filename.endswith(".zip")


@pytest.mark.exhaustive
def test_buttons_that_need_javascript_are_hidden_without_it(visit: Visit, site: FullSite) -> None:
    for path in (f"/responses/{site.response.pk}/", f"/runs/{site.run.pk}/"):
        page = visit(path, site.user, script=False)
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        for name in ("Copy", "Keyboard shortcuts", "Switch between light and dark"):
            expect(page.get_by_role("button", name=name).locator("visible=true")).to_have_count(0)
