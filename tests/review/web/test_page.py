"""Tests of the review page without JavaScript."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from hub.models import Environment, Team
from preferences.models import Issue, IssueCategory, Preference
from preferences.services import NewIssue
from preferences.spans import find_quote, text_hash
from review.models import Assignment
from review.queue import assignments
from runs.models import Run
from tests.factories import stored_run, stored_version
from tests.markup import markup
from tests.review.pages import reviewer, suggest, waiting_pairs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_drawn(monkeypatch: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)


@pytest.fixture
def ann(client: Client) -> Client:
    client.force_login(reviewer())
    return client


def test_decision_redirects_to_next_pair(ann: Client) -> None:
    first, second = waiting_pairs(2)
    page = ann.get("/review/", follow=True)
    assert page.redirect_chain[-1][0] == f"/review/{first.pk}/"
    assert "alpha" not in page.content.decode()  # no model is named
    after = ann.post(f"/review/{first.pk}/decision/", {"verdict": "a", "critique": "Shorter."}, follow=True)
    assert after.redirect_chain[-1][0] == f"/review/{second.pk}/"
    stored = Preference.objects.get()
    assert (stored.verdict, stored.critique) == ("first", "Shorter.")


def test_htmx_decision_returns_next_pair(ann: Client) -> None:
    first, second = waiting_pairs(2)
    ann.get("/review/")
    answers = [
        ann.post(f"/review/{pair.pk}/decision/", {"verdict": "tie"}, headers={"HX-Request": "true"})
        for pair in (first, second)
    ]
    assert [answer.headers["HX-Push-Url"] for answer in answers] == [f"/review/{second.pk}/", "/review/"]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert f'action="/review/{second.pk}/decision/"' in answers[0].content.decode()
    assert "No pairs are waiting for you" in answers[1].content.decode()


def test_invalid_htmx_decision_does_not_push_url(ann: Client) -> None:
    (pair,) = waiting_pairs(1, outcome="pf")
    ann.get("/review/")
    answer = ann.post(f"/review/{pair.pk}/decision/", {"verdict": "b"}, headers={"HX-Request": "true"})
    assert "Describe what is wrong with the tests" in answer.content.decode()
    assert "HX-Push-Url" not in answer.headers


def test_verdict_on_swapped_sides_is_stored_for_pair_order(ann: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.0 if what == "side" else 0.99)
    (pair,) = waiting_pairs(1)
    page = ann.get(f"/review/{pair.pk}/").content.decode()
    assert page.index("two") < page.index(">one")
    ann.post(f"/review/{pair.pk}/decision/", {"verdict": "a"})
    assert Preference.objects.get().verdict == "second"


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_other_verdict_from_a_page_kept_by_the_browser_is_reported(ann: Client, headers: dict[str, str]) -> None:
    first, second = waiting_pairs(2)
    ann.get("/review/")
    ann.post(f"/review/{first.pk}/decision/", {"verdict": "a"})
    again = ann.post(f"/review/{first.pk}/decision/", {"verdict": "b"}, headers=headers, follow=True)
    page = again.content.decode()
    assert f"You had already decided pair {first.pk}" in page
    assert f"/review/{second.pk}/decision/" in page
    assert Preference.objects.get().verdict == "first"


def test_accept_button_stores_suggested_verdict_and_issues(ann: Client) -> None:
    (pair,) = waiting_pairs(1, texts=("fine", "a 🏙️\tbad\nword"))
    span = find_quote(pair.second.messages, "🏙️\tbad\nword")
    category = IssueCategory.objects.get(slug="style")
    suggest(pair, "first", issues=[NewIssue(response=pair.second, category=category, span=span)])
    judged = Issue.objects.get()
    ann.get("/review/")
    page = ann.get(f"/review/{pair.pk}/").content.decode()
    assert 'name="accept" value="a"' in page
    assert '<mark class="judge"' in page
    ann.post(f"/review/{pair.pk}/decision/", {"accept": "a", "kept": [judged.pk]})
    stored = Preference.objects.get(source="human")
    assert (stored.verdict, stored.suggestion_taken, stored.dismissed) == ("first", True, [])
    kept = stored.issues.get()
    assert (kept.kept_from, kept.quote, kept.start) == (judged, "🏙️\tbad\nword", 2)


def test_unchecked_issue_is_dismissed(ann: Client) -> None:
    (pair,) = waiting_pairs(1)
    category = IssueCategory.objects.get(slug="style")
    suggest(pair, "first", issues=[NewIssue(response=pair.second, category=category)])
    ann.get("/review/", follow=True)
    ann.post(f"/review/{pair.pk}/decision/", {"accept": "a"})
    stored = Preference.objects.get(source="human")
    assert stored.dismissed == [Issue.objects.get().pk]


@pytest.mark.parametrize("action", ["decision", "draft"])
def test_page_is_shown_after_impossible_numbers_of_issues(ann: Client, action: str) -> None:
    (pair,) = waiting_pairs(1)
    ann.get("/review/")
    answer = ann.post(f"/review/{pair.pk}/{action}/", {"kept": ["9" * 5000, "x"]})
    assert answer.status_code == {"decision": 422, "draft": 204}[action]
    assert ann.get(f"/review/{pair.pk}/").status_code == 200


def test_mark_whose_category_no_database_can_look_up_is_reported(ann: Client) -> None:
    (pair,) = waiting_pairs(1)
    ann.get("/review/")
    marks = json.dumps([{"side": "a", "category": "st\0yle"}])
    answer = ann.post(f"/review/{pair.pk}/decision/", {"verdict": "a", "issues": marks})
    assert answer.status_code == 422 and "The marks cannot be parsed." in answer.content.decode()


@pytest.mark.parametrize("saved", [False, True])
def test_issues_of_hidden_suggestion_are_checked_when_it_is_shown(ann: Client, monkeypatch: Any, saved: bool) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.0 if what == "hidden" else 0.99)
    (pair,) = waiting_pairs(1)
    suggest(pair, "first", issues=[NewIssue(response=pair.second, category=IssueCategory.objects.get(slug="style"))])
    ann.get("/review/")
    entered = {"verdict": "b", "blind": "on"}
    if saved:
        ann.post(f"/review/{pair.pk}/draft/", entered)
    box = f'name="kept" value="{Issue.objects.get().pk}"'
    assert box not in markup(ann.get(f"/review/{pair.pk}/"))
    shown = [ann.post(f"/review/{pair.pk}/decision/", entered), ann.get(f"/review/{pair.pk}/")]
    assert [f"{box} checked" in markup(page) for page in shown] == [True, True]


def test_marks_store_exact_quote(ann: Client) -> None:
    text = "x = '👩‍👩‍👧'\t# wrapped\nand more"
    (pair,) = waiting_pairs(1, texts=(text, "two"))
    ann.get(f"/review/{pair.pk}/")
    start, end = text.index("👩"), text.index("and") + 3
    mark = (
        f'[{{"side": "a", "category": "style", "message": 1, "start": {start}, "end": {end},'
        f' "text_hash": "{text_hash(text)}"}}]'
    )
    ann.post(f"/review/{pair.pk}/decision/", {"verdict": "b", "issues": mark})
    issue = Issue.objects.get()
    assert issue.quote == "👩‍👩‍👧'\t# wrapped\nand"
    assert (issue.prefix, issue.suffix) == ("x = '", " more")


def test_invalid_decision_shows_error_and_keeps_input(ann: Client) -> None:
    (pair,) = waiting_pairs(1, outcome="pf")
    ann.get(f"/review/{pair.pk}/")
    answer = ann.post(f"/review/{pair.pk}/decision/", {"verdict": "b", "critique": "Nicer."})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Describe what is wrong with the tests" in page
    assert "Nicer." in page
    assert not Preference.objects.exists()


def test_draft_is_shown_after_reload(ann: Client) -> None:
    (pair,) = waiting_pairs(1)
    ann.get("/review/")
    assert ann.post(f"/review/{pair.pk}/draft/", {"verdict": "tie", "critique": "So far"}).status_code == 204
    page = ann.get(f"/review/{pair.pk}/").content.decode()
    assert "So far" in page
    assert 'value="tie" data-key="t" checked' in page


@pytest.mark.parametrize("changed", ["deleted", "team"])
def test_draft_and_decision_of_a_pair_whose_run_is_gone_say_so(ann: Client, changed: str) -> None:
    (pair,) = waiting_pairs(1)
    ann.get("/review/")
    if changed == "deleted":
        Run.objects.update(deleted_at=timezone.now())
    else:
        Run.objects.update(team=Team.objects.create(slug="others", group=Group.objects.create(name="others")))
    entered = {"verdict": "tie", "critique": "Typed."}
    draft = ann.post(f"/review/{pair.pk}/draft/", entered)
    assert draft.status_code == 409
    assert "not saved: the run of this pair was deleted" in draft.content.decode()
    decision = ann.post(f"/review/{pair.pk}/decision/", entered)
    assert decision.status_code == 404
    assert "its run was deleted" in decision.content.decode()
    assert Assignment.objects.get().draft == {}


def test_review_requires_permission_and_reports_taken_pair(client: Client) -> None:
    (pair,) = waiting_pairs(1)
    client.force_login(User.objects.create_user("visitor"))
    assert client.get("/review/").status_code == 403
    assignments.claim_next_pair(reviewer("ann"))
    client.force_login(reviewer("bob"))
    assert "This pair is assigned to other reviewers" in client.get(f"/review/{pair.pk}/").content.decode()
    assert client.post(f"/review/{pair.pk}/decision/", {"verdict": "a"}).status_code == 409
    assert Assignment.objects.count() == 1


def test_skip_and_undo(ann: Client) -> None:
    first, _second = waiting_pairs(2)
    ann.get("/review/")
    ann.post(f"/review/{first.pk}/skip/", {"reason": "Not my field"})
    assert Assignment.objects.get(pair=first).skip_reason == "Not my field"
    answer = ann.post("/review/undo/", follow=True)
    assert answer.redirect_chain == [(f"/review/{first.pk}/", 302)]
    assert [str(message) for message in answer.context["messages"]] == ["Reopened."]


def test_undone_decision_stays_in_force(ann: Client) -> None:
    (pair,) = waiting_pairs()
    ann.get("/review/")
    ann.post(f"/review/{pair.pk}/decision/", {"verdict": "a"})
    answer = ann.post("/review/undo/", follow=True)
    assert "Your earlier verdict stays in force" in answer.content.decode()


def test_undone_decision_with_long_marks_is_submitted_again(ann: Client) -> None:
    text = "long " * 24_000
    (pair,) = waiting_pairs(1, texts=(text, "two"))
    ann.get("/review/")
    mark = {"side": "a", "category": "style", "message": 1, "start": 0, "end": len(text)}
    ann.post(f"/review/{pair.pk}/decision/", {"verdict": "b", "issues": json.dumps([mark, mark])})
    ann.post("/review/undo/")
    draft = Assignment.objects.get().draft
    ann.post(f"/review/{pair.pk}/decision/", {"verdict": "a", "issues": draft["issues"]})
    stored = Preference.objects.get(successor=None)
    assert (stored.verdict, [issue.quote == text for issue in stored.issues.all()]) == ("first", [True, True])


def test_pair_with_200_kilobyte_response_is_shown(ann: Client) -> None:
    text = "def f():\n" + "    x = 'some words'  # and a remark\n" * 5600
    (pair,) = waiting_pairs(1, texts=(text, "two"))
    assert ann.get(f"/review/{pair.pk}/").status_code == 200


def test_texts_of_a_decision_that_was_already_made_are_shown_to_be_copied(ann: Client) -> None:
    (pair, _) = waiting_pairs(2)
    address = f"/review/{pair.pk}/decision/"
    ann.post(f"/review/{pair.pk}/take/")
    ann.post(address, {"verdict": "a"})
    answer = ann.post(address, {"verdict": "b", "critique": "From another tab.", "run": str(pair.run_id)})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert f"You had already decided pair {pair.pk}" in page
    assert "From another tab.</textarea>" in page
    assert f'href="/review/?run={pair.run_id}"' in page  # the queue stays limited to the run
    assert Preference.objects.get().verdict == "first"


@pytest.mark.parametrize("critique", ["", "From another tab."])
def test_marks_of_a_decision_that_was_already_made_are_shown_to_be_copied(ann: Client, critique: str) -> None:
    (pair, _) = waiting_pairs(2)
    address = f"/review/{pair.pk}/decision/"
    ann.post(f"/review/{pair.pk}/take/")
    ann.post(address, {"verdict": "a"})
    mark = {"side": "b", "category": "style", "message": 1, "start": 0, "end": 3, "quote": "two", "note": "Too short."}
    marks = json.dumps([mark, {"side": "a", "category": "wrong-result"}])
    answer = ann.post(address, {"verdict": "b", "critique": critique, "issues": marks})
    assert answer.status_code == 409
    assert "B style (major) “two” Too short.\nA wrong-result (major)</textarea>" in answer.content.decode()


def test_undo_after_the_last_pair_keeps_the_run_that_limits_the_queue(ann: Client) -> None:
    (pair,) = waiting_pairs(1)
    ann.post(f"/review/{pair.pk}/take/")
    empty = ann.post(f"/review/{pair.pk}/decision/", {"verdict": "a", "run": str(pair.run_id)}, follow=True)
    assert f'name="run" value="{pair.run_id}"' in empty.content.decode()


def test_empty_queue_of_a_run_says_why_it_is_empty(ann: Client) -> None:
    (pair,) = waiting_pairs(1, overlap=0)
    page = ann.get(f"/review/?run={pair.run_id}").content.decode()
    assert f"No pairs of run {pair.run_id} are waiting for you." in page
    stored = stored_version()
    Environment.objects.filter(pk=stored.environment_id).update(visibility="published")
    without = stored_run(stored)
    page = ann.get(f"/review/?run={without.pk}").content.decode()
    assert f"Run {without.pk} has no pairs." in page


def test_queue_of_an_unknown_run_is_not_found(ann: Client) -> None:
    answer = ann.get("/review/?run=77")
    assert answer.status_code == 404
    assert "There is no run 77" in answer.content.decode()


def test_issues_of_the_suggestion_cannot_be_changed_after_the_decision(ann: Client) -> None:
    (pair,) = waiting_pairs(1)
    issue = NewIssue(
        response=pair.first,
        category=IssueCategory.objects.get(slug="style"),
        note="Too short.",
        span=find_quote(pair.first.messages, "one"),
    )
    suggest(pair, issues=[issue])
    ann.post(f"/review/{pair.pk}/take/")
    assert 'name="kept"' in ann.get(f"/review/{pair.pk}/").content.decode()
    ann.post(f"/review/{pair.pk}/decision/", {"verdict": "a"})
    page = ann.get(f"/review/{pair.pk}/").content.decode()
    assert "Too short." in page
    assert 'name="kept"' not in page
    assert "Untick" not in page


def test_reload_keeps_what_was_entered_with_a_first_verdict(ann: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.1 if what == "hidden" else 0.99)
    (pair,) = waiting_pairs(1)
    suggest(pair)
    ann.post(f"/review/{pair.pk}/take/")
    entered = {"verdict": "b", "critique": "First thought.", "blind": "on"}
    assert "not decided yet" in ann.post(f"/review/{pair.pk}/decision/", entered).content.decode()
    page = ann.get(f"/review/{pair.pk}/").content.decode()
    assert "First thought.</textarea>" in page
    assert 'value="b" data-key="b" checked' in page


def test_reload_keeps_what_was_entered_in_a_rejected_form(ann: Client) -> None:
    (pair,) = waiting_pairs(1, outcome="pf")
    ann.post(f"/review/{pair.pk}/take/")
    answer = ann.post(f"/review/{pair.pk}/decision/", {"verdict": "b", "critique": "It is shorter."})
    assert "contradicts the tests" in answer.content.decode()
    assert "It is shorter.</textarea>" in ann.get(f"/review/{pair.pk}/").content.decode()


def test_examples_in_the_prompt_belong_to_the_task(ann: Client) -> None:
    (pair,) = waiting_pairs(1)
    examples = [{"role": "user", "content": "Add zero."}, {"role": "assistant", "content": "example"}]
    for response in (pair.first, pair.second):
        response.messages = [*examples, *response.messages]
        response.prompt_messages = 3
        response.save()
    answer = ann.get(f"/review/{pair.pk}/")
    assert [turn.role for turn in answer.context["prompt"]] == ["user", "assistant", "user"]
    assert [len(side["turns"]) for side in answer.context["sides"]] == [1, 1]
    marked = {"side": "a", "category": "style", "message": 1, "start": 0, "end": 7}
    ann.post(f"/review/{pair.pk}/take/")
    refused = ann.post(f"/review/{pair.pk}/decision/", {"verdict": "a", "issues": json.dumps([marked])})
    assert "Message 1 is part of the task." in refused.content.decode()
