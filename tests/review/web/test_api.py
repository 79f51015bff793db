"""Tests of the review REST API: pairs without model names, decisions, and preferences with their exports."""

import io
import zipfile
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from preferences.models import Issue, Preference
from review.queue import assignments
from tests.review.pages import reviewer, suggest, waiting_pairs

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(monkeypatch: Any) -> APIClient:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)
    client = APIClient()
    client.force_authenticate(reviewer())
    return client


def test_next_pair_is_claimed_and_decided(ann: APIClient) -> None:
    (pair,) = waiting_pairs(1, texts=("it is 🏙️ here", "two"))
    suggest(pair, "first")
    shown = ann.get("/api/v1/pairs/next").json()
    assert shown["pair"] == pair.pk
    assert "alpha" not in str(shown)
    assert shown["suggestion"]["verdict"] == "A"
    (message,) = shown["A"]["messages"]
    mark = {"side": "A", "category": "style", "message": message["index"], "start": 6, "end": 8}
    body = {"verdict": "B", "issues": [{**mark, "text_hash": message["text_hash"]}]}
    answer = ann.post(f"/api/v1/pairs/{pair.pk}/decision", body, format="json")
    stored = Preference.objects.get(pk=answer.json()["preference"])
    assert (stored.verdict, stored.suggestion_taken) == ("second", False)
    assert Issue.objects.get().quote == "🏙️"
    assert ann.get("/api/v1/pairs/next").status_code == 204


def test_invalid_decision_reports_error_path(ann: APIClient) -> None:
    (pair,) = waiting_pairs(1, outcome="pf")
    answer = ann.post(f"/api/v1/pairs/{pair.pk}/decision", {"verdict": "B"}, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "defect")
    assert ann.post(f"/api/v1/pairs/{pair.pk}/decision", {"verdict": "C"}, format="json").status_code == 400


def test_decision_repeated_is_stored_once_and_another_one_conflicts(ann: APIClient) -> None:
    (pair,) = waiting_pairs(1)
    address = f"/api/v1/pairs/{pair.pk}/decision"
    decision = {"verdict": "B", "critique": "B is shorter."}
    answers = [ann.post(address, decision, format="json") for _ in range(2)]
    assert [answer.json() for answer in answers] == [{"preference": Preference.objects.get().pk}] * 2
    assert ann.post(address, {**decision, "verdict": "A"}, format="json").status_code == 409


def test_decision_sent_twice_at_the_same_moment_is_stored_once(ann: APIClient, monkeypatch: Any) -> None:
    (pair,) = waiting_pairs(1)
    address, decision = f"/api/v1/pairs/{pair.pk}/decision", {"verdict": "B"}
    others: list[Any] = []

    def be_overtaken() -> int:
        monkeypatch.undo()
        others.append(ann.post(address, decision, format="json"))
        return 0

    # Both requests find the pair free; then one claims and decides it before the other.
    monkeypatch.setattr(assignments, "release_lapsed_assignments", be_overtaken)
    answer = ann.post(address, decision, format="json")
    assert [other.status_code for other in others] == [answer.status_code] == [200], answer.json()
    assert answer.json() == others[0].json() == {"preference": Preference.objects.get().pk}


def test_unknown_suggested_issues_are_not_kept(ann: APIClient) -> None:
    (pair,) = waiting_pairs(1)
    suggest(pair, "first")
    decision = {"verdict": "A", "kept": [7, 10**30]}
    assert ann.post(f"/api/v1/pairs/{pair.pk}/decision", decision, format="json").status_code == 200
    assert not Issue.objects.exists()


def test_reviewing_requires_permission_and_free_slot(ann: APIClient) -> None:
    (pair,) = waiting_pairs(1)
    ann.get("/api/v1/pairs/next")
    other = APIClient()
    other.force_authenticate(reviewer("bob"))
    assert other.get(f"/api/v1/pairs/{pair.pk}/").status_code == 409
    other.force_authenticate(User.objects.create_user("visitor"))
    assert other.get("/api/v1/pairs/next").status_code == 403


def test_preferences_are_listed_filtered_and_exported(ann: APIClient) -> None:
    (pair,) = waiting_pairs(1, overlap=0)
    suggest(pair, "first")
    rows = ann.get("/api/v1/preferences/").json()["results"]
    assert [(row["source"], row["verdict"], row["judge"]) for row in rows] == [("llm", "first", "j")]
    assert ann.get("/api/v1/preferences/?source=human").json()["results"] == []
    assert ann.get("/api/v1/preferences/?source=nobody").status_code == 400
    packed = ann.get("/api/v1/preferences/export?format=trl")
    with zipfile.ZipFile(io.BytesIO(packed.getvalue())) as archive:
        assert b'"chosen": "one"' in archive.read("data.jsonl")
    assert ann.get("/api/v1/preferences/export?format=xml").status_code == 400
    assert "judge_people" in ann.get("/api/v1/agreement/").json()["figures"]


@pytest.mark.parametrize("drawn", [0.0, 0.99])
@pytest.mark.parametrize(("verdict", "acceptable"), [("first", True), ("second", False)])
def test_suggestion_is_acceptable_by_the_test_results_whichever_side_is_a(
    ann: APIClient, monkeypatch: Any, drawn: float, verdict: str, acceptable: bool
) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: drawn if what == "side" else 0.99)
    (pair,) = waiting_pairs(1, outcome="pf")
    suggest(pair, verdict)
    shown = ann.get("/api/v1/pairs/next").json()
    assert shown["A"]["status"] == ("failed" if drawn < 0.5 else "passed")
    assert shown["suggestion"]["acceptable"] is acceptable
    accepted = {"verdict": shown["suggestion"]["verdict"]}
    answer = ann.post(f"/api/v1/pairs/{pair.pk}/decision", accepted, format="json")
    assert answer.status_code == (200 if acceptable else 400)
