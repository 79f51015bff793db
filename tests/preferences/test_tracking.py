"""Tests of preferences in an MLflow store: metrics, table, assessments, and repeated logging."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from hub.models import Case
from preferences.evidence import evidence_of
from preferences.models import IssueCategory, Preference
from preferences.services import JudgeIdentity, NewIssue, NewPreference, Reaction, record_preference
from preferences.spans import find_quote
from runs.models import Response, Run
from runs.tasks import sync_tracking
from runs.tracking.client import Tracker
from runs.tracking.config import tracking_config
from runs.tracking.sync import outdated_runs, runs_to_log
from tests.factories import stored_response, stored_run, stored_score, stored_version
from tests.tracking import Reader, tracked

pytestmark = pytest.mark.django_db


def played(name: str, outcomes: Sequence[tuple[str, str]] = (("failed", "failed"),), **tracking: Any) -> Run:
    """A run of alpha and beta, with a case for each of *outcomes*, whose failures are traced."""
    config = {"attempts": 1, "tracking": {"experiment": name, "traces": "failures", **tracking}}
    run = stored_run(stored_version(cases=len(outcomes)), ["alpha", "beta"], name=name, config=config)
    for case, statuses in zip(Case.objects.order_by("position"), outcomes, strict=True):
        for model, status in zip(("alpha", "beta"), statuses, strict=True):
            stored_response(run, case, status, model=model)
    return run


def pair_of(run: Run, position: int = 0) -> tuple[Response, Response]:
    first, second = Response.objects.filter(run_environment__run=run, case__position=position).order_by("run_model")
    return first, second


def judged(
    pair: tuple[Response, Response],
    verdict: str,
    by: str = "",
    *,
    suggestion: Preference | None = None,
    supersedes: Preference | None = None,
    **fields: Any,
) -> Preference:
    """A verdict of the judge (`by="judge"`), of execution (by default), or of the person of that name."""
    judge = JudgeIdentity(label="judge", fingerprint="f", prompt_version="pair-1") if by == "judge" else None
    person = User.objects.get_or_create(username=by)[0] if by not in ("judge", "") else None
    taken = None if suggestion is None else verdict == suggestion.verdict
    return record_preference(
        NewPreference(
            first=pair[0],
            second=pair[1],
            supersedes=supersedes,
            verdict=verdict,
            evidence=evidence_of(*pair),
            judge=judge,
            reviewer=person,
            reaction=Reaction(suggestion=suggestion, taken=taken),
            **fields,
        )
    )


def logged(run: Run, tracker: Tracker) -> dict[str, Any]:
    tracking = tracked(run, tracker, tracking_config(run))
    assert tracking["state"] == "logged", tracking
    return tracking


def of_model(found: dict[str, Any], label: str) -> list[dict[str, Any]]:
    """The assessments on the trace of the one response of *label*, in an order of their own."""
    (trace,) = [trace for trace in found["traces"] if trace["tags"]["llmeval.model"] == label]
    return sorted(trace["assessments"], key=lambda item: (item["type"], item["by"]))


@pytest.mark.exhaustive
def test_preferences_are_logged_as_metrics_of_run_and_models(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played("metrics", [("failed", "failed"), ("passed", "failed"), ("passed", "passed")])
    suggestion = judged(pair_of(run), "first", "judge", confidence=0.9)
    judged(pair_of(run), "second", "ann", suggestion=suggestion)
    judged(pair_of(run, 1), "first", "judge", confidence=0.7)
    judged(pair_of(run, 1), "first")
    judged(pair_of(run, 2), "tie", "ann")
    judged(pair_of(run, 2), "both_bad", "bob")
    tracking = logged(run, tracker)
    found = {item["id"]: item["metrics"] for item in in_mlflow("metrics")["runs"]}
    parent = found[tracking["parent"]]
    assert {name: n for name, n in parent.items() if name.startswith("judgments.")} == {
        "judgments.human": 3, "judgments.llm": 2, "judgments.execution": 1
    }  # fmt: skip
    assert (parent["agreement.judge_people"], parent["agreement.judge_people.n"]) == (0, 1)
    assert (parent["agreement.judge_execution"], parent["agreement.judge_execution.n"]) == (1, 1)
    assert parent["agreement.calibration_error"] == pytest.approx((0.9 + 0.3) / 2)
    assert "agreement.length" not in parent  # all answers are equally long, so that it is undefined
    alpha, beta = (found[tracking["cells"][f"sums@1.0.0 / {model}"]] for model in ("alpha", "beta"))
    assert {name: n for name, n in alpha.items() if name.startswith("judged.") and n} == {
        "judged.llm.won": 2, "judged.human.lost": 1, "judged.human.tied": 1, "judged.human.bad": 1,
        "judged.execution.won": 1,
    }  # fmt: skip
    assert (beta["judged.llm.lost"], beta["judged.llm.won"], beta["judged.human.won"]) == (2, 0, 1)


@pytest.mark.exhaustive
def test_preferences_are_logged_as_mlflow_table(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played("table")
    category = IssueCategory.objects.get(slug="wrong-result")
    pair = pair_of(run)
    span = find_quote(pair[1].messages, "answer")
    issue = NewIssue(response=pair[1], category=category, note="It is 2.", span=span)
    suggestion = judged(pair, "first", "judge", confidence=0.75, fields={"critique": "A is right."}, issues=[issue])
    own = judged(pair, "second", "ann", suggestion=suggestion, seconds=12.5)
    logged(run, tracker)
    first, second = in_mlflow("table")["judgments"]
    assert (first["preference"], first["source"], first["by"]) == (suggestion.pk, "llm", "judge")
    assert (first["verdict"], first["preferred"], first["confidence"]) == ("first", "alpha", 0.75)
    assert (first["critique"], first["issues"]) == ("A is right.", ["wrong-result (major): 'answer', It is 2."])
    assert (second["preference"], second["source"], second["by"]) == (own.pk, "human", "ann")
    assert (second["preferred"], second["suggestion"], second["suggestion_taken"]) == ("beta", suggestion.pk, False)
    assert (second["environment"], second["case"], second["seconds"]) == ("sums@1.0.0", "c0", 12.5)
    assert [second["first_response"], second["second_response"]] == [response.pk for response in pair]


def test_assessments_have_source_type(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played("sources", [("passed", "failed")])
    pair = pair_of(run)
    stored_score(pair[1], "sum", 0.0, reason="3 is not 2.")
    stored_score(pair[1], "tone", 0.5, type="judge", reason="It is curt.", position=1)
    judged(pair, "first", "judge", confidence=0.75, fields={"critique": "B is wrong."})
    judged(pair, "first")
    judged(pair, "first", "ann")
    logged(run, tracker)
    (trace,) = in_mlflow("sources")["traces"]  # of the failure alone
    said = {(item["type"], item["by"], item["name"]): item for item in trace["assessments"]}
    assert {place: item["value"] for place, item in said.items()} == {
        ("CODE", "exact_match", "sum"): 0.0,
        ("LLM_JUDGE", "judge", "tone"): 0.5,
        ("LLM_JUDGE", "judge", "against alpha"): "worse",
        ("CODE", "execution", "against alpha"): "worse",
        ("HUMAN", "ann", "against alpha"): "worse",
    }
    judge = said["LLM_JUDGE", "judge", "against alpha"]
    assert judge["rationale"] == "B is wrong."
    assert judge["metadata"]["llmeval.confidence"] == "0.75"
    assert judge["metadata"]["llmeval.other_response"] == str(pair[0].pk)


def test_override_replaces_judge_assessment(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played("override")
    suggestion = judged(pair_of(run), "first", "judge")
    judged(pair_of(run), "second", "ann", suggestion=suggestion)
    logged(run, tracker)
    for model, before, after in (("alpha", "better", "worse"), ("beta", "worse", "better")):
        person, judge = of_model(in_mlflow("override"), model)
        assert (person["type"], person["value"], person["overrides"], person["valid"]) == (
            "HUMAN",
            after,
            "judge",
            True,
        )
        assert (judge["type"], judge["value"], judge["overrides"], judge["valid"]) == (
            "LLM_JUDGE", before, None, False
        )  # fmt: skip


def test_overridden_suggestion_stays_after_being_superseded(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played("rejudged")
    suggestion = judged(pair_of(run), "first", "judge")
    judged(pair_of(run), "second", "ann", suggestion=suggestion)
    judged(pair_of(run), "tie", "judge", supersedes=suggestion)
    logged(run, tracker)
    said = of_model(in_mlflow("rejudged"), "alpha")
    assert sorted((item["by"], item["value"], item["overrides"], item["valid"]) for item in said) == [
        ("ann", "worse", "judge", True), ("judge", "better", None, False), ("judge", "tie", None, True)
    ]  # fmt: skip


def test_accepted_suggestion_stays_valid_with_human_assessment(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played("accepted")
    suggestion = judged(pair_of(run), "first", "judge")
    judged(pair_of(run), "first", "ann", suggestion=suggestion)
    logged(run, tracker)
    said = of_model(in_mlflow("accepted"), "alpha")
    assert [(item["by"], item["overrides"], item["valid"]) for item in said] == [
        ("ann", None, True), ("judge", None, True)
    ]  # fmt: skip


def test_second_sync_adds_no_duplicates(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played("twice", [("failed", "failed"), ("passed", "failed")])
    suggestion = judged(pair_of(run), "first", "judge")
    judged(pair_of(run), "second", "ann", suggestion=suggestion)
    judged(pair_of(run, 1), "first")
    counts = logged(run, tracker)
    before = in_mlflow("twice")
    assert (counts["traces"], counts["assessments"]) == (3, 5)
    assert {key: logged(run, tracker)[key] for key in ("traces", "assessments")} == {"traces": 3, "assessments": 5}
    after = in_mlflow("twice")
    assert after["traces"] == before["traces"]
    assert after["judgments"] == before["judgments"]
    assert len(after["runs"]) == 3


def test_superseded_assessment_is_removed_and_judge_assessment_restored(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played("superseded")
    suggestion = judged(pair_of(run), "first", "judge")
    old = judged(pair_of(run), "second", "ann", suggestion=suggestion)
    logged(run, tracker)
    new = judged(pair_of(run), "first", "ann", suggestion=suggestion, supersedes=old)
    logged(run, tracker)
    found = in_mlflow("superseded")
    said = of_model(found, "alpha")
    assert [(item["by"], item["value"], item["valid"]) for item in said] == [
        ("ann", "better", True), ("judge", "better", True)
    ]  # fmt: skip
    assert [row["preference"] for row in found["judgments"]] == [suggestion.pk, new.pk]
    metrics = next(item["metrics"] for item in found["runs"] if item["name"].endswith("alpha"))
    assert (metrics["judged.human.won"], metrics["judged.human.lost"]) == (1, 0)


def test_override_stays_after_another_is_undone(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played("two overrides")
    suggestion = judged(pair_of(run), "first", "judge")
    judged(pair_of(run), "second", "ann", suggestion=suggestion)
    old = judged(pair_of(run), "tie", "bob", suggestion=suggestion)
    logged(run, tracker)
    judged(pair_of(run), "first", "bob", suggestion=suggestion, supersedes=old)
    logged(run, tracker)
    said = of_model(in_mlflow("two overrides"), "alpha")
    assert [(item["by"], item["overrides"], item["valid"]) for item in said] == [
        ("ann", "judge", True), ("bob", None, True), ("judge", None, False)
    ]  # fmt: skip


def test_assessments_added_in_mlflow_are_kept(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played("by hand")
    old = judged(pair_of(run), "second", "ann")
    logged(run, tracker)
    trace = in_mlflow("by hand")["traces"][0]["id"]
    in_mlflow(f"by hand\t{trace}")
    judged(pair_of(run), "tie", "ann", supersedes=old)
    logged(run, tracker)
    (trace,) = [item for item in in_mlflow("by hand")["traces"] if item["id"] == trace]
    assert {(item["by"], item["value"]) for item in trace["assessments"]} == {("ann", "tie"), ("visitor", True)}


def test_run_with_new_preferences_is_logged_again(store: str, tracker: Tracker, in_mlflow: Reader, capsys: Any) -> None:
    run = played("later")
    logged(run, tracker)
    assert in_mlflow("later")["judgments"] == []
    assert outdated_runs() == []
    judged(pair_of(run), "second", "ann")
    assert outdated_runs() == [run]
    call_command("sync_tracking")
    assert f"Run {run.pk} is logged as" in capsys.readouterr().out
    found = in_mlflow("later")
    assert [row["by"] for row in found["judgments"]] == ["ann"]
    assert [item["by"] for item in of_model(found, "beta")] == ["ann"]
    call_command("sync_tracking")
    assert capsys.readouterr().out == "No run is pending.\n"


@pytest.mark.exhaustive
def test_worker_logs_new_preferences_once_mlflow_is_up_again(
    store: str, settings: Any, tracker: Tracker, in_mlflow: Reader, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    run = played("swept")
    logged(run, tracker)
    judged(pair_of(run), "second", "ann")
    late = stored_run(pair_of(run)[0].case.version, name="late", tracking_state="pending", config={"attempts": 1})
    settings.MLFLOW_TRACKING_URI = "http://127.0.0.1:9"
    sync_tracking()
    messages = [record.getMessage() for record in caplog.records if record.name == "runs.tasks"]
    assert [message.partition(":")[0] for message in messages] == [
        f"run {late.pk} is not logged in MLflow yet",
        f"run {run.pk} is not logged in MLflow yet",
    ]
    settings.MLFLOW_TRACKING_URI = store
    assert set(runs_to_log()) == {late, run}
    sync_tracking()
    assert runs_to_log() == []
    assert [row["by"] for row in in_mlflow("swept")["judgments"]] == ["ann"]
    monkeypatch.setattr(Tracker, "start", None)  # with nothing to log, no process is started
    sync_tracking()


@pytest.mark.exhaustive
def test_preferences_stay_pending_while_mlflow_is_down(
    store: str, settings: Any, tracker: Tracker, in_mlflow: Reader, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    run = played("down")
    judged(pair_of(run), "first", "judge")
    settings.MLFLOW_TRACKING_URI = "http://127.0.0.1:9"
    assert tracked(run, start(), tracking_config(run))["state"] == "pending"
    run.refresh_from_db()
    assert run.status == Run.Status.COMPLETED
    settings.MLFLOW_TRACKING_URI = store
    call_command("sync_tracking")
    assert [row["by"] for row in in_mlflow("down")["judgments"]] == ["judge"]


def test_run_without_preferences_has_no_table_or_metrics(tracker: Tracker, in_mlflow: Reader) -> None:
    tracking = logged(played("unjudged"), tracker)
    found = in_mlflow("unjudged")
    parent = next(item for item in found["runs"] if item["id"] == tracking["parent"])
    assert "judgments.json" not in parent["artifacts"]
    assert not [name for name in parent["metrics"] if name.startswith(("judgments", "agreement"))]


def test_full_artifact_disk_leaves_run_pending(
    tracker: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = played("no room")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    tracking = tracked(run, tracker, tracking_config(run))
    assert tracking["state"] == "pending"
    assert "No such file or directory" in tracking["error"]
