"""Browser tests of the page that starts a run: choose among many, search, start; by mouse and keyboard."""

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from hub.models import Environment
from hub.services import import_bundle
from runs.models import ModelEndpoint, Run
from tests.browser.conftest import Visit
from tests.browser.looks.checks import accessibility_findings
from tests.factories import stored_version
from tests.hub.bundle_files import write_bundle
from tests.members import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def runner(transactional_db: None, tmp_path: Path) -> User:
    """A runner, with 40 environments, some of which can be run, and 30 models."""
    for i in range(40):
        slug = f"sums-{i:02}"
        if i in (1, 2, 30, 37):
            version = import_bundle(bundle=write_bundle(tmp_path / slug, slug=slug))
        else:
            version = stored_version(slug, cases=3)
        category = "reasoning" if i % 2 else "tool-use"
        Environment.objects.filter(pk=version.environment_id).update(
            latest=version, visibility="published", title=f"Sums {i:02}", category=category
        )
    for i in range(30):
        ModelEndpoint.objects.create(name=f"model-{i:02}", model="m", price_input=1, price_output=2)
    return member("Runner")


def chosen(page: Page, kind: str) -> list[str]:
    return [
        text.replace("×", "").strip() for text in page.get_by_label(f"Chosen {kind}").locator("li").all_inner_texts()
    ]


@pytest.mark.exhaustive
def test_environments_are_searched_chosen_and_run(visit: Visit, runner: User) -> None:
    page = visit("/runs/new/", runner)
    page.get_by_role("checkbox", name="Sums 02").check()
    expect(page.get_by_label("Chosen environments").locator("li")).to_have_count(1)
    expect(page.get_by_role("checkbox", name="Sums 02")).to_be_focused()
    page.locator("#id_q").press_sequentially("sums-37")
    expect(page.locator("#environments-found")).to_have_text("1 environment found")
    expect(page.locator("#id_q")).to_be_focused()
    page.get_by_role("checkbox", name="Sums 37").check()
    expect(page.get_by_label("Chosen environments").locator("li")).to_have_count(2)
    assert set(chosen(page, "environments")) == {"Sums 02", "Sums 37"}
    page.locator("#id_model_q").fill("29")
    expect(page.locator("#models-found")).to_have_text("1 model found")
    page.get_by_role("checkbox", name="model-29").check()
    expect(page.locator("#needs")).to_contain_text("6 in 2 environments")
    expect(page.locator("#announce")).to_contain_text("6 responses, about $")
    page.get_by_label("Cases", exact=True).select_option("limit")
    page.get_by_label("Number of cases").fill("2")
    page.get_by_label("Number of cases").press("Tab")
    expect(page.locator("#needs")).to_contain_text("4 in 2 environments")
    expect(page).to_have_url(re.compile(r"environment=sums-02&|environment=sums-37&"))
    expect(page).to_have_url(re.compile(r"model=model-29.*limit=2.*q=sums-37"))
    page.reload()
    assert set(chosen(page, "environments")) == {"Sums 02", "Sums 37"}
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    run = Run.objects.get()
    assert {row.version.environment.slug: row.case_count for row in run.environments.all()} == {
        "sums-02": 2,
        "sums-37": 2,
    }
    assert run.models.get().label == "model-29"


@pytest.mark.exhaustive
def test_pages_category_and_removal_keep_the_focus_near(visit: Visit, runner: User) -> None:
    page = visit("/runs/new/?environment=sums-01&environment=sums-03", runner)
    page.locator("#environments-next").press("Enter")
    expect(page.locator("#environments-found")).to_contain_text("13 to 24 shown")
    expect(page.locator("#environments-next")).to_be_focused()
    page.get_by_label("Category").focus()
    page.get_by_label("Category").select_option("reasoning")
    expect(page.locator("#environments-found")).to_have_text("20 environments found, 1 to 12 shown")
    page.get_by_role("button", name="Remove Sums 01").press("Enter")
    expect(page.get_by_label("Chosen environments").locator("li")).to_have_count(1)
    expect(page.locator("#environments-chosen")).to_be_focused()
    page.get_by_role("button", name="Choose all 20 found").click()
    expect(page.locator("#environments-chosen")).to_contain_text("20 chosen")
    page.get_by_role("button", name="Remove all").click()
    expect(page.locator("#environments-chosen")).to_contain_text("0 chosen")
    expect(page).not_to_have_url(re.compile("environment="))


def test_errors_appear_at_fields_before_and_after_the_start(visit: Visit, runner: User) -> None:
    page = visit("/runs/new/?environment=sums-01&model=model-01", runner)
    page.get_by_label("Attempts").fill("0")
    page.get_by_label("Attempts").press("Tab")
    expect(page.locator("#id_attempts_error")).to_contain_text("greater than or equal to 1")
    page.get_by_label("Budget").fill("-3")
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("alert").first).to_contain_text("The run was not started")
    expect(page.locator("#id_budget_error")).to_contain_text("greater than")
    expect(page.get_by_label("Budget")).to_have_value("-3")
    assert accessibility_findings(page) == []


@pytest.mark.exhaustive
def test_yaml_is_copied_and_fills_the_form(visit: Visit, runner: User) -> None:
    page = visit("/runs/new/?environment=sums-01&environment=sums-30&model=model-01&limit=2", runner)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_text("The same run as YAML").click()
    page.get_by_role("button", name="Copy the YAML").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    page.goto("/runs/new/")
    page.get_by_text("From YAML", exact=True).click()
    page.get_by_label("Config as YAML or JSON").fill(copied.replace("model-01\n", "model-1\n"))
    page.get_by_role("button", name="Fill the form").click()
    expect(page.locator("#id_config_error")).to_contain_text("models[0]: no model is registered as 'model-1'")
    assert accessibility_findings(page) == []
    page.get_by_label("Config as YAML or JSON").fill(copied)
    page.get_by_role("button", name="Fill the form").click()
    expect(page.get_by_role("status")).to_contain_text("The form is filled from the YAML.")
    assert set(chosen(page, "environments")) == {"Sums 01", "Sums 30"}
    expect(page.get_by_label("Number of cases")).to_have_value("2")


@pytest.mark.exhaustive
def test_run_is_chosen_and_started_without_javascript(visit: Visit, runner: User) -> None:
    page = visit("/runs/new/", runner, script=False)
    page.get_by_role("checkbox", name="Sums 02").check()
    page.locator("#id_q").fill("sums-37")
    page.locator("#id_q").press("Enter")
    expect(page.locator("#environments-found")).to_have_text("1 environment found")
    page.get_by_role("checkbox", name="Sums 37").check()
    page.locator("#models-next").click()
    page.get_by_role("checkbox", name="model-15").check()
    page.get_by_role("button", name="Update").click()
    assert set(chosen(page, "environments")) == {"Sums 02", "Sums 37"}
    page.get_by_role("button", name="Remove Sums 02").click()
    expect(page.locator("#needs")).to_contain_text("3 in 1 environment")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    assert Run.objects.get().name == "sums-37; model-15"
