"""Tests of marks and quotes in tool calls, and of the Accept button."""

import json
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from hub.protocols.messages import call_text
from preferences.models import Issue, IssueCategory, Preference
from preferences.services import NewIssue
from preferences.spans import find_quote, text_hash
from review import decisions
from review.judge.prompts import written
from review.models import Pair
from review.queue import assignments
from tests.review.pages import reviewer, suggest, waiting_pairs

pytestmark = pytest.mark.django_db

CALLS = [
    {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"order": 7}'}},
    {"id": "2", "type": "function", "function": {"name": "refund", "arguments": '{"order": 7, "why": "zu spät 🏙️"}'}},
]


@pytest.fixture(autouse=True)
def nothing_drawn(monkeypatch: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)


@pytest.fixture
def pair() -> Pair:
    """A pair whose second response calls tools in its first turn."""
    (found,) = waiting_pairs(1)
    found.second.messages = [
        found.second.messages[0],
        {"role": "assistant", "content": "Let me see.", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "1", "content": "late"},
        {"role": "assistant", "content": "two"},
    ]
    found.second.save()
    return found


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("refund", "refund"),
        ('"why": "zu spät 🏙️"', '"why": "zu spät 🏙️"'),
        ('{"order":7,"why":"zu spät 🏙️"}', '{"order": 7, "why": "zu spät 🏙️"}'),
        ('calls look_up({"order": 7})', 'look_up({"order": 7})'),
    ],
)
def test_quote_in_tool_call_is_found(pair: Pair, quote: str, words: str) -> None:
    span = find_quote(pair.second.messages, quote)
    assert span is not None
    assert (span.message, span.quote) == (1, words)
    assert call_text(CALLS[span.call])[span.start : span.end] == words


def test_quote_search_prefers_text_and_returns_none_if_missing(pair: Pair) -> None:
    assert find_quote(pair.second.messages, "two").call is None
    assert find_quote(pair.second.messages, "late") is None
    assert find_quote(pair.second.messages, "cancel_order") is None


def test_suggested_issue_in_tool_call_is_highlighted(pair: Pair) -> None:
    span = find_quote(pair.second.messages, '"order": 7, ')
    suggest(pair, "first", issues=[NewIssue(response=pair.second, category=IssueCategory.objects.first(), span=span)])
    client, ann = Client(), reviewer()
    client.force_login(ann)
    page = client.get("/review/", follow=True).content.decode()
    assert '<mark class="judge"' in page.partition('data-call="1"')[2].partition("</pre>")[0]
    assert 'data-call="0"' in page
    api = APIClient()
    api.force_authenticate(ann)
    shown = api.get("/api/v1/pairs/next").json()
    assert shown["suggestion"]["issues"][0]["call"] == 1
    assert shown["B"]["messages"][0]["calls"][1] == {
        "text": call_text(CALLS[1]),
        "text_hash": text_hash(call_text(CALLS[1])),
    }


def test_mark_in_tool_call_is_stored_drafted_and_exported(pair: Pair) -> None:
    text = call_text(CALLS[1])
    start = text.index("🏙️")
    mark = {
        "side": "b",
        "category": "style",
        "message": 1,
        "call": 1,
        "start": start,
        "end": start + 2,
        "text_hash": text_hash(text),
    }
    client, ann = Client(), reviewer()
    client.force_login(ann)
    client.get("/review/")
    client.post(f"/review/{pair.pk}/decision/", {"verdict": "a", "issues": json.dumps([mark])})
    issue = Issue.objects.get()
    assert (issue.call, issue.quote, issue.text_hash) == (1, "🏙️", text_hash(text))
    (row,) = client.get("/api/v1/preferences/").json()["results"]
    assert row["issues"][0]["call"] == 1
    draft = decisions.undo_last(user=ann).draft
    assert json.loads(draft["issues"])[0]["call"] == 1


@pytest.mark.parametrize("place", [{"call": 2}, {"call": 1, "end": 900}, {"message": 3, "call": 0}])
def test_mark_in_unknown_tool_call_is_rejected(pair: Pair, place: dict[str, int]) -> None:
    api = APIClient()
    api.force_authenticate(reviewer())
    mark = {"side": "B", "category": "style", "message": 1, "start": 0, "end": 3, **place}
    answer = api.post(f"/api/v1/pairs/{pair.pk}/decision", {"verdict": "A", "issues": [mark]}, format="json")
    assert answer.status_code == 400
    assert not Preference.objects.exists()


# ---- Accept ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suggested", "offered"), [("first", True), ("second", False), ("tie", False)])
def test_accept_is_offered_only_if_suggestion_agrees_with_tests(suggested: str, offered: bool) -> None:
    (pair,) = waiting_pairs(1, outcome="pf")
    suggest(pair, suggested)
    client, ann, api = Client(), reviewer(), APIClient()
    client.force_login(ann)
    api.force_authenticate(ann)
    page = client.get("/review/", follow=True).content.decode()
    assert ('name="accept"' in page) is offered
    assert ("This suggestion contradicts the tests" in page) is not offered
    assert api.get("/api/v1/pairs/next").json()["suggestion"]["acceptable"] is offered


@pytest.mark.parametrize("calls", [["look_up"], [None, CALLS[0]], {"name": "look_up"}, "look_up"])
def test_malformed_tool_calls_can_be_judged_and_reviewed(pair: Pair, calls: Any) -> None:
    pair.second.messages[1]["tool_calls"] = calls
    pair.second.save()
    assert "calls " in written(pair.second.messages)
    assert find_quote(pair.second.messages, "nowhere") is None
    user = reviewer()
    site, rest = Client(), APIClient()
    site.force_login(user)
    rest.force_authenticate(user)
    shown = rest.get("/api/v1/pairs/next").json()
    assert site.get(f"/review/{pair.pk}/").status_code == 200
    (side,) = [letter for letter in "AB" if len(shown[letter]["messages"]) > 1]
    mark = {"side": side, "category": "style", "message": 1, "call": 0, "start": 0, "end": 4}
    answer = rest.post(f"/api/v1/pairs/{pair.pk}/decision", {"verdict": "A", "issues": [mark]}, format="json")
    assert answer.status_code == 200
    assert Issue.objects.get().quote == "None"
