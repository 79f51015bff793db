"""Browser tests of a fresh installation: the first run on the demo model, counted in clicks."""

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
from tests.members import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def runner(transactional_db: None) -> User:
    register_demo_models()
    environment = import_bundle(bundle=settings.BASE_DIR / "hub" / "catalog" / "changing-plans").environment
    Environment.objects.filter(pk=environment.pk).update(visibility=Environment.Visibility.PUBLISHED)
    return member("Runner")


@pytest.mark.parametrize(
    "script", [True, pytest.param(False, marks=pytest.mark.exhaustive)], ids=["with-script", "without-script"]
)
def test_first_run_of_a_catalogue_environment_takes_two_clicks(visit: Visit, runner: User, script: bool) -> None:
    page = visit("/hub/", runner, script=script)
    title = Environment.objects.get().title
    page.get_by_role("link", name=title).click()  # 1
    page.get_by_role("button", name=re.compile("^Run( a pilot: 10 cases)?$")).click()  # 2
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("changing-plans pilot, demo")
    run = Run.objects.get()
    assert (run.environments.get().case_count, run.created_by) == (10, runner)


@pytest.mark.exhaustive
def test_panel_shows_needs_of_pilot_and_of_all_cases_and_pilot_continues_with_all(visit: Visit, runner: User) -> None:
    page = visit("/hub/changing-plans/", runner)
    panel = page.locator("#start")
    expect(panel.get_by_role("button", name="Run all 25 cases")).to_be_visible()
    expect(panel).to_contain_text("free: recorded answers")
    expect(panel.get_by_label("Model")).to_have_value("demo")
    panel.get_by_label("Model").select_option("demo-hasty")
    expect(page.locator("#start").get_by_label("Model")).to_have_value("demo-hasty")
    needs = "A pilot of 10 cases: free: recorded answers. All 25 cases: free: recorded answers."
    expect(page.locator("#announce")).to_have_text(needs)
    page.get_by_role("button", name="Run a pilot: 10 cases").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    execute_queue()
    page.goto(page.url)
    page.get_by_role("button", name="Run all 25 cases").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("changing-plans, demo-hasty")
