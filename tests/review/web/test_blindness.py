"""Tests that other verdicts and model names of a pair are hidden from reviewers until they have decided it."""

import io
import json
import zipfile
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from preferences.models import Preference
from review import decisions
from review.decisions import Decision
from review.models import Pair
from review.queue import assignments
from tests.review.pages import reviewer, suggest, waiting_pairs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_drawn(monkeypatch: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)


@pytest.fixture
def pairs() -> list[Pair]:
    """Two pairs for two people each: Bob has decided the first, and the judge both."""
    found = waiting_pairs(2, overlap=2)
    for pair in found:
        suggest(pair, "first")
    decisions.decide(
        assignment=assignments.claim_next_pair(reviewer("bob")).assignment, decision=Decision(verdict="second")
    )
    return found


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def seen_by(client: Client) -> set[int]:
    """Preferences that a user finds in lists, over REST and in exports, which must agree."""
    page = client.get("/preferences/").content.decode()
    listed = {pk for pk in Preference.objects.values_list("pk", flat=True) if f'/preferences/{pk}/"' in page}
    rest = {row["id"] for row in client.get("/api/v1/preferences/").json()["results"]}
    opened = {
        pk
        for pk in Preference.objects.values_list("pk", flat=True)
        if client.get(f"/preferences/{pk}/").status_code == 200
    }
    assert listed == rest == opened
    for address in ("/preferences/export/?format=jsonl", "/api/v1/preferences/export?format=jsonl"):
        answer = client.get(address)
        if answer["Content-Type"] == "application/zip":
            with zipfile.ZipFile(io.BytesIO(answer.getvalue())) as archive:
                exported = {json.loads(line)["id"] for line in archive.read("data.jsonl").splitlines()}
        else:
            exported = set()
        assert exported <= rest
    return rest


def of(pair: Pair) -> set[int]:
    return set(Preference.objects.filter(first=pair.first).values_list("pk", flat=True))


def test_verdicts_are_hidden_until_reviewer_decides(pairs: list[Pair]) -> None:
    first = pairs[0]
    ann = reviewer("ann")
    client = signed_in(ann)
    assert seen_by(client) == set()
    assert client.get("/api/v1/agreement/").json()["verdicts"] == 0
    decisions.decide(assignment=assignments.claim_next_pair(ann).assignment, decision=Decision(verdict="tie"))
    assert seen_by(client) == of(first)
    assert len(of(first)) == 3
    assignments.skip_pair(assignment=assignments.claim_next_pair(ann).assignment, reason="")
    assert seen_by(client) == of(first)  # a skip can be taken back


def test_response_page_hides_verdicts_and_other_model_of_undecided_pair(pairs: list[Pair]) -> None:
    first = pairs[0]
    ann = reviewer("ann")
    client = signed_in(ann)
    page = client.get(f"/review/responses/{first.first_id}/").content.decode()
    assert "is better" not in page
    assert "beta" not in page
    assert f'href="/review/{first.pk}/"' in page
    decisions.decide(assignment=assignments.claim_next_pair(ann).assignment, decision=Decision(verdict="tie"))
    page = client.get(f"/review/responses/{first.first_id}/").content.decode()
    assert "the other is better" in page
    assert "beta" in page


def test_hidden_preference_returns_404_with_reason(pairs: list[Pair]) -> None:
    pk = Preference.objects.filter(source="llm", first=pairs[0].first).get().pk
    answer = signed_in(reviewer("ann")).get(f"/preferences/{pk}/")
    assert answer.status_code == 404
    assert "once you have decided" in answer.content.decode()


def test_verdicts_are_visible_to_non_reviewers_and_superusers_without_assignment(pairs: list[Pair]) -> None:
    every = set(Preference.objects.values_list("pk", flat=True))
    assert seen_by(signed_in(User.objects.create_user("trainer"))) == every
    root = User.objects.create_superuser("root")
    assert seen_by(signed_in(root)) == every
    held = assignments.claim_next_pair(root).assignment
    assert seen_by(signed_in(root)) == every - of(held.pair)
    Preference.objects.update(first_verdict="")
    page = signed_in(root).get("/admin/preferences/preference/").content.decode()
    assert page.count('class="action-select"') in (0, len(every - of(held.pair)))


def test_verdicts_of_pairs_decided_by_others_are_visible(pairs: list[Pair]) -> None:
    first, _second = pairs
    decisions.decide(
        assignment=assignments.claim_next_pair(reviewer("cat")).assignment, decision=Decision(verdict="tie")
    )
    assert seen_by(signed_in(reviewer("ann"))) == of(first)


def test_keys_that_a_provider_adds_to_messages_are_not_shown(pairs: list[Pair]) -> None:
    details = [{"type": "reasoning.text", "format": "maker-of-alpha-v1"}]
    first = pairs[1].first
    first.messages = [*first.messages[:-1], {**first.messages[-1], "reasoning_details": details}]
    first.save(update_fields=["messages"])
    ann = signed_in(reviewer("ann"))
    shown = ann.get(f"/api/v1/pairs/{pairs[1].pk}/")
    assert shown.status_code == 200
    assert shown.json()["A"]["messages"][0]["content"] == "one"
    assert "maker-of-alpha" not in shown.content.decode()
    assert "maker-of-alpha" not in ann.get(f"/review/{pairs[1].pk}/").content.decode()


def test_ids_of_tool_calls_do_not_name_the_endpoint(pairs: list[Pair]) -> None:
    calls = [{"id": f"maker_{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in (7, 8)]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "1"} for call in reversed(calls)]
    first = pairs[1].first
    said = [{"role": "assistant", "content": None, "tool_calls": calls}, *results]
    first.messages = [first.messages[0], *said, first.messages[-1]]
    first.save(update_fields=["messages"])
    ann = signed_in(reviewer("ann"))
    shown = ann.get(f"/api/v1/pairs/{pairs[1].pk}/")
    messages = shown.json()["A"]["messages"]
    assert [call["id"] for call in messages[0]["tool_calls"]] == ["call_0", "call_1"]
    assert [message["tool_call_id"] for message in messages[1:3]] == ["call_1", "call_0"]
    assert "maker_" not in shown.content.decode()
    assert "maker_" not in ann.get(f"/review/{pairs[1].pk}/").content.decode()
