"""Browser tests of the layout of the review page: what fits the window, keys, marks on rendered text, small screens."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from preferences.models import Issue, IssueCategory, Preference
from preferences.services import NewIssue
from preferences.spans import find_quote
from review.models import Pair
from review.queue import assignments
from tests.browser.review_fixtures import SignIn, browser, sign_in
from tests.browser.test_review import highlighted, marked, select
from tests.processes import wait_until
from tests.review.pages import reviewer, suggest, waiting_pairs

__all__ = ["browser", "sign_in"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MARKDOWN = (
    "It is **four**, as [the table](https://x.test/four) says:\n\n| n | f |\n| - | - |\n| 2 | 4 |\n\nSo &lt;4&gt;."
)

# The lines of each answer that are visible below its heading, and whether that is the whole answer.
VISIBLE_LINES = """() => ["a", "b"].map((name) => {
    const side = document.querySelector(`.side-${name}`);
    const top = side.querySelector("h2").getBoundingClientRect().bottom, end = side.getBoundingClientRect().bottom;
    const walk = document.createTreeWalker(side, NodeFilter.SHOW_TEXT), lines = new Set();
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        if (!node.data.trim() || node.parentElement.closest("h2")) continue;
        const range = new Range();
        range.selectNodeContents(node);
        for (const box of range.getClientRects()) {
            if (box.top >= top - 1 && box.bottom <= Math.min(end, innerHeight) + 1) lines.add(Math.round(box.top / 8));
        }
    }
    return [lines.size, side.scrollHeight <= side.clientHeight + 1];
})"""


@pytest.fixture(autouse=True)
def nothing_drawn(monkeypatch: Any, transactional_db: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)
    IssueCategory.objects.get_or_create(slug="style", defaults={"title": "Style"})


def recorded_pairs(count: int) -> list[Pair]:
    """Pairs of the longest recorded answers of the catalogue, with their prompts, test results and a suggestion."""
    folder = Path(settings.BASE_DIR)
    cases = folder / "hub/catalog/python-functions/cases.jsonl"
    prompts = {row["id"]: row["prompt"] for row in map(json.loads, cases.read_text().splitlines())}
    answers: dict[str, list[str]] = {}
    for name in ("a", "b"):
        for line in (folder / f"configs/responses/recorded-{name}.jsonl").read_text().splitlines():
            row = json.loads(line)
            if row["case"] in prompts:
                answers.setdefault(row["case"], []).append(row.get("content") or "")
    complete = [case for case, texts in answers.items() if len(texts) == 2]
    pairs = []
    for case in sorted(complete, key=lambda case: -len(prompts[case]) - min(map(len, answers[case])))[:count]:
        prompt = f"Implement what this signature and docstring specify.\n\n```python\n{prompts[case]}\n```\n"
        first, second = answers[case]
        (pair,) = waiting_pairs(1, texts=(first, second), prompt=prompt, outcome="pf")
        failure = {"test": "f(1) == " + "1" * 90, "expected": "1" * 90, "got": "2", "line": 3}
        ran = {"status": "assertion", "passed": 2, "total": 3, "failure": failure}
        pair.second.scores.update(type="python_tests", execution=ran)
        suggest(pair, "first", critique="The second fails a test. " * 10)
        pairs.append(pair)
    return pairs


def take(page: Page, pair: Pair, query: str = "") -> None:
    page.goto(f"/review/{pair.pk}/{query}")
    button = page.get_by_role("button", name="Review this pair")
    if button.count():
        button.click()
    page.locator("#decision").wait_for()


@pytest.mark.exhaustive
@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1440, 900)])
def test_both_answers_show_several_lines_and_the_decision_is_visible(sign_in: SignIn, width: int, height: int) -> None:
    pairs = recorded_pairs(6)
    page = sign_in(reviewer(), viewport={"width": width, "height": height})
    seen = {}
    for pair in pairs:
        take(page, pair)
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
        expect(page.get_by_role("button", name="Decide")).to_be_in_viewport(ratio=1)
        seen[pair.case.external_id, pair.pk] = page.evaluate(VISIBLE_LINES)
    assert [key for key, sides in seen.items() if any(lines < 5 and not whole for lines, whole in sides)] == []


@pytest.mark.exhaustive
def test_nothing_moves_after_a_verdict_and_the_task_stays_folded(sign_in: SignIn) -> None:
    first, second = waiting_pairs(2, texts=("one\n\n" * 80, "two\n\n" * 80), prompt="Add one.\n\n" * 30)
    page = sign_in(reviewer(), viewport={"width": 1366, "height": 768})
    take(page, first)
    page.keyboard.press("o")
    expect(page.locator("details.task")).not_to_have_attribute("open", "")
    places = [page.locator(name).bounding_box() for name in (".side-a", ".side-b", ".decide")]
    page.keyboard.press("a")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/review/{second.pk}/")
    expect(page.locator("details.task")).not_to_have_attribute("open", "")
    assert [page.locator(name).bounding_box() for name in (".side-a", ".side-b", ".decide")] == places
    page.reload()
    expect(page.locator("details.task")).not_to_have_attribute("open", "")


def test_a_critique_is_written_and_submitted_without_the_mouse(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("b")
    page.keyboard.press("c")
    page.keyboard.type("a shorter one")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    stored = Preference.objects.get()
    assert (stored.verdict, stored.critique) == ("second", "a shorter one")


def test_sides_scroll_together_until_the_link_is_turned_off(sign_in: SignIn) -> None:
    waiting_pairs(1, texts=("one\n\n" * 200, "two\n\n" * 100))
    page = sign_in(reviewer())
    page.goto("/review/")
    scroll = "(name) => { const side = document.querySelector(`.side-${name}`); side.scrollTop = side.scrollHeight; }"
    end = "s.scrollTop + s.clientHeight >= s.scrollHeight - 2"
    reached = f"() => {{ const s = document.querySelector('.side-b'); return {end}; }}"
    page.evaluate(scroll, "a")
    wait_until(lambda: bool(page.evaluate(reached)))  # wait_for_function needs eval, which the site forbids
    page.reload()
    page.keyboard.press("l")
    expect(page.get_by_role("button", name="Link scrolling")).to_have_attribute("aria-pressed", "false")
    page.evaluate(scroll, "a")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate("document.querySelector('.side-b').scrollTop") == 0


@pytest.mark.parametrize(
    ("words", "quote"),
    [
        ("is four, as the", "is **four**, as [the"),
        ("4", "4"),  # first in the table; not in the address or the entity
        ("So <4>.", "So &lt;4&gt;."),
    ],
)
def test_marks_on_rendered_text_are_stored_as_spans_of_the_source(sign_in: SignIn, words: str, quote: str) -> None:
    waiting_pairs(1, texts=(MARKDOWN, "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    select(page, words)
    assert marked(page) == [words]
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    issue = Issue.objects.get()
    assert issue.quote == quote
    assert issue.start == MARKDOWN.index(quote)


@pytest.mark.exhaustive
def test_words_of_several_blocks_are_listed_apart(sign_in: SignIn) -> None:
    text = (
        "# Sum\n\nIt is **fo**ur.\n\n- one\n- two\n\n| n | f |\n| - | - |\n| 2 | 4 |\n\n```\nx = 1\ny = 2\n```\n\nEnd."
    )
    waiting_pairs(1, texts=(text, "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    page.evaluate(
        """() => {
            const box = document.querySelector('.answer[data-side="a"] .rendered');
            getSelection().selectAllChildren(box);
        }"""
    )
    marked(page)
    expect(page.locator("#marks li")).to_contain_text("“Sum It is four. one two n f 2 4 x = 1 y = 2 End.”")


@pytest.mark.exhaustive
def test_marks_stay_in_place_in_the_source_view(sign_in: SignIn) -> None:
    waiting_pairs(1, texts=(MARKDOWN, "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    select(page, "is four, as the")
    assert marked(page) == ["is four, as the"]
    page.keyboard.press("r")
    expect(page.locator(".side-a pre.source")).to_be_visible()
    wait_until(lambda: any(highlighted(page)))  # marked when the swap has settled
    assert highlighted(page) == ["is **four**, as [the"]


def test_judges_mark_on_an_address_is_reported_and_shown_in_the_source(sign_in: SignIn) -> None:
    (pair,) = waiting_pairs(1, texts=(MARKDOWN, "two"))
    span = find_quote(pair.first.messages, "https://x.test/four")
    category = IssueCategory.objects.get(slug="style")
    suggest(pair, "second", issues=[NewIssue(response=pair.first, category=category, note="Invented.", span=span)])
    page = sign_in(reviewer())
    page.goto("/review/")
    expect(page.locator(".hidden-marks")).to_contain_text("Invented.")
    page.get_by_role("link", name="show the source").click()
    expect(page.locator("mark.judge")).to_have_text("https://x.test/four")


def test_keys_jump_between_marks(sign_in: SignIn) -> None:
    text = "start\n\n" + "word\n\n" * 100 + "the end"
    (pair,) = waiting_pairs(1, texts=(text, "two"))
    category = IssueCategory.objects.get(slug="style")
    spans = [find_quote(pair.first.messages, words) for words in ("start", "the end")]
    suggest(pair, "second", issues=[NewIssue(response=pair.first, category=category, span=span) for span in spans])
    page = sign_in(reviewer())
    page.goto("/review/")
    for key, words in (("]", "start"), ("]", "the end"), ("]", "start"), ("[", "the end")):
        page.keyboard.press(key)
        expect(page.locator("mark.reached")).to_have_text(words)
        expect(page.locator("mark.reached")).to_be_in_viewport()


def test_word_difference_is_shown_with_and_without_javascript(sign_in: SignIn) -> None:
    (pair,) = waiting_pairs(1, texts=("It is **four** now", "It is *five* now"))
    page = sign_in(reviewer())
    take(page, pair)
    page.keyboard.press("v")
    expect(page.locator(".side-a mark.differs", has_text="four")).to_be_visible()
    page.keyboard.press("v")
    expect(page.locator("mark.differs")).to_have_count(0)
    plain = sign_in(reviewer("bob"), java_script_enabled=False)
    plain.goto(f"/review/{pair.pk}/")
    plain.get_by_role("link", name="Word difference").click()
    expect(plain.locator(".side-b mark.differs", has_text="five")).to_be_visible()


def test_switching_the_view_keeps_what_was_entered(sign_in: SignIn) -> None:
    waiting_pairs(1, texts=(MARKDOWN, "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    page.get_by_label("Critique").fill("So far")
    page.get_by_role("link", name="Source").click()
    expect(page.locator(".side-a pre.source")).to_be_visible()
    expect(page.get_by_label("Critique")).to_have_value("So far")


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1400, 390])
def test_panel_of_marks_does_not_cover_the_critique_while_it_is_written(sign_in: SignIn, width: int) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer(), viewport={"width": width, "height": 844})
    page.goto("/review/")
    page.keyboard.press("d")
    expect(page.locator(".notes-panel")).to_be_visible()
    page.keyboard.press("c")
    covering = page.get_by_label("Critique").evaluate(
        """field => {
            const box = field.getBoundingClientRect(), at = [[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]];
            return at.map(([x, y]) => document.elementFromPoint(box.left + x * box.width, box.top + y * box.height))
                .filter((element) => element !== field).map((element) => element.outerHTML.slice(0, 60));
        }"""
    )
    assert covering == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1400, 390])
def test_buttons_of_the_panel_of_marks_act_at_the_first_click_after_the_critique(sign_in: SignIn, width: int) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer(), viewport={"width": width, "height": 844})
    page.goto("/review/")
    page.keyboard.press("d")
    page.get_by_label("Critique").fill("Several words.")
    page.get_by_role("button", name="Mark the selection").click()
    page.get_by_role("button", name="Mark", exact=True).click(timeout=3000)
    expect(page.locator("#marks li")).to_have_count(1)
    page.get_by_label("Critique").press("Escape")
    page.get_by_role("button", name="Mark the selection").click()  # the critique does not have the focus
    page.get_by_role("button", name="Mark", exact=True).click(timeout=3000)
    expect(page.locator("#marks li")).to_have_count(2)
    page.get_by_label("Critique").click()
    page.get_by_role("button", name="Remove mark 1").click()
    expect(page.locator("#marks li")).to_have_count(1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("script", [True, False])
def test_narrow_screens_have_tabs_and_large_targets(sign_in: SignIn, script: bool) -> None:
    (pair,) = recorded_pairs(1)
    page = sign_in(reviewer(), viewport={"width": 390, "height": 844}, java_script_enabled=script)
    page.goto(f"/review/{pair.pk}/")
    page.get_by_role("button", name="Review this pair").click()
    page.locator("#decision").wait_for()
    expect(page.locator(".side-b")).to_be_hidden()
    page.locator(".tabs label", has_text="B").click()
    expect(page.locator(".side-b")).to_be_visible()
    expect(page.locator(".side-a")).to_be_hidden()
    expect(page.get_by_role("button", name="Decide")).to_be_in_viewport(ratio=1)
    targets = page.locator(
        ".verdicts label, .decide-row button, .notes > summary, .tabs label, .strip > summary, .pair-tools a"
    )
    small = [
        box for target in targets.all() if target.is_visible() and (box := target.bounding_box()) and box["height"] < 44
    ]
    assert small == []


@pytest.mark.exhaustive
def test_everything_on_the_page_is_reached_with_the_tab_key(sign_in: SignIn) -> None:
    recorded_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    name = "(e => `${e.className}#${e.id} ${e.textContent.trim().slice(0, 12)}`)(document.activeElement)"
    reached = set()
    for _ in range(70):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(name))
    text = " ".join(reached)
    parts = ["side side-a", "side side-b", "#critique", "Source", "Word differ", "Link scroll", "Task", "Suggested"]
    for part in [*parts, "Scoring res", "Decide", "Skip", "Marks", "Undo"]:
        assert part in text, part


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1400, 390])
def test_critique_does_not_cover_or_move_the_verdicts_while_it_is_written(sign_in: SignIn, width: int) -> None:
    waiting_pairs(2)
    page = sign_in(reviewer(), viewport={"width": width, "height": 844})
    page.goto("/review/")
    buttons = page.locator(".verdicts label, .decide-row button:visible")
    before = [button.bounding_box() for button in buttons.all()]
    page.get_by_label("Critique").click()
    page.keyboard.type("Several words. " * 20)
    field = page.get_by_label("Critique").bounding_box()
    assert field is not None
    assert field["width"] > 300
    assert [button.bounding_box() for button in buttons.all()] == before
    page.locator(".verdicts label", has_text="B is better").click(timeout=3000)
    page.get_by_label("Critique").click()
    page.get_by_role("button", name="Decide").click(timeout=3000)
    expect(page.locator("[data-announce]")).to_contain_text("1 decided by you")
