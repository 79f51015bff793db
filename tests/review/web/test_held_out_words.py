"""What a judge that saw the scoring results has written, on held-out environments."""

import json
from collections.abc import Iterable
from io import BytesIO
from typing import Any, cast
from zipfile import ZipFile

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.models import Environment
from preferences.evidence import evidence_of
from preferences.models import Issue, IssueCategory, Preference
from preferences.services import NewIssue
from review.models import Assignment, AttentionCheck, Pair
from review.queue import assignments
from runs.models import Run, RunEnvironment
from tests.factories import stored_version
from tests.members import member
from tests.review.pages import suggest, waiting_pairs

pytestmark = pytest.mark.django_db
QUOTED = "fifteen-target"  # what a reason of a score says about the expected answer


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Return a pair of a held-out environment that a judge has judged knowing the scoring results."""
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)
    (pair,) = waiting_pairs(1, outcome="ff", texts=("one", "two"))
    note = NewIssue(response=pair.first, category=IssueCategory.objects.get(slug="style"), note=f"Not {QUOTED}.")
    suggestion = suggest(pair, critique=f"Expected {QUOTED}.", issues=[note])
    rows = Preference.objects.filter(pk=suggestion.pk)
    rows.update(saw_evidence=True, orders=["first", "tie"], order_critiques=[f"A lacks {QUOTED}.", QUOTED])
    Environment.objects.update(held_out=True, owner=member(name="owner"))
    return Pair.objects.get(pk=pair.pk)


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def shown(client: Client, pair: Pair) -> list[str]:
    """Return the pages of the preference and of the pair, and both over REST."""
    return [
        client.get(f"/preferences/{pair.suggestion_id}/").text,
        client.get(f"/review/{pair.pk}/").text,
        json.dumps(client.get("/api/v1/preferences/?source=llm").json()),
        json.dumps(client.get(f"/api/v1/pairs/{pair.pk}/").json()),
    ]


def exported(client: Client, path: str, format: str) -> list[str]:
    """Return the lines of all files of an export."""
    answer = client.get(path, {"format": format})
    archive = ZipFile(BytesIO(b"".join(cast(Iterable[bytes], answer.streaming_content))))
    return [row for name in archive.namelist() for row in archive.read(name).decode().splitlines()]


def test_words_of_the_judge_are_for_those_who_may_see_reasons(pair: Pair) -> None:
    preference, _, listed, _ = shown(client_of(member()), pair)
    assert "its words are shown only to those who may see" in preference
    assert [order in preference for order in ("first response</th>", "second response</th>")] == [True, True]
    assert QUOTED not in preference + listed and f'"id": {pair.suggestion_id}' in listed
    owner = shown(client_of(User.objects.get(username="owner")), pair)
    assert QUOTED in owner[0] and QUOTED in owner[2]


def test_reviewers_see_the_verdict_of_the_suggestion_without_its_words(pair: Pair) -> None:
    client = client_of(member("Reviewer"))
    client.post(f"/review/{pair.pk}/take/")
    _, page, _, over_rest = shown(client, pair)
    assert QUOTED not in page + over_rest
    suggestion: dict[str, Any] = json.loads(over_rest)["suggestion"]
    assert (suggestion["verdict"], suggestion["critique"]) == ("A", "")
    assert [issue["note"] for issue in suggestion["issues"]] == [""]
    kept = {"verdict": "A", "kept": [Issue.objects.get().pk]}
    client.post(f"/api/v1/pairs/{pair.pk}/decision", kept, content_type="application/json")
    human = Preference.objects.get(source="human")
    assert human.issues.get().note  # stored for those who may read it
    for path in (f"/preferences/{human.pk}/", "/api/v1/preferences/"):
        assert QUOTED not in client.get(path).text


def test_attention_checks_have_no_words_of_the_judge_either(pair: Pair) -> None:
    client = client_of(member("Reviewer"))
    client.post(f"/review/{pair.pk}/take/")
    Pair.objects.update(kind=Pair.Kind.ONE_PASSES)
    AttentionCheck.objects.create(assignment=Assignment.objects.get(), wrong_verdict="second")
    _, page, _, over_rest = shown(client, pair)
    assert QUOTED not in page + over_rest
    assert json.loads(over_rest)["suggestion"]["verdict"] == "B"


def test_curators_review_with_the_words_of_the_judge(pair: Pair) -> None:
    client = client_of(member("Curator"))
    client.post(f"/review/{pair.pk}/take/")
    assert QUOTED in client.get(f"/review/{pair.pk}/").text
    assert QUOTED in client.get(f"/api/v1/pairs/{pair.pk}/").text


def test_words_of_a_judge_that_saw_no_scores_and_of_open_environments_are_shown(pair: Pair) -> None:
    Preference.objects.filter(pk=pair.suggestion_id).update(saw_evidence=False)
    assert QUOTED in shown(client_of(member()), pair)[0]
    Preference.objects.filter(pk=pair.suggestion_id).update(saw_evidence=True)
    Environment.objects.update(held_out=False)
    assert QUOTED in shown(client_of(member(name="other")), pair)[0]


@pytest.mark.parametrize("format", ["jsonl", "trl"])
def test_exports_of_partly_held_out_environments_have_the_words_only_for_those_who_may_see_reasons(
    pair: Pair, format: str
) -> None:
    Environment.objects.update(held_out=False, partly_held_out=True)
    evidence = evidence_of(pair.first, pair.second)
    evidence["first"]["rules"] = [{"rule": "r", "type": "t", "value": 0.0, "reason": QUOTED, "execution": None}]
    Preference.objects.filter(pk=pair.suggestion_id).update(verdict="first", evidence=evidence)
    Run.objects.update(tracking={"parent": f"of-{QUOTED}"})
    for user, open_to_user in ((member(), False), (User.objects.get(username="owner"), True)):
        for path in ("/preferences/export/", "/api/v1/preferences/export"):
            rows = exported(client_of(user), path, format)
            assert any(f'"id": {pair.suggestion_id},' in row for row in rows)
            assert any(QUOTED in row for row in rows) is open_to_user
            assert any("Expected" in row for row in rows) is open_to_user


def test_id_in_mlflow_is_withheld_if_any_environment_of_the_run_is_held_out(pair: Pair) -> None:
    other, owner = stored_version("elsewhere", held_out=True), User.objects.get(username="owner")
    RunEnvironment.objects.create(run=pair.run, version=other, position=1, case_count=1)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED, owner=owner)
    Environment.objects.filter(pk=pair.case.version.environment_id).update(held_out=False)
    Preference.objects.filter(pk=pair.suggestion_id).update(verdict="first")
    Run.objects.update(tracking={"parent": "id-in-mlflow", "experiment_id": "1", "uri": "https://mlflow.example"})
    for user, open_to_user in ((member(), False), (owner, True)):
        client = client_of(user)
        texts = [client.get(f"/preferences/{pair.suggestion_id}/").text, client.get("/api/v1/preferences/").text]
        texts.append("".join(exported(client, "/api/v1/preferences/export", "jsonl")))
        assert ["id-in-mlflow" in text for text in texts] == [open_to_user] * 3, user
