"""Accessibility and layout of every page, wide and narrow, light and dark: no violations, no horizontal scrolling."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from hub.models import Case, CaseDefect, Environment, EnvironmentVersion
from hub.services import import_bundle
from runs.models import ModelEndpoint, Response, Run
from runs.reports import render_html
from tests.browser.conftest import Visit
from tests.factories import stored_outcomes, stored_run, stored_score
from tests.hub.bundle_files import write_bundle
from tests.members import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

GATES = [
    {"name": name, "what": f"{name}: what it checks.", "status": status, "checked": 3, "failed": failed, "note": ""}
    for name, status, failed in (("gold", "passed", 0), ("wrong", "failed", 1), ("leak", "not_run", 0))
]


@pytest.fixture
def pages(capitals: Environment, tmp_path: Path) -> tuple[User, list[str]]:
    """A site with something on every page, and the addresses of all of them."""
    EnvironmentVersion.objects.update(certificate={"gates": GATES})
    second = import_bundle(bundle=write_bundle(tmp_path / "two", version="1.1.0", summary="Changed."))
    Environment.objects.update(held_out=True, featured=True, tags=["geography", "short-answers"])
    ModelEndpoint.objects.create(name="small", model="gpt-5-mini", price_input=0.25, price_output=2.0)
    run = stored_run(
        second, ["small", "a-model-with-a-rather-long-name-of-its-own"], name="Nightly run " * 5, attempts=2
    )
    stored_outcomes(run, "pfe", model="small")
    stored_outcomes(run, "ppf", model="a-model-with-a-rather-long-name-of-its-own")
    failed = Response.objects.filter(status="failed")[0]
    call = {"id": "call-1", "type": "function", "function": {"name": "look_up", "arguments": '{"country": "Spain"}'}}
    failed.messages = [
        {"role": "system", "content": "Answer."},
        {"role": "user", "content": "word" * 2000 + "\nline" * 60},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call-1", "content": "x" * 400},
    ]
    failed.truncated = failed.refused = True
    failed.save()
    stored_score(failed, reason="Not Madrid.", detail={"expected": "Madrid"}, execution={"status": "timeout"})
    going = stored_run(second, name="going on", status=Run.Status.RUNNING, finished_at=None)
    broken = stored_run(second, name="broken", status=Run.Status.FAILED, message="No disk.", config_hash="1" * 64)
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now())
    case = Case.objects.filter(version=second)[0]
    CaseDefect.objects.create(case=case, description="Wrong.")
    cells = f"a={run.pk}&model_a=small&model_b=a-model-with-a-rather-long-name-of-its-own&environment=capitals"
    user = member("Curator", "Runner", name="ann", staff=True)
    return user, [
        "/",
        "/search/?q=capitals",
        "/account/",
        "/hub/",
        "/hub/?q=zebra",
        "/hub/upload/",
        "/hub/capitals/",
        "/hub/capitals/1.0.0/",
        "/hub/capitals/1.1.0/changes/",
        "/hub/capitals/1.1.0/cases/Spain/",
        "/hub/capitals/1.1.0/defects/Spain/",
        "/hub/?sort=-cases",
        "/runs/",
        "/runs/new/",
        f"/runs/{run.pk}/",
        f"/runs/{run.pk}/cases/",
        f"/runs/{run.pk}/?sort=-score&q=zebra",
        f"/runs/{going.pk}/",
        f"/runs/{broken.pk}/",
        f"/runs/{run.pk}/cases/{case.pk}/",
        f"/responses/{failed.pk}/",
        f"/compare/?a={run.pk}&b={run.pk}",
        f"/compare/cases/?{cells}",
        f"/compare/case/?{cells}&case={failed.case.external_id}",
        "/models/",
        "/models/small/",
        "/runs/past/capitals/",
        "/compare/",
        "/no/such/page/",
    ]


def violations(page: Page) -> list[str]:
    """What axe finds that is serious or worse."""
    found = Axe().run(page).response["violations"]
    return [
        f"{page.url}: {item['id']}: {node['target']} {node['failureSummary'][:200]}"
        for item in found
        if item["impact"] in ("serious", "critical")
        for node in item["nodes"][:3]
    ]


def cut_off(page: Page) -> list[str]:
    """Pages that would have to be scrolled sideways."""
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [f"{page.url}: {wider} pixels too wide"] if wider > 0 else []


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_every_page_is_accessible_and_fits(
    visit: Visit, pages: tuple[User, list[str]], width: int, scheme: str
) -> None:
    user, urls = pages
    page = visit("/login/", width=width, scheme=scheme)
    found = violations(page) + cut_off(page)
    page = visit("/", user, width=width, scheme=scheme)
    for url in urls:
        page.goto(url)
        if url == "/hub/capitals/":
            page.wait_for_selector("#past table")
            page.wait_for_selector("#changed:not([hx-get])")
        found += violations(page) + cut_off(page)
    assert found == []


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_curator_pages_are_accessible(visit: Visit, pages: tuple[User, list[str]], width: int, scheme: str) -> None:
    # Without the site's policy: on forms, axe writes styles of its own into the page.
    page = visit("/admin/", pages[0], width=width, scheme=scheme, bypass_csp=True)
    version = EnvironmentVersion.objects.order_by("pk")[0]
    found = violations(page) + cut_off(page)
    for url in [
        "/admin/hub/environment/",
        f"/admin/hub/environment/{version.environment_id}/change/",
        f"/admin/hub/environmentversion/{version.pk}/change/",
        "/admin/hub/casedefect/",
        "/admin/runs/modelendpoint/add/",
    ]:
        page.goto(url)
        found += violations(page) + cut_off(page)
    assert found == []


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_empty_pages_are_accessible(visit: Visit, width: int, scheme: str) -> None:
    page = visit("/", member("Curator", "Runner"), width=width, scheme=scheme)
    found = []
    for url in ["/", "/search/", "/hub/", "/hub/upload/", "/runs/", "/runs/new/", "/compare/", "/models/"]:
        page.goto(url)
        assert page.locator(".empty").count() or url == "/hub/upload/", url
        found += violations(page) + cut_off(page)
    page = visit("/hub/upload/", member(), width=width, scheme=scheme)
    expect(page.get_by_role("heading", name="Permission required")).to_be_visible()
    assert found + violations(page) + cut_off(page) == []


def test_server_error_page_is_accessible(visit: Visit) -> None:
    page = visit("/login/", scheme="dark")
    page.set_content(render_to_string("site/broken.html"))
    assert violations(page) + cut_off(page) == []


def test_form_with_errors_is_accessible(visit: Visit, pages: tuple[User, list[str]]) -> None:
    page = visit("/runs/new/", pages[0])
    page.get_by_label("Name").fill("x")
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("alert").first).to_be_visible()
    assert violations(page) == []


def test_shortcut_dialog_and_open_details_are_accessible(visit: Visit, pages: tuple[User, list[str]]) -> None:
    user, urls = pages
    page = visit(next(url for url in urls if url.startswith("/responses/")), user)
    page.locator("details.folded summary").first.click()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    assert violations(page) == []


def test_rest_documentation_loads_under_content_security_policy(visit: Visit) -> None:
    page = visit("/api/v1/docs/", member())
    page.wait_for_selector(".opblock")
    assert page.locator(".opblock").count() >= 10


@pytest.mark.parametrize("width", [390, 640, 1280])
def test_menu_of_failing_cases_fits_the_screen(visit: Visit, pages: tuple[User, list[str]], width: int) -> None:
    run = Run.objects.get(name__startswith="Nightly")
    page = visit(f"/runs/{run.pk}/", pages[0], width=width)
    page.get_by_text("Failing cases", exact=True).click()
    box = page.locator("details.menu[open] > ul").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1024, 1280, 1440, 1920])
def test_report_shows_all_columns_at_desktop_widths(
    browser: Browser, pages: tuple[User, list[str]], tmp_path: Path, width: int
) -> None:
    run = Run.objects.get(name__startswith="Nightly")
    Response.objects.filter(run_environment__run=run).update(
        latency_ms=123_456.0, input_tokens=98_765_432, output_tokens=1_234_567, cost_usd=123.4567
    )
    run.models.update(spec={"price": {"input": 1.0, "output": 2.0}})
    report = tmp_path / "report.html"
    report.write_text(render_html(run), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(report.as_uri())
    clipped = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.scrollWidth)"
    )
    page.close()
    assert clipped == []
