"""Browser tests of reviewing: keyboard, marks, drafts, and use without JavaScript."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from preferences.models import Issue, IssueCategory, Preference
from preferences.services import NewIssue
from preferences.spans import find_quote
from review.models import Assignment
from review.queue import assignments
from tests.browser.review_fixtures import SignIn, browser, sign_in
from tests.processes import wait_until
from tests.review.pages import reviewer, suggest, waiting_pairs

__all__ = ["browser", "sign_in"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CODE = "def f(x):\n\tname = '👩‍👩‍👧 Zoë'  # " + "a long remark that wraps " * 12 + "\n    return x < 1 & 2\n"


@pytest.fixture(autouse=True)
def as_seeded(monkeypatch: Any, transactional_db: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)
    for slug in ("wrong-result", "style"):
        IssueCategory.objects.get_or_create(slug=slug, defaults={"title": slug})


def select(page: Page, words: str, side: str = "a") -> None:
    """Select *words* in a response as a mouse would, across whatever elements they lie in."""
    page.evaluate(
        """([words, side]) => {
            const box = document.querySelector(`.answer[data-side="${side}"]`);
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


def highlighted(page: Page) -> list[str]:
    """What the page shows as the reviewer's own marks."""
    found: list[str] = page.evaluate("[...CSS.highlights.get('own-marks')].map(String)")
    return found


def test_pairs_are_decided_with_two_keys_each(sign_in: SignIn) -> None:
    _first, second = waiting_pairs(2, texts=(CODE, "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("b")
    page.locator("#responses section").first.click()  # Enter decides although the verdict has lost the focus
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/review/{second.pk}/")
    assert Preference.objects.get().verdict == "second"
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("t")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    assert Preference.objects.filter(verdict="tie").count() == 1
    page.reload()  # the address is the queue's, not the decision's
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()


def test_suggestion_is_accepted_with_one_key(sign_in: SignIn) -> None:
    (pair,) = waiting_pairs(1, texts=(CODE, "two"))
    suggest(pair, "second")
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("y")
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    stored = Preference.objects.get(source="human")
    assert (stored.verdict, stored.suggestion_taken) == ("second", True)


@pytest.mark.exhaustive
def test_single_keys_can_be_turned_off(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_role("button", name="Turn single keys off").click()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("a")
    expect(page.get_by_label("A is better")).not_to_be_checked()


def test_suggestion_is_accepted_with_one_click(sign_in: SignIn) -> None:
    (pair,) = waiting_pairs(1, texts=(CODE, "two"))
    span = find_quote(pair.first.messages, "x < 1 & 2")
    suggest(pair, "second", issues=[NewIssue(response=pair.first, category=IssueCategory.objects.first(), span=span)])
    page = sign_in(reviewer())
    page.goto("/review/")
    expect(page.locator("mark.judge").first).to_be_visible()
    page.get_by_role("button", name="Accept").click()
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    stored = Preference.objects.get(source="human")
    assert (stored.verdict, stored.suggestion_taken) == ("second", True)
    assert stored.issues.get().quote == "x < 1 & 2"


@pytest.mark.exhaustive
def test_mark_with_emoji_tab_and_wrapped_line_survives_reload(sign_in: SignIn) -> None:
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
    assert highlighted(page) == [words]
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    issue = Issue.objects.get()
    assert issue.quote == words
    assert CODE[issue.start : issue.end] == words


@pytest.mark.exhaustive
def test_typed_quotes_are_located_or_rejected(sign_in: SignIn) -> None:
    (_pair,) = waiting_pairs(1, texts=(CODE, "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("m")
    dialog = page.locator("#mark-dialog")
    page.get_by_label("Words").fill("x > 1")
    dialog.get_by_role("button", name="Mark").click()
    assert "Response A does not contain this text" in page.get_by_label("Words").evaluate(
        "element => element.validationMessage"
    )
    page.get_by_label("Words").fill("x < 1")
    dialog.get_by_role("button", name="Mark").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#marks li")).to_have_count(1)
    assert highlighted(page) == ["x < 1"]


def test_reload_keeps_draft(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("x")
    with page.expect_response(lambda answer: "Neither" in (answer.request.post_data or "")):
        page.get_by_label("Critique").fill("Neither says why.")
    page.reload()
    expect(page.get_by_label("Critique")).to_have_value("Neither says why.")
    expect(page.get_by_label("Both bad")).to_be_checked()


@pytest.mark.exhaustive
def test_reload_keeps_changes_that_are_not_saved_yet(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("x")
    page.get_by_label("Critique").fill("Neither says why.")
    page.reload()
    expect(page.get_by_label("Critique")).to_have_value("Neither says why.")
    expect(page.get_by_label("Both bad")).to_be_checked()
    wait_until(lambda: Assignment.objects.get().draft.get("critique") == "Neither says why.")


def test_decision_after_the_session_has_ended_is_entered_again_after_sign_in(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    address = page.url
    cookies = page.context.cookies()
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_label("Critique").fill("Neither says why.")
    page.get_by_label("Both bad").check()
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_text("Your session has ended")).to_be_visible()
    page.context.add_cookies(cookies)
    page.goto(address)
    expect(page.get_by_label("Critique")).to_have_value("Neither says why.")
    expect(page.get_by_label("Both bad")).to_be_checked()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    assert Preference.objects.get(source="human").critique == "Neither says why."


@pytest.mark.exhaustive
@pytest.mark.parametrize("button", ["Skip", "Undo last"])
@pytest.mark.parametrize("known", [False, True])  # whether the page has reported that the session has ended
def test_words_before_skip_or_undo_are_kept_if_the_session_has_ended(sign_in: SignIn, button: str, known: bool) -> None:
    _first, second = waiting_pairs(2)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/review/{second.pk}/")
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_label("Critique").fill("One.")
    if known:
        expect(page.locator("#draft-state")).to_contain_text("you are signed out")
        page.keyboard.press("Escape")
    page.get_by_role("button", name=button).click()
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Password").fill("secret")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"**/review/{second.pk}/")
    expect(page.get_by_label("Critique")).to_have_value("One.")


def test_what_one_reviewer_entered_is_not_shown_to_the_next(sign_in: SignIn) -> None:
    waiting_pairs(1, overlap=2)
    page, other = sign_in(reviewer("ann")), sign_in(reviewer("bea"))
    page.goto("/review/")
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_label("Critique").fill("Neither says why.")
    page.context.add_cookies(other.context.cookies())
    page.goto("/review/")
    expect(page.get_by_label("Critique")).to_have_value("")


@pytest.mark.exhaustive
def test_key_for_the_critique_continues_after_its_text(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    with page.expect_response("**/draft/"):
        page.get_by_label("Critique").fill("One.")
    page.reload()
    page.keyboard.press("c")
    page.keyboard.type(" Two.")
    expect(page.get_by_label("Critique")).to_have_value("One. Two.")


@pytest.mark.exhaustive
def test_error_page_in_answer_to_a_draft_is_reported_in_one_sentence(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.context.clear_cookies()  # also the cookie against forged requests: the server answers with a page and 403
    page.get_by_label("Critique").fill("One.")
    state = page.locator("#draft-state")
    expect(state).to_contain_text("The draft was not saved: the server responded with an error (status 403).")
    expect(state).not_to_contain_text("<html")


@pytest.mark.exhaustive
def test_draft_that_is_not_saved_is_reported(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.get_by_label("Critique").fill("One.")
    state = page.locator("#draft-state")
    expect(state).to_have_text("Draft saved.")
    expect(state).to_be_hidden()
    cookies = page.context.cookies()
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_label("Critique").fill("One. Two.")
    expect(state).to_contain_text("you are signed out")
    expect(state).to_be_visible()
    page.context.add_cookies(cookies)
    Assignment.objects.update(state="skipped", lease_owner="", lease_until=None)
    page.get_by_label("Critique").fill("One. Two. Three.")
    expect(state).to_contain_text("You have decided or skipped this pair")
    assert Assignment.objects.get().draft["critique"] == "One."


@pytest.mark.exhaustive
def test_nothing_is_reported_or_typed_while_a_slow_decision_is_sent(sign_in: SignIn) -> None:
    _first, second = waiting_pairs(2)
    page = sign_in(reviewer())
    page.goto("/review/")
    drafts: list[int] = []
    page.on("response", lambda answer: drafts.extend([answer.status] if answer.url.endswith("/draft/") else []))

    def slow(route: Route) -> None:
        answer = route.fetch()
        page.wait_for_timeout(1500)
        route.fulfill(response=answer)

    page.route("**/decision/", slow)
    page.keyboard.press("a")
    with page.expect_request("**/decision/"):
        page.keyboard.press("Enter")
    page.keyboard.press("b")
    page.keyboard.press("c")
    page.keyboard.type("Too late.")
    page.wait_for_timeout(1000)
    assert f"/{second.pk}/" not in page.url
    expect(page.locator("#draft-state")).to_be_empty()
    expect(page.get_by_label("Critique")).to_have_value("")
    page.wait_for_url(f"**/review/{second.pk}/")
    page.keyboard.press("c")
    page.keyboard.type("In time.")
    expect(page.locator("#draft-state")).to_have_text("Draft saved.")
    assert set(drafts) == {204}
    assert Preference.objects.get().verdict == "first"


@pytest.mark.exhaustive
def test_critique_can_be_changed_after_a_decision_that_failed(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("a")
    page.context.set_offline(True)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("The server did not answer")
    page.context.set_offline(False)
    page.keyboard.press("c")
    page.keyboard.type("One.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    assert Preference.objects.get().critique == "One."


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["Source", "difference"])
def test_focus_stays_on_the_link_that_switches_the_view_of_the_responses(sign_in: SignIn, name: str) -> None:
    waiting_pairs(1, texts=("one", "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    page.get_by_role("link", name=name).press("Enter")
    expect(page.get_by_role("link", name=name)).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("link", name=name)).to_be_focused()


@pytest.mark.exhaustive
def test_focus_stays_in_the_list_of_marks_after_one_is_removed(sign_in: SignIn) -> None:
    waiting_pairs(1, texts=("one", "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    for words in ("o", "n", "e"):
        select(page, words)
        marked(page)
    page.keyboard.press("d")
    page.get_by_role("button", name="Remove mark 2").press("Enter")
    expect(page.get_by_role("button", name="Remove mark 2")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Remove mark 1")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Mark the selection")).to_be_focused()
    assert highlighted(page) == []


def test_without_javascript_a_decision_can_still_be_made(sign_in: SignIn) -> None:
    _first, second, third = waiting_pairs(3)
    suggest(second, "second")
    page = sign_in(reviewer(), java_script_enabled=False)
    page.goto("/review/")
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose a verdict.")
    page.get_by_label("A is better").check()
    page.get_by_role("button", name="Decide").click()
    page.wait_for_url(f"**/review/{second.pk}/")
    page.get_by_role("button", name="Accept").click()
    page.wait_for_url(f"**/review/{third.pk}/")
    page.locator(".notes > summary").click()
    page.get_by_label("Why skip").fill("Not my field.")
    page.get_by_role("button", name="Skip").click()
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    stored = Preference.objects.filter(source="human").order_by("pk")
    assert [(item.verdict, item.suggestion_taken) for item in stored] == [("first", None), ("second", True)]
    assert Assignment.objects.get(pair=third).skip_reason == "Not my field."


@pytest.mark.exhaustive
def test_concurrent_reviewers_get_different_assignments(sign_in: SignIn) -> None:
    waiting_pairs(2)
    pages = [sign_in(reviewer(name)) for name in ("ann", "bob", "cat")]
    for page in pages:
        page.goto("/account/")
    for page in pages:  # all three are on their way before any has arrived
        page.evaluate("setTimeout(() => { location.href = '/review/'; }, 0)")
    for page in pages:
        page.wait_for_url("**/review/**")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    taken = sorted(page.url for page in pages if page.locator("#decision").count())
    assert len(set(taken)) == 2
    assert sum(page.get_by_text("No pairs are waiting for review").count() for page in pages) == 1
    held = list(Assignment.objects.values_list("pair", "slot"))
    assert len(held) == len(set(held)) == 2
    loser = next(page for page in pages if not page.locator("#decision").count())
    loser.goto(taken[0])
    expect(loser.get_by_text("This pair is assigned to other reviewers")).to_be_visible()


@pytest.mark.exhaustive
def test_lapsed_assignment_is_claimed_by_next_reviewer_and_late_decision_reported(sign_in: SignIn) -> None:
    (pair,) = waiting_pairs(1)
    ann, bob = sign_in(reviewer("ann")), sign_in(reviewer("bob"))
    ann.goto("/review/")
    bob.goto("/review/")
    expect(bob.get_by_text("No pairs are waiting for review")).to_be_visible()
    Assignment.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    bob.goto("/review/")
    assert bob.url.endswith(f"/review/{pair.pk}/")
    ann.keyboard.press("a")
    ann.keyboard.press("Enter")
    expect(ann.get_by_text("Your assignment of this pair has lapsed")).to_be_visible()
    assert not Preference.objects.exists()
    bob.keyboard.press("b")
    bob.keyboard.press("Enter")
    expect(bob.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    assert Preference.objects.get().reviewer.username == "bob"


def test_decision_sent_twice_is_stored_once_and_another_verdict_is_refused(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    again = page.context.new_page()  # the same pair in a second window
    again.goto(page.url)
    page.keyboard.press("a")
    page.get_by_role("button", name="Decide").dblclick(no_wait_after=True)
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    again.keyboard.press("b")
    again.keyboard.press("Enter")
    expect(again.get_by_text("You had already decided pair")).to_be_visible()
    assert Preference.objects.get().verdict == "first"


def test_form_submitted_twice_on_slow_connection_is_stored_once(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("a")
    answers = page.evaluate(
        """() => {
            const form = document.getElementById("decision");
            const send = () => fetch(form.action, { method: "POST", body: new FormData(form) });
            return Promise.all([send(), send(), send()]).then((all) => all.map((answer) => answer.status));
        }"""
    )
    assert answers == [200, 200, 200]
    assert Preference.objects.get().verdict == "first"


def test_verdict_against_tests_shows_field_for_reason(sign_in: SignIn) -> None:
    waiting_pairs(1, outcome="pf")
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Describe what is wrong with the tests")
    expect(page.get_by_label("B is better")).to_be_checked()
    expect(page.get_by_label("A test is wrong")).to_be_focused()  # or "s" would skip the pair
    page.keyboard.type("It tests something else.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()


def marked(page: Page) -> list[str]:
    """Mark the selection with the dialog's defaults; what is highlighted then."""
    marks = page.locator("#marks li")
    before = marks.count()
    page.keyboard.press("m")
    page.locator("#mark-dialog").get_by_role("button", name="Mark").click()
    expect(marks).to_have_count(before + 1)  # the dialog is hidden a moment before its mark is added
    return highlighted(page)


@pytest.mark.exhaustive
def test_long_selections_are_marked_and_kept(sign_in: SignIn) -> None:
    text = "long " * 24_000 + "end"
    waiting_pairs(1, texts=(text, "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    for _ in range(2):
        select(page, text)
        page.keyboard.press("m")
        page.get_by_role("button", name="Mark", exact=True).click()
    with page.expect_response(lambda answer: answer.url.endswith("/draft/")):
        page.get_by_label("Critique").fill("Too long.")
    page.reload()
    expect(page.locator("#mark-count")).to_have_text(" (2)")
    page.get_by_label("B is better").check()
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    assert [issue.quote == text for issue in Issue.objects.all()] == [True, True]


@pytest.mark.exhaustive
def test_triple_click_marks_the_line_and_not_the_whole_response(sign_in: SignIn) -> None:
    waiting_pairs(1, texts=("first line\nlast line", "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    page.locator('.answer[data-side="a"] [data-at]').last.click(click_count=3)
    assert marked(page) == ["last line"]


@pytest.mark.exhaustive
def test_drag_beyond_the_end_marks_only_what_is_selected_of_the_response(sign_in: SignIn) -> None:
    waiting_pairs(1, texts=("first line\nlast line", "two"))
    page = sign_in(reviewer())
    page.goto("/review/")
    page.evaluate(
        """() => {
            const line = document.querySelectorAll('.answer[data-side="a"] [data-at]')[1].firstChild;
            const after = document.getElementById("decision");
            getSelection().setBaseAndExtent(line, 5, after, 0);
        }"""
    )
    assert marked(page) == ["line"]


def test_text_in_tool_call_is_marked(sign_in: SignIn) -> None:
    (pair,) = waiting_pairs(1)
    call = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": '{"order": 7}'}}
    pair.first.messages = [pair.first.messages[0], {"role": "assistant", "content": None, "tool_calls": [call]}]
    pair.first.save()
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("m")
    page.get_by_label("Words").fill('"order": 7')
    page.locator("#mark-dialog").get_by_role("button", name="Mark").click()
    expect(page.locator("#marks li")).to_have_count(1)  # the dialog is hidden a moment before its mark is added
    assert highlighted(page) == ['"order": 7']
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    issue = Issue.objects.get()
    assert (issue.message, issue.call, issue.quote) == (1, 0, '"order": 7')


@pytest.mark.parametrize("key", ["y", pytest.param("s", marks=pytest.mark.exhaustive)])
def test_key_that_is_held_down_acts_on_one_pair(sign_in: SignIn, key: str) -> None:
    for pair in waiting_pairs(4):
        suggest(pair)
    page = sign_in(reviewer())
    page.goto("/review/")
    for _ in range(20):
        page.keyboard.down(key)
        page.wait_for_timeout(50)
    page.keyboard.up(key)
    expect(page.locator("#decision")).to_be_visible()
    assert Assignment.objects.exclude(state="open").count() == 1


def test_second_click_of_a_double_click_does_not_decide_the_next_pair(sign_in: SignIn) -> None:
    for pair in waiting_pairs(4):
        suggest(pair)
    page = sign_in(reviewer())
    page.goto("/review/")
    first = page.url
    accept = page.get_by_role("button", name="Accept")
    accept.click()
    page.wait_for_url(lambda url: url != first)
    accept.click(click_count=2, no_wait_after=True)  # its first click decides the second pair
    page.wait_for_timeout(300)
    accept.wait_for()  # the next pair may still be on its way
    box = accept.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 4, box["y"] + 4)
    page.mouse.down(click_count=2)
    page.mouse.up(click_count=2)
    page.wait_for_timeout(300)
    assert Preference.objects.filter(source="human").count() == 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("button", ["Undo last", "Skip"])
def test_last_words_before_skip_or_undo_are_kept_as_draft(sign_in: SignIn, button: str) -> None:
    waiting_pairs(2)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.locator("[data-announce]")).to_contain_text("1 decided by you")
    with page.expect_navigation():
        page.evaluate(
            """(name) => {
                const critique = document.getElementById("critique");
                critique.value = "Too long.";
                critique.dispatchEvent(new Event("input", { bubbles: true }));
                [...document.querySelectorAll("button")].find((button) => button.textContent.startsWith(name)).click();
            }""",
            button,
        )
    assert Assignment.objects.get(preference=None).draft["critique"] == "Too long."


def test_decision_that_fails_is_reported_and_can_be_sent_again(sign_in: SignIn) -> None:
    waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.get_by_label("Critique").fill("Neither says why.")
    page.get_by_label("Both bad").check()
    page.context.set_offline(True)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("The server did not answer.")
    page.context.set_offline(False)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("No pairs are waiting for you.", exact=True)).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert Preference.objects.get().critique == "Neither says why."


@pytest.mark.exhaustive
def test_decision_on_a_deleted_run_is_reported(sign_in: SignIn) -> None:
    (pair,) = waiting_pairs(1)
    page = sign_in(reviewer())
    page.goto("/review/")
    page.keyboard.press("a")
    pair.run.delete()
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("status 404")
    expect(page.get_by_role("alert")).to_contain_text("There is no pair")
