"""Tests that references to A and B in texts refer to the same responses in every order, page and export."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from hub.models import CaseDefect
from preferences.exporters import export_preferences
from preferences.models import IssueCategory, Preference
from preferences.selectors import current_preferences
from preferences.services import NewIssue
from preferences.tracking import PreferenceAdditions
from review import decisions
from review.decisions import Decision
from review.issues import MarkedIssue
from review.models import Assignment
from review.queue import assignments
from tests.review.pages import reviewer, suggest, waiting_pairs

pytestmark = pytest.mark.django_db

STORED = "⟦first⟧ is better because ⟦second⟧'s loop never ends."


@pytest.fixture(autouse=True)
def sides_exchanged(monkeypatch: Any) -> None:
    """Every reviewer sees the pair's second response as A."""
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.0 if what == "side" else 0.99)


def test_suggestion_is_shown_with_letters_of_reader() -> None:
    (pair,) = waiting_pairs(1)
    note = NewIssue(response=pair.second, category=IssueCategory.objects.get(slug="style"), note="⟦second⟧ loops.")
    suggest(pair, "first", critique=STORED, issues=[note])
    client, api, ann = Client(), APIClient(), reviewer()
    client.force_login(ann)
    api.force_authenticate(ann)
    client.get("/review/")
    page = client.get(f"/review/{pair.pk}/").content.decode()
    assert "B is better because A&#x27;s loop never ends." in page
    assert "A loops." in page
    shown = api.get("/api/v1/pairs/next").json()["suggestion"]
    assert shown["critique"] == "B is better because A's loop never ends."
    assert shown["issues"][0]["note"] == "A loops."
    assert shown["verdict"] == "B"


def decided(verdict: str = "first", **fields: Any) -> Preference:
    """A decision of Ann's, who has seen the second response as A, in her letters."""
    mine = assignments.claim_next_pair(reviewer()).assignment
    mark = MarkedIssue(side="second", category="style", note="Response A loops.")
    stored = decisions.decide(
        assignment=mine,
        decision=Decision(
            verdict=verdict, fields={"critique": "B wins, A's loop never ends."}, issues=[mark], **fields
        ),
    )
    assert stored is not None
    return stored


def test_review_texts_are_stored_with_tokens_and_reopened_with_letters() -> None:
    waiting_pairs(1)
    stored = decided()
    assert stored.critique == "⟦first⟧ wins, ⟦second⟧'s loop never ends."
    assert stored.issues.get().note == "Response ⟦second⟧ loops."
    draft = decisions.undo_last(user=User.objects.get(username="ann")).draft
    assert draft["critique"] == "B wins, A's loop never ends."
    assert json.loads(draft["issues"])[0]["note"] == "Response A loops."


def test_pages_and_exports_name_the_responses(tmp_path: Path, client: Client) -> None:
    waiting_pairs(1)
    stored = decided()
    client.force_login(User.objects.create_superuser("root"))
    page = client.get(f"/preferences/{stored.pk}/").content.decode()
    assert "The first response wins, the second response&#x27;s loop never ends." in page
    assert "The second response loops." in page
    admin = client.get(f"/admin/preferences/preference/{stored.pk}/change/").content.decode()
    assert "The first response wins" in admin
    (row,) = client.get("/api/v1/preferences/").json()["results"]
    assert row["critique"] == "The chosen response wins, the rejected response's loop never ends."
    assert row["issues"][0]["note"] == "The rejected response loops."
    packed = client.get("/preferences/export/?format=jsonl").getvalue()
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert json.loads(archive.read("data.jsonl"))["critique"] == row["critique"]
    for format, data in (("jsonl", "data.jsonl"), ("trl", "provenance.jsonl")):
        export_preferences(current_preferences(), tmp_path / format, format=format)
        line = json.loads((tmp_path / format / data).read_text())
        assert (line["critique"], line["issues"][0]["note"]) == (row["critique"], "The rejected response loops.")


def test_exports_of_ties_name_first_and_second_response(client: Client) -> None:
    waiting_pairs(1)
    decided("tie")
    client.force_login(User.objects.create_superuser("root"))
    (row,) = client.get("/api/v1/preferences/").json()["results"]
    assert row["critique"] == "The first response wins, the second response's loop never ends."


def test_mlflow_names_the_responses() -> None:
    (pair,) = waiting_pairs(1)
    decided()
    (row,) = PreferenceAdditions().addition(pair.run).tables["judgments"]
    assert row["critique"] == "The first response wins, the second response's loop never ends."
    assert row["issues"] == ["style (major), The second response loops."]
    found = PreferenceAdditions().assessments(pair.run)
    assert found[pair.first_id][0].rationale == "This response wins, the other response's loop never ends."
    assert found[pair.second_id][0].rationale == (
        "The other response wins, this response's loop never ends.\nstyle (major), This response loops."
    )


def test_defect_and_skip_reason_name_responses_by_id() -> None:
    first, second = waiting_pairs(2, outcome="fp")
    decided(defect="The test is wrong: B says the same as A.")
    assert CaseDefect.objects.get().description == (
        f"The test is wrong: response {first.first_id} says the same as response {first.second_id}."
    )
    following = assignments.claim_next_pair(User.objects.get(username="ann")).assignment
    assignments.skip_pair(assignment=following, reason="A is not in English.")
    assert Assignment.objects.get(pair=second).skip_reason == f"Response {second.second_id} is not in English."
