"""Accessibility and layout of every page, wide and narrow, light and dark: no findings of axe, and nothing cut."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from django.template.loader import render_to_string
from django.utils import timezone
from playwright.sync_api import Browser, Locator, Page, expect

from hub.models import Environment, EnvironmentVersion
from llmeval_site.webhooks.deliveries import create_webhook, send_test_event
from runs.models import Response
from runs.reports import render_html
from tests.browser.conftest import Visit
from tests.browser.looks.checks import accessibility_findings, findings, layout_findings
from tests.browser.looks.full_site import FullSite, build_site
from tests.factories import stored_outcomes, stored_run, stored_version
from tests.members import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# Widths to look at, with the colour schemes in which axe checks them. The style sheets have a layout for phones, one
# for tablets and one for larger screens, and no rule that begins between 1440 and 1920.
# Colours do not depend on the width, and what axe checks hardly does: the narrowest and a wide one are enough.
Screens = dict[int, tuple[str, ...]]
PHONE: Screens = {390: ("light",)}
TABLET: Screens = {768: ()}
DESKTOP: Screens = {1440: ("light", "dark"), 1920: ()}
ONLY_LAYOUT: Screens = dict.fromkeys([*PHONE, *TABLET, *DESKTOP], ())
EVERY_SCREEN = pytest.mark.parametrize(
    "screens", [pytest.param({**PHONE, **TABLET}, id="small"), pytest.param(DESKTOP, id="desktop")]
)


def open_parts(page: Page) -> None:
    """Wait for the parts that the page loads by itself, and unfold everything."""
    expect(page.locator("[hx-trigger=load]:not([hx-swap=none])")).to_have_count(0)
    page.evaluate("document.querySelectorAll('main details').forEach((fold) => { fold.open = true; })")


def open_menus(page: Page, opened: bool) -> None:
    page.evaluate(
        "(opened) => document.querySelectorAll('details.menu').forEach((menu) => { menu.open = opened; })", opened
    )


def findings_in(page: Page, screens: Screens) -> list[str]:
    """Return findings of axe and what does not fit on *screens*."""
    found = []
    for width, schemes in screens.items():
        page.set_viewport_size({"width": width, "height": 900})
        open_menus(page, True)
        found += layout_findings(page)
        open_menus(page, False)  # they cover what is below them, which axe reports
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.evaluate("Promise.all(document.getAnimations().map((transition) => transition.finished))")
            found += [f"{width}, {scheme}: {text}" for text in accessibility_findings(page)]
    return found


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@EVERY_SCREEN
def test_every_page_is_accessible_and_fits(visit: Visit, site: FullSite, screens: Screens) -> None:
    found = []
    page = visit("/login/")
    for url in site.public_pages():
        page.goto(url)
        found += findings_in(page, screens)
    page = visit("/", site.user)
    for url in [*site.pages(), *site.variants()]:
        page.goto(url)
        open_parts(page)
        found += findings_in(page, screens)
    assert not found, "\n".join(found)


def test_pages_include_every_address_that_responds_with_html(site: FullSite) -> None:
    pages = {page.partition("?")[0] for page in site.pages()}
    assert len(pages) >= 35
    sent = {"/runs/1/report", "/responses/1/raw", "/hub/sums/1.0.0/bundle", "/hub/sums/1.0.0/file"}  # files
    sent.add("/preferences/export/")
    assert pages.isdisjoint({site.address(sample) for sample in sent})


@pytest.mark.exhaustive
@pytest.mark.usefixtures("nothing_drawn")
def test_long_names_and_texts_fit(visit: Visit, tmp_path: Path) -> None:
    site = build_site(tmp_path, long=True)
    page = visit("/", site.user)
    found = []
    for url in [*site.pages(), *site.variants()]:
        page.goto(url)
        open_parts(page)
        found += findings_in(page, ONLY_LAYOUT)
    assert not found, "\n".join(found)


@pytest.mark.exhaustive
@EVERY_SCREEN
def test_curator_pages_are_accessible(visit: Visit, site: FullSite, screens: Screens) -> None:
    # Without the site's policy: on forms, axe writes styles of its own into the page.
    page = visit("/admin/", site.user, bypass_csp=True)
    version = EnvironmentVersion.objects.order_by("pk")[0]
    found = findings_in(page, screens)
    for url in [
        "/admin/hub/environment/",
        "/admin/hub/environmentversion/?environment=none",
        f"/admin/hub/environment/{version.environment_id}/change/",
        f"/admin/hub/environmentversion/{version.pk}/change/",
        "/admin/hub/casedefect/",
        "/admin/runs/modelendpoint/add/",
    ]:
        page.goto(url)
        found += findings_in(page, screens)
    assert not found, "\n".join(found)


@pytest.mark.exhaustive
@EVERY_SCREEN
def test_empty_pages_are_accessible(visit: Visit, screens: Screens) -> None:
    page = visit("/", member("Curator", "Runner", "Reviewer"))
    found = []
    empty = ["/", "/search/", "/hub/", "/runs/", "/runs/new/", "/compare/", "/models/", "/review/", "/preferences/"]
    for url in [*empty, "/agreement/", "/ranking/"]:
        page.goto(url)
        assert page.locator(".empty").count() or url not in empty, url
        found += findings_in(page, screens)
    page = visit("/hub/upload/", member())
    expect(page.get_by_role("heading", name="Permission required")).to_be_visible()
    found += findings_in(page, screens)
    assert not found, "\n".join(found)


@pytest.mark.exhaustive
def test_server_error_page_is_accessible(visit: Visit) -> None:
    page = visit("/login/", scheme="dark")
    page.set_content(render_to_string("site/broken.html", {"status": 500}))
    assert findings(page) == []


@pytest.mark.exhaustive
def test_form_with_errors_is_accessible(visit: Visit, site: FullSite) -> None:
    page = visit("/runs/new/", site.user)
    page.get_by_label("Name").fill("x")
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("alert").first).to_be_visible()
    assert accessibility_findings(page) == []


@pytest.mark.exhaustive
def test_shortcut_dialog_and_open_details_are_accessible(visit: Visit, site: FullSite) -> None:
    page = visit(f"/responses/{site.response.pk}/", site.user)
    page.locator("details.folded summary").first.click()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    assert accessibility_findings(page) == []


def test_rest_documentation_loads_under_content_security_policy(visit: Visit) -> None:
    page = visit("/api/v1/docs/", member())
    page.wait_for_selector(".opblock")
    assert page.locator(".opblock").count() >= 10


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [390, 640, 1280])
def test_menu_of_failing_cases_fits_the_screen(visit: Visit, site: FullSite, width: int) -> None:
    page = visit(f"/runs/{site.run.pk}/", site.user, width=width)
    page.get_by_text("Failing cases", exact=True).click()
    box = page.locator("details.menu[open] > ul").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1024, 1280, 1440, 1920])
def test_report_shows_all_columns_at_desktop_widths(
    browser: Browser, site: FullSite, tmp_path: Path, width: int
) -> None:
    run = site.run
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


def lines_of(locator: Locator) -> int:
    """Return the number of lines that the first text in *locator* takes."""
    return int(
        locator.evaluate(
            """(element) => {
                const range = document.createRange();
                range.selectNodeContents(element.firstChild);
                return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
            }"""
        )
    )


def test_short_words_are_not_broken_in_tables_with_many_models(visit: Visit) -> None:
    version = stored_version("sums", [{"id": "case-000", "input": "1 + 1?"}])
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    models = [f"vendor{i}/model-family-{i}-instruct-2026" for i in range(12)]
    run = stored_run(version, models)
    for model in models:
        stored_outcomes(run, "f", model=model)
    user = member()
    page = visit("/runs/", user)
    assert lines_of(page.locator("td.choose a")) == 1
    page.goto(f"/runs/{run.pk}/cases/")
    assert lines_of(page.locator("tbody th a")) == 1


def test_status_of_deliveries_is_not_broken(visit: Visit) -> None:
    user = member()
    webhook = create_webhook(user=user, url="https://ci.example.org/llm-eval", events=["run.failed"])
    send_test_event(webhook)
    problem = "The request failed: [Errno -2] Name or service not known."
    webhook.deliveries.update(attempts=3, attempted_at=timezone.now(), problem=problem)
    page = visit(f"/account/webhooks/{webhook.pk}/", user)
    assert lines_of(page.locator(".deliveries tbody td").first) == 1
    assert lines_of(page.get_by_role("button", name=re.compile("^Send .* again$"))) == 1


def test_counts_of_reasons_are_in_view_if_a_reason_has_a_long_word(visit: Visit) -> None:
    run = stored_run(stored_version("sums", 1))
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    stored_outcomes(run, "f")
    Response.objects.update(reason="x" * 400)
    page = visit(f"/runs/{run.pk}/", member())
    box = page.locator("table.reasons td.num").bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 1280


@pytest.mark.exhaustive
def test_text_of_charts_is_legible_on_a_phone(visit: Visit, site: FullSite) -> None:
    page = visit(f"/runs/{site.run.pk}/", site.user, width=390)
    sizes = page.locator("svg.chart:visible").evaluate_all(
        "(charts) => charts.map((chart) => 12 * chart.getBoundingClientRect().width / chart.viewBox.baseVal.width)"
    )
    assert sizes and min(sizes) >= 11
    assert layout_findings(page) == []


@pytest.mark.exhaustive
def test_charts_fit_a_phone_without_scrolling(visit: Visit, site: FullSite) -> None:
    page = visit(f"/runs/{site.run.pk}/", site.user, width=390)
    run, comparison = f"/runs/{site.run.pk}/", f"/compare/?a={site.run.pk}&b={site.run.pk}"
    for url in (run, comparison, f"/hub/{site.environment}/1.1.0/results/"):
        page.goto(url)
        open_parts(page)
        charts = page.locator("svg.chart:visible")
        assert charts.count() >= 1
        outside = charts.evaluate_all(
            """(charts) => charts.flatMap((chart) => {
                const scrolls = chart.parentElement.scrollWidth > chart.parentElement.clientWidth;
                const cut = [...chart.querySelectorAll("text")].filter((text) => {
                    const box = text.getBBox();
                    return box.x < 0 || box.x + box.width > chart.viewBox.baseVal.width;
                });
                return [...(scrolls ? [chart.id || "scrolls"] : []), ...cut.map((text) => text.textContent)];
            })"""
        )
        assert outside == [], url


def test_buttons_of_a_comparison_do_not_touch_on_a_phone(visit: Visit) -> None:
    run = stored_run(stored_version("sums", 2), ["alpha", "beta"])
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    stored_outcomes(run, "pf", model="alpha")
    stored_outcomes(run, "fp", model="beta")
    page = visit(f"/compare/?a={run.pk}&b={run.pk}&model_a=alpha&model_b=beta", member(), width=390)
    boxes = [button.bounding_box() for button in page.locator("main section a.button").all()]
    assert len(boxes) == 3
    for above, below in pairwise(box for box in boxes if box is not None):
        assert below["y"] == above["y"] or below["y"] - above["y"] - above["height"] >= 4


def test_right_to_left_answers_are_compared_from_the_right(visit: Visit) -> None:
    run = stored_run(stored_version("sums", 1), ["alpha", "beta"])
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    for model, outcome, text in (("alpha", "p", "הנה התשובה: 42."), ("beta", "f", "הנה התשובה: 41.")):
        stored_outcomes(run, outcome, model=model)
        Response.objects.filter(run_model__label=model).update(
            text=text, reason=text if outcome == "f" else "", messages=[{"role": "assistant", "content": text}]
        )
    page = visit(f"/compare/case/?a={run.pk}&model_a=alpha&model_b=beta&environment=sums&case=c0", member(), width=1280)
    right = """(element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        const outer = element.getBoundingClientRect(), inner = range.getBoundingClientRect();
        return outer.right - inner.right < inner.left - outer.left;
    }"""
    assert page.locator("pre.words").first.evaluate(right)
    expect(page.get_by_role("region", name="Response B").locator("[dir=auto]")).to_have_text("הנה התשובה: 41.")


@pytest.mark.exhaustive
def test_printed_page_has_all_of_both_answers(visit: Visit, site: FullSite) -> None:
    page = visit(f"/review/{site.pair.pk}/", site.user, width=700)
    page.emulate_media(media="print")
    for side in ("a", "b"):
        answer = page.locator(f".side-{side}")
        expect(answer).to_be_visible()
        assert answer.evaluate("side => getComputedStyle(side).overflowY") == "visible"
