"""Browser tests of the review and preference pages: accessibility and layout, wide and narrow, light and dark."""

from typing import Any

import pytest
from playwright.sync_api import expect

from preferences.models import Issue, IssueCategory, Preference
from preferences.services import NewIssue
from preferences.spans import find_quote
from review.models import Guideline, Pair
from review.queue import assignments
from tests.browser.looks.checks import accessibility_findings, findings
from tests.browser.review_fixtures import SignIn, browser, sign_in
from tests.review.pages import reviewer, suggest, waiting_pairs

__all__ = ["browser", "sign_in"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CODE = "```python\ndef f(x):\n    y = x / 0  # " + "a long remark that wraps " * 12 + "\n    return y\n```\n"
CALL = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"country": "Spain"}'}}


@pytest.fixture(autouse=True)
def nothing_drawn(monkeypatch: Any, transactional_db: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)
    IssueCategory.objects.get_or_create(slug="style", defaults={"title": "Style"})


def judged(pair: Pair, **fields: Any) -> Preference:
    span = find_quote(pair.first.messages, "return y")
    category = IssueCategory.objects.get(slug="style")
    issue = NewIssue(response=pair.first, category=category, note="Too short a name.", span=span)
    return suggest(pair, "first", issues=[issue], **fields)


def pairs() -> tuple[Pair, Pair, Pair]:
    """One with a failed test and a line that raised an error, one of an episode with tools, one that is decided."""
    Guideline.objects.create(title="What matters", text="# First\n\n- what is *right*\n\n`code` counts.")
    code, tools, done = waiting_pairs(3, texts=(CODE, CODE.replace("y", "z")), outcome="pf")
    message = "The code raised ZeroDivisionError: division by zero (line 2)"
    failure = {"test": "f(1) == " + "1" * 90, "expected": "1" * 90, "got": "2", "line": 3}
    ran = {"status": "exception", "passed": 2, "total": 3, "message": message, "failure": failure}
    code.second.scores.update(type="python_tests", reason=message, execution=ran, detail={"code": "fence"})
    judged(code)
    for side, calls in ((tools.first, [CALL]), (tools.second, [CALL, CALL])):
        side.messages = [
            side.messages[0],
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "1", "content": "x" * 300},
            {"role": "assistant", "content": "Madrid."},
        ]
        side.save()
    judged(done)
    return code, tools, done


@pytest.mark.exhaustive
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_every_page_is_accessible_and_fits(sign_in: SignIn, width: int, scheme: Any) -> None:
    code, tools, done = pairs()
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    page = sign_in(reviewer(), **options)
    page.goto(f"/review/{done.pk}/")
    page.get_by_role("button", name="Review this pair").click()
    page.locator("#decision").wait_for()
    page.keyboard.press("y")
    page.wait_for_url(f"**/review/{code.pk}/")
    stored = Preference.objects.get(source="human")
    assert Issue.objects.filter(preference=stored).exists()
    other, third = sign_in(reviewer("bob"), **options), sign_in(reviewer("cat"), **options)
    third.goto(f"/review/{tools.pk}/")
    found = findings(third)  # to look at
    third.get_by_role("button", name="Review this pair").click()
    third.locator("#decision").wait_for()
    for who, address in (
        (page, f"/review/{code.pk}/"),
        (page, f"/review/{done.pk}/"),
        (other, f"/review/{code.pk}/"),  # no free slot
        (third, f"/review/{tools.pk}/"),
        (other, "/review/"),  # all are held
        (page, f"/review/?run={code.run_id + 1}"),  # nothing waits
        (page, f"/review/runs/{code.run_id}/"),
        (page, f"/review/responses/{done.first_id}/"),
        (page, "/preferences/"),
        (page, "/preferences/?source=execution"),  # none
        (page, f"/preferences/{stored.pk}/"),
        (page, f"/preferences/{stored.suggestion_id}/"),
        (page, "/agreement/"),
        (page, "/ranking/"),
    ):
        who.goto(address)
        found += findings(who)
        who.evaluate("document.querySelectorAll('main details').forEach((fold) => { fold.open = true; })")
        found += findings(who)
    assert not found, "\n".join(found)


@pytest.mark.exhaustive
def test_mark_dialog_error_and_shortcuts_are_accessible(sign_in: SignIn) -> None:
    code, _tools, _done = pairs()
    page = sign_in(reviewer())
    page.goto(f"/review/{code.pk}/")
    page.get_by_role("button", name="Review this pair").click()
    page.locator("#decision").wait_for()
    page.keyboard.press("m")
    found = findings(page)
    page.get_by_role("button", name="Cancel").click()
    page.keyboard.press("?")
    found += findings(page)
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.get_by_role("alert").wait_for()
    found += findings(page)
    assert not found, "\n".join(found)


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1440, 390])
def test_each_block_of_an_answer_has_its_own_direction(sign_in: SignIn, width: int) -> None:
    code = "```python\n# שלום\nf(x):\n```"
    waiting_pairs(1, texts=(f"שלום.\n\nDone.\n\n{code}\n\n- פריט", "Done:\n\nשלום.\n\n- פריט"))
    page = sign_in(reviewer(), viewport={"width": width, "height": 900})
    page.goto("/review/")
    directions = "(blocks) => blocks.map((block) => [block.tagName, getComputedStyle(block).direction])"
    sides = {name: page.locator(f".side-{name} .rendered > *").evaluate_all(directions) for name in "ab"}
    assert sides["a"] == [["P", "rtl"], ["P", "ltr"], ["DIV", "ltr"], ["UL", "rtl"]]
    assert sides["b"] == [["P", "ltr"], ["P", "rtl"], ["UL", "rtl"]]
    ends = "(block) => block.parentElement.getBoundingClientRect().right - block.getBoundingClientRect().right"
    assert all(page.locator(f".side-a {name}").first.evaluate(ends) < 20 for name in ("p", "ul"))


@pytest.mark.exhaustive
def test_each_line_of_the_source_has_its_own_direction(sign_in: SignIn) -> None:
    waiting_pairs(1, texts=("שלום.\nDone.", "Done.\nשלום."))
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("r")
    expect(page.locator(".side pre.source")).to_have_count(2)
    at_the_right = """(lines) => lines.map((line) => {
        const range = document.createRange();
        range.selectNodeContents(line);
        const outer = line.getBoundingClientRect(), inner = range.getBoundingClientRect();
        return outer.right - inner.right < inner.left - outer.left - 60;  // the number of the line
    })"""
    found = [page.locator(f".side-{name} .line").evaluate_all(at_the_right) for name in "ab"]
    assert found == [[True, False], [False, True]]


@pytest.mark.exhaustive
def test_tables_in_both_answers_are_no_landmarks_of_the_same_name(sign_in: SignIn) -> None:
    table = "| n | f |\n| - | - |\n| 1 | 2 |\n"
    waiting_pairs(1, texts=(f"Yes.\n\n{table}", f"No.\n\n{table}"))
    page = sign_in(reviewer())
    page.goto("/review/")
    assert accessibility_findings(page) == []
    for side in "ab":
        expect(page.locator(f".side-{side}").get_by_role("group", name="Table")).to_have_count(1)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("width", "label"), [(1280, "Word difference"), (390, "Difference")])
def test_button_of_the_difference_has_a_complete_label(sign_in: SignIn, width: int, label: str) -> None:
    code, _, _ = pairs()
    page = sign_in(reviewer(), viewport={"width": width, "height": 900})
    page.goto(f"/review/{code.pk}/")
    expect(page.locator("#view-difference > span")).to_have_text(label, use_inner_text=True)
