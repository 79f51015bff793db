"""Reviewing in a browser: by keyboard, with marks over the words, with drafts, and without JavaScript."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from preferences.models import Issue, IssueCategory, Preference
from preferences.services import NewIssue
from preferences.spans import find_quote
from review import queue
from tests.browser.review_fixtures import SignIn, browser, sign_in
from tests.review.pages import reviewer, suggest, waiting_pairs

__all__ = ["browser", "sign_in"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CODE = "def f(x):\n\tname = '👩‍👩‍👧 Zoë'  # " + "a long remark that wraps " * 12 + "\n    return x < 1 & 2\n"


@pytest.fixture(autouse=True)
def as_seeded(monkeypatch: Any, transactional_db: Any) -> None:
    monkeypatch.setattr(queue, "_drawn", lambda what, pair, user: 0.99)
    for slug in ("wrong-result", "style"):
        IssueCategory.objects.get_or_create(slug=slug, defaults={"title": slug})


def select(page: Page, words: str, side: str = "a") -> None:
    """Select *words* in a response as a mouse would, across whatever elements they lie in."""
    page.evaluate(
        """([words, side]) => {
            const box = document.querySelector(`pre.answer[data-side="${side}"]`);
            const at = box.textContent.indexOf(words);
            const place = (offset) => {
                const walk = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
                for (let node = walk.nextNode(); node; node = walk.nextNode()) {
                    if (offset <= node.data.length) return [node, offset];
                    offset -= node.data.length;
                }
            };
            const range = new Range();
            range.setStart(...place(at)); range.setEnd(...place(at + words.length));
            getSelection().removeAllRanges(); getSelection().addRange(range);
        }""",
        [words, side],
    )


def test_a_pair_is_decided_with_two_keys_and_the_next_one_comes(sign_in: SignIn) -> None:
    _first, second = waiting_pairs(2, texts=(CODE, "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/review/{second.pk}/")
    assert Preference.objects.get().verdict == "second"
    page.keyboard.press("t")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    assert Preference.objects.filter(verdict="tie").count() == 1


def test_a_suggestion_is_accepted_with_one_click(sign_in: SignIn) -> None:
    (pair,) = waiting_pairs(1, texts=(CODE, "two"))
    span = find_quote(pair.first.messages, "x < 1 & 2")
    suggest(pair, "second", issues=[NewIssue(response=pair.first, category=IssueCategory.objects.first(), span=span)])
    page = sign_in(reviewer())
    page.goto("/review/")
    expect(page.locator("mark.judge").first).to_be_visible()
    page.get_by_role("button", name="Accept").click()
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    stored = Preference.objects.get(source="human")
    assert (stored.verdict, stored.suggestion_taken) == ("second", True)
    assert stored.issues.get().quote == "x < 1 & 2"


def test_a_mark_over_an_emoji_a_tab_and_a_wrapped_line_keeps_its_words_after_a_reload(sign_in: SignIn) -> None:
    (_pair,) = waiting_pairs(1, texts=(CODE, "two"))
    words = CODE[CODE.index(":\n\tname") : CODE.index(" & 2")]
    page = sign_in(reviewer())
    page.goto("/review/")
    select(page, words)
    page.keyboard.press("m")
    page.get_by_label("Note").fill("All of it.")
    with page.expect_response("**/draft/"):
        page.locator("#mark-dialog").get_by_role("button", name="Mark").click()
    page.reload()
    expect(page.locator("#marks li")).to_contain_text("All of it.")
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    issue = Issue.objects.get()
    assert issue.quote == words
    assert CODE[issue.start : issue.end] == words


def test_a_reload_in_the_middle_keeps_the_draft(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("x")
    with page.expect_response("**/draft/"):
        page.get_by_label("Critique").fill("Neither says why.")
    page.reload()
    expect(page.get_by_label("Critique")).to_have_value("Neither says why.")
    expect(page.get_by_label("Both bad")).to_be_checked()


def test_without_javascript_a_decision_can_still_be_made(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer(), java_script_enabled=False)
    page.goto("/review/")
    page.get_by_label("A is better").check()
    page.get_by_role("button", name="Decide and go on").click()
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    assert Preference.objects.get().verdict == "first"


def test_two_reviewers_at_once_see_different_pairs(sign_in: SignIn) -> None:
    waiting_pairs(2)
    pages = [sign_in(reviewer(name)) for name in ("ann", "bob")]
    for page in pages:
        page.goto("/review/")
    assert pages[0].url != pages[1].url


def test_a_verdict_against_the_tests_is_asked_for_a_reason_in_place(sign_in: SignIn) -> None:
    waiting_pairs(1, outcome="pf")
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Say what is wrong with the tests")
    expect(page.get_by_label("B is better")).to_be_checked()
    page.get_by_label("What is wrong with it?").fill("It tests something else.")
    page.get_by_role("button", name="Decide and go on").click()
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()


def serious(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{item['id']}: {item['nodes'][0]['html'][:200]}" for item in found if item["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(sign_in: SignIn, scheme: Any) -> None:
    (pair,) = waiting_pairs(1, texts=(CODE, "two"), outcome="pf")
    span = find_quote(pair.first.messages, "x < 1 & 2")
    preference = suggest(
        pair, "first", issues=[NewIssue(response=pair.first, category=IssueCategory.objects.first(), span=span)]
    )
    page = sign_in(reviewer(), color_scheme=scheme)
    addresses = ["/preferences/", f"/preferences/{preference.pk}/", "/agreement/", "/ranking/", f"/review/{pair.pk}/"]
    found = {}
    for address in addresses:
        page.goto(address)
        found[address] = serious(page)
    assert found == {key: [] for key in addresses}
