"""Tests of what is exported and shown of preferences on a case with an open, accepted or rejected defect report."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.models import CaseDefect, Environment
from hub.services import resolve_defect
from preferences.exporters import FORMATS, ExportError, export_preferences
from preferences.insight.agreement import compute_agreement
from preferences.insight.ranking import compute_rankings
from preferences.models import Preference
from preferences.selectors import current_preferences, filter_preferences
from tests.factories import accepted_defect
from tests.preferences.exporters.test_exports import exported, record, responses

pytestmark = pytest.mark.django_db


@pytest.fixture
def disputed() -> CaseDefect:
    """The first answer passes, and Ann prefers the second, with an open claim that the tests are wrong."""
    first, second = responses("passing", "failing", statuses="pf")
    ann = User.objects.create_user("ann")
    defect = CaseDefect.objects.create(case=first.case, reported_by=ann, description="The test is wrong.")
    record(first, second, "first", by="execution")
    record(first, second, "second", by="ann", disputes_tests=True, defect=defect)
    Environment.objects.update(visibility="published")
    return defect


def settle(defect: CaseDefect, *, accepted: bool) -> None:
    resolve_defect(defect=defect, accepted=accepted, resolution="", user=User.objects.get(username="ann"))


def said(folder: Path, format: str) -> str:
    """All that an export writes, texts of both sides in the order of their worth."""
    written = export_preferences(current_preferences(), folder / format, format=format)
    lines = (folder / format / "provenance.jsonl").read_text().splitlines()
    assert written.written == len(lines) > 0
    return " ".join(f"{line['source']}:{line['verdict']}" for line in map(json.loads, lines))


@pytest.mark.parametrize("format", FORMATS)
def test_rejected_defect_exports_verdict_of_tests(tmp_path: Path, disputed: CaseDefect, format: str) -> None:
    settle(disputed, accepted=False)
    assert set(said(tmp_path, format).split()) == {"execution:first"}


@pytest.mark.parametrize("format", FORMATS)
def test_accepted_defect_exports_verdict_of_reviewer(tmp_path: Path, disputed: CaseDefect, format: str) -> None:
    settle(disputed, accepted=True)
    assert set(said(tmp_path, format).split()) == {"human:second"}


@pytest.mark.parametrize("format", FORMATS)
def test_open_defect_exports_neither_verdict(tmp_path: Path, disputed: CaseDefect, format: str) -> None:
    with pytest.raises(ExportError, match="open defect report"):
        export_preferences(current_preferences(), tmp_path / "out", format=format)


@pytest.mark.parametrize("filters", [{"source": "execution"}, {"verdict": "first"}])
def test_open_defect_applies_if_filters_leave_out_the_report(
    tmp_path: Path, disputed: CaseDefect, filters: dict[str, Any]
) -> None:
    with pytest.raises(ExportError, match="open defect report"):
        export_preferences(current_preferences(), tmp_path / "out", format="trl", filters=filters)


def test_accepted_defect_leaves_out_execution_verdicts_of_all_pairs_of_case(tmp_path: Path) -> None:
    first, second = responses("passing", "failing", statuses="pf")
    record(first, second, "first", by="execution")
    defect = CaseDefect.objects.create(case=first.case, description="Reported on the site.")
    assert [row["chosen"] for row in exported(tmp_path)[0]] == ["passing"]
    settle_by = User.objects.create_user("curator")
    resolve_defect(defect=defect, accepted=True, resolution="", user=settle_by)
    with pytest.raises(ExportError, match="found wrong"):
        exported(tmp_path)


def test_verdict_of_judge_that_saw_wrong_tests_is_not_exported(tmp_path: Path) -> None:
    first, second = responses("one", "two")
    record(first, second, "first", by="judge")
    other, another = responses("three", "four")
    seen = record(other, another, "first", by="judge")
    Preference.objects.filter(pk=seen.pk).update(saw_evidence=True)
    for case in (first.case, other.case):
        CaseDefect.objects.create(case=case, description="-", status=CaseDefect.Status.ACCEPTED)
    rows, report = exported(tmp_path)
    assert [row["chosen"] for row in rows] == ["one"]
    assert report["left_out"] == {"rests on tests that were found wrong": 1}


def test_attention_check_on_wrong_tests_does_not_count(tmp_path: Path) -> None:
    for number in range(3):
        first, second = responses(f"a{number}", f"b{number}", statuses="pf")
        defect = accepted_defect(first.case, hours_ago=1)
        record(first, second, "second", by="ann", disputes_tests=True, defect=defect, check_result="failed")
    rows, _ = exported(tmp_path)
    assert [row["chosen"] for row in rows] == ["b0", "b1", "b2"]
    assert [(row.checks, row.checks_failed) for row in compute_agreement(current_preferences()).reviewers] == [(0, 0)]
    assert [
        [model.wins for model in ranking.models] for ranking in compute_rankings(current_preferences()).values()
    ] == [[1.0, 0.0]] * 3


def test_rest_and_pages_show_defect_status(disputed: CaseDefect, client: Client) -> None:
    client.force_login(User.objects.create_user("visitor"))
    human = Preference.objects.get(source="human")
    for accepted, state in ((None, "open"), (True, "accepted")):
        if accepted is not None:
            settle(disputed, accepted=accepted)
        rows = {row["source"]: row for row in client.get("/api/v1/preferences/").json()["results"]}
        assert rows["human"]["defect"] == {"id": disputed.pk, "status": state}
        assert rows["execution"]["defect"] is None
        assert {row["tests_found_wrong"] for row in rows.values()} == {bool(accepted)}
        assert state in client.get(f"/preferences/{human.pk}/").content.decode()
    execution = Preference.objects.get(source="execution")
    assert "A curator confirmed that the case is wrong" in client.get(f"/preferences/{execution.pk}/").content.decode()


def test_rest_export_depends_on_defect_status(disputed: CaseDefect, client: Client) -> None:
    client.force_login(User.objects.create_user("visitor"))
    settle(disputed, accepted=False)
    packed = client.get("/api/v1/preferences/export?format=trl").getvalue()
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert json.loads(archive.read("data.jsonl"))["chosen"] == "passing"


@pytest.mark.parametrize(("accepted", "winner"), [(True, "m1"), (False, "m0")])
def test_figures_depend_on_defect_status(disputed: CaseDefect, accepted: bool, winner: str) -> None:
    settle(disputed, accepted=accepted)
    figures: dict[str, Any] = {name: figure for name, _, figure in compute_agreement(current_preferences()).figures}
    assert figures["people_execution"].n == (0 if accepted else 1)
    assert next(iter(compute_rankings(current_preferences()).values())).models[0].name == winner


def test_ranking_leaves_out_pairs_with_an_open_report(disputed: CaseDefect) -> None:
    assert compute_rankings(current_preferences()) == {}
    assert compute_rankings(filter_preferences(current_preferences(), source="execution")) == {}


def test_ranking_leaves_out_verdict_of_judge_that_saw_wrong_tests() -> None:
    first, second = responses("one", "two")
    seen = record(first, second, "first", by="judge")
    Preference.objects.filter(pk=seen.pk).update(saw_evidence=True)
    assert len(compute_rankings(current_preferences())) == 1
    accepted_defect(first.case, hours_ago=1)
    assert compute_rankings(current_preferences()) == {}
