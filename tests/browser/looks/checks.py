"""Checks of one page in a browser: accessibility by axe, and whether everything fits."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# Elements whose content is cut without a way to see the rest, and elements that reach beyond the screen. A place that
# scrolls shows everything. An ellipsis on one line is announced, and the element has the whole text as its title or
# unfolds; a `.clipped` text and a masked `.head` follow the switch that shows all of it.
_CUT = """() => {
    const found = [], wide = document.documentElement.clientWidth;
    const name = (e) => [e.tagName.toLowerCase(), ...e.classList].join(".") + (e.id ? `#${e.id}` : "")
        + ` "${(e.textContent ?? "").trim().replace(/\\s+/g, " ").slice(0, 60)}"`;
    const ignored = `.visually-hidden, .skip, svg, .clipped, input, dialog:not([open]), [aria-hidden=true],
        table.fold thead`;
    const scrolls = (e) => {
        for (let up = e; up && up !== document.body; up = up.parentElement) {
            const { overflowX, textOverflow } = getComputedStyle(up);
            if (/auto|scroll/.test(overflowX) || (overflowX === "hidden" && textOverflow === "ellipsis")) return true;
        }
        return false;
    };
    const hides = (overflow) => overflow === "hidden" || overflow === "clip";
    for (const e of document.body.querySelectorAll("*")) {
        if (e.closest(ignored) || !e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
        const style = getComputedStyle(e);
        const box = e.getBoundingClientRect();
        if (box.width && (box.right > wide + 1 || box.left < -1) && !scrolls(e)) found.push(`off screen: ${name(e)}`);
        if (style.display === "inline") continue;
        const wider = e.scrollWidth > e.clientWidth + 1, higher = e.scrollHeight > e.clientHeight + 1;
        const unfolds = style.textOverflow === "ellipsis" && (e.title || e.tagName === "SUMMARY");
        if (hides(style.overflowX) && wider && !unfolds) found.push(`cut at the side: ${name(e)}`);
        if (hides(style.overflowY) && higher) found.push(`cut at the bottom: ${name(e)}`);
        if (style.overflowX === "visible" && e.clientWidth && wider && !e.children.length && !scrolls(e)) {
            found.push(`text wider than its element: ${name(e)}`);
        }
    }
    return found;
}"""


# The rule of WCAG 2.2 on the size of targets is off in axe by default, and on in Lighthouse.
_OPTIONS = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}


def accessibility_findings(page: Page) -> list[str]:
    """Return what axe finds on *page*, of any impact."""
    return [
        f"{page.url}: {item['id']} ({item['impact']}): {node['html'][:160]} {node['failureSummary'][:200]}"
        for item in Axe().run(page, options=_OPTIONS).response["violations"]
        for node in item["nodes"][:3]
    ]


def layout_findings(page: Page) -> list[str]:
    """Return what does not fit on *page*: horizontal scrolling of the page, and content that is cut."""
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    found = [f"{wider} pixels too wide"] if wider > 0 else []
    width = page.viewport_size["width"] if page.viewport_size else 0
    return [f"{page.url} at {width}: {text}" for text in [*found, *page.evaluate(_CUT)[:5]]]


def findings(page: Page) -> list[str]:
    """Return everything wrong with *page* at its present width and colour scheme."""
    return accessibility_findings(page) + layout_findings(page)
