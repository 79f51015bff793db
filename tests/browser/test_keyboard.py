"""Use with the keyboard: every control is reached with Tab, menus close with Escape, errors of a form get the focus."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.looks.full_site import FullSite

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# Numbers all controls that a pointer can use. Tab reaches one radio button of a group, and arrow keys the others.
_NUMBER_CONTROLS = """() => {
    const controls = [...document.querySelectorAll(
        "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0'], [contenteditable=true]"
    )].filter((e) => !e.matches(":disabled") && !e.closest("[inert], [aria-hidden=true]")
        && e.checkVisibility({ visibilityProperty: true }));
    const groups = new Set();
    window.controls = controls.filter((e) => {
        if (e.type !== "radio") return true;
        const group = `${e.form?.id} ${e.name}`;
        if (groups.has(group)) return false;
        groups.add(group);
        return true;
    });
    window.groupOf = (e) => e.type !== "radio" ? e
        : window.controls.find((other) => other.name === e.name && other.form === e.form);
    return window.controls.length;
}"""
_FOCUSED = """() => {
    const e = document.activeElement;
    if (!e || e === document.body) return null;
    const shown = [e, ...(e.labels ?? []), e.parentElement].some((part) => {
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(part);
        return (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
    });
    const box = e.getBoundingClientRect();
    const inView = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    return { number: window.controls.indexOf(window.groupOf(e)), shown, inView, html: e.outerHTML.slice(0, 160) };
}"""
_MISSED = "(reached) => window.controls.filter((_, i) => !reached.includes(i)).map((e) => e.outerHTML.slice(0, 160))"


def unreached(page: Page) -> list[str]:
    """Return what is wrong with *page* for a person who only has the Tab key."""
    page.wait_for_load_state("networkidle")  # parts that are loaded replace controls
    page.evaluate("document.activeElement?.blur(); scrollTo(0, 0)")
    count = page.evaluate(_NUMBER_CONTROLS)
    reached: list[int] = []
    found = []
    for _ in range(count + 10):
        page.keyboard.press("Tab")
        focused = page.evaluate(_FOCUSED)
        if focused is None:  # after the last control comes the first one; a page may begin elsewhere, with autofocus
            continue
        if reached and focused["number"] == reached[0]:
            break
        if not focused["shown"]:
            found.append(f"{page.url}: no visible focus: {focused['html']}")
        if not focused["inView"]:
            found.append(f"{page.url}: focus outside the window: {focused['html']}")
        if focused["number"] >= 0:
            reached.append(focused["number"])
    return found + [f"{page.url}: not reached: {html}" for html in page.evaluate(_MISSED, reached)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [390, 1440])
def test_controls_of_all_pages_are_reached_with_tab(visit: Visit, site: FullSite, width: int) -> None:
    page = visit("/", site.user, width=width)
    found = []
    variants = site.variants() if width > 390 else []
    for url in [*site.pages(), *variants]:
        page.goto(url)
        found += unreached(page)
    assert not found, "\n".join(found)


@pytest.mark.exhaustive
def test_control_that_tab_skips_is_reported(visit: Visit, site: FullSite) -> None:
    page = visit("/models/", site.user)
    page.evaluate("document.querySelector('main a[href]').tabIndex = -1")
    (found,) = unreached(page)
    assert "not reached: <a" in found


@pytest.mark.exhaustive
def test_escape_and_a_click_elsewhere_close_a_menu(visit: Visit, site: FullSite) -> None:
    page = visit(f"/runs/{site.run.pk}/", site.user)
    menu, summary = page.locator("#failures"), page.locator("#failures > summary")
    summary.press("Enter")
    page.keyboard.press("Tab")
    expect(menu.get_by_role("link").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(summary).to_be_focused()
    summary.click()
    menu.locator("small").first.click()
    expect(menu).to_have_attribute("open", "")
    page.locator("h1").click()
    expect(menu).not_to_have_attribute("open", "")


def test_form_with_errors_has_the_focus_on_its_first_invalid_field(visit: Visit, site: FullSite) -> None:
    page = visit("/account/webhooks/", site.user)
    address = page.get_by_label("Address")
    address.evaluate("field => { field.form.noValidate = true; }")
    address.fill("nonsense")
    address.press("Enter")
    expect(page.get_by_role("alert").first).to_be_visible()
    expect(address).to_be_focused()
    expect(address).to_have_accessible_description(re.compile("must begin with https://"))


def test_form_with_a_summary_of_its_errors_has_the_focus_there(visit: Visit, site: FullSite) -> None:
    page = visit("/runs/new/", site.user)
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("alert").first).to_contain_text("The run was not started")
    expect(page.get_by_role("alert").first).to_be_focused()
