"""Stored results: the rows of a run that has ended equal a fresh aggregation of its responses."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hub.models import Case
from runs.config.parsing import read_config_text
from runs.config.resolve import source_for_command
from runs.execution.runner import execute_run
from runs.missing import count_missing
from runs.models import Response, Run, RunResult
from runs.results import stored
from runs.results.aggregate import aggregate_run
from runs.results.case_results import CaseResults, aggregate_cases
from runs.results.comparison.pair import compare
from runs.results.history import (
    latest_results,
    leaderboard,
    model_results,
    same_cases,
    store_environment_results,
    versions_of_model,
)
from runs.results.outcomes import outcome_of
from runs.results.stored import count_responses, get_cases, get_results, result_of
from runs.services import cancel_run, config_of, create_run, fail_run, interrupt_run, resume_run
from runs.web.progress import get_missing, get_progress
from runs.web.queries import list_environments, list_responses
from tests.factories import accepted_defect, stored_outcomes, stored_response, stored_run, stored_version
from tests.listeners import SilentListener
from tests.runs.config.resolution import find_environments

pytestmark = pytest.mark.django_db(transaction=True)

MANIFEST = """\
spec: 1
slug: capitals
version: 1.0.0
title: Capitals
summary: Name the capital.
category: domain-knowledge
dataset: {path: cases.jsonl, fields: {input: "Capital of {{ country }}?", target: capital}}
scoring: {rules: [{type: exact_match}]}
"""
CAPITALS = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima", "Cuba": "Havana"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bundle = tmp_path / "capitals"
    bundle.mkdir()
    (bundle / "environment.yaml").write_text(MANIFEST)
    rows = [{"id": country.lower(), "country": country, "capital": city} for country, city in CAPITALS.items()]
    (bundle / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def record(folder: Path, **answers: str) -> None:
    rows = [{"case": case, "content": content} for case, content in answers.items()]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def new_run(folder: Path) -> Run:
    text = json.dumps(
        {
            "name": "capitals",
            "environments": [{"path": "capitals"}],
            "models": [{"name": "old", "provider": "replay", "responses": "answers.jsonl"}],
            "tracking": {"mlflow": False},
        }
    )
    config = read_config_text(text, source_for_command(folder, "test.yaml")).require_valid()
    return create_run(config=config, environments=find_environments(config))


def execute(run: Run) -> Run:
    return execute_run(run=run, config=config_of(run), listener=SilentListener())


def rows_of(run: Run) -> list[Any]:
    """The figures that are stored and current."""
    rows = stored.current_rows().filter(run=run).order_by("run_environment__position", "run_model__position")
    return [result_of(row).figures for row in rows]


def fresh(run: Run) -> list[Any]:
    return [cell.figures for cell in aggregate_run(Run.objects.get(pk=run.pk))]


# ---- every way in which a run ends -----------------------------------------------------------------------------------


def test_finished_run_has_rows_that_equal_a_fresh_aggregation(folder: Path) -> None:
    record(folder, france="Paris", japan="Kyoto", peru="Lima", cuba="Havana")
    run = execute(new_run(folder))
    assert run.status == Run.Status.COMPLETED
    (figures,) = rows_of(run)
    assert [figures] == fresh(run)
    assert figures.statuses == {"passed": 3, "failed": 1, "errored": 0, "unscored": 0}
    row = RunResult.objects.get()
    assert (row.accuracy, row.responses) == (0.75, 4)


def test_resumed_run_has_new_rows_when_it_ends_again(folder: Path) -> None:
    record(folder, france="Paris")
    run = execute(new_run(folder))
    assert rows_of(run)[0].statuses["errored"] == 3
    record(folder, france="Paris", japan="Tokyo", peru="Lima", cuba="Havana")
    resume_run(run=run)
    assert rows_of(run) == []  # not current while the run goes on
    execute(Run.objects.get(pk=run.pk))
    assert rows_of(run) == fresh(run)
    assert rows_of(run)[0].statuses == {"passed": 4, "failed": 0, "errored": 0, "unscored": 0}
    assert RunResult.objects.count() == 1


@pytest.mark.parametrize("hours_ago", [1, -1], ids=["before the run started", "after the run started"])
def test_rows_equal_a_fresh_aggregation_after_a_case_is_quarantined(folder: Path, hours_ago: float) -> None:
    record(folder, france="Paris", japan="Kyoto", peru="Lima", cuba="Havana")
    run = new_run(folder)
    if hours_ago > 0:
        accepted_defect(Case.objects.get(external_id="japan"), hours_ago=hours_ago)
    execute(run)
    if hours_ago < 0:
        accepted_defect(Case.objects.get(external_id="japan"), hours_ago=hours_ago)
    assert rows_of(run) == fresh(run)
    assert rows_of(run)[0].statuses["failed"] == (0 if hours_ago > 0 else 1)


def going_run() -> Run:
    run = stored_run(stored_version(), ["alpha", "beta"], status=Run.Status.RUNNING, finished_at=None)
    stored_outcomes(run, "ppf-", model="alpha")
    return run


def cancelled(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(status=Run.Status.QUEUED)
    cancel_run(run=run)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (cancelled, "cancelled"),
        (lambda run: fail_run(run=run, message="The sandbox is missing.", owner=""), "failed"),
        (lambda run: interrupt_run(run=run), "interrupted"),
    ],
    ids=["cancelled", "failed", "interrupted"],
)
def test_rows_equal_a_fresh_aggregation_however_a_run_ends(end: Any, status: str) -> None:
    run = going_run()
    end(run)
    run = Run.objects.get(pk=run.pk)
    assert run.status == status
    cells = get_results(run)
    assert [cell.figures for cell in cells] == rows_of(run) == fresh(run)
    assert [cell.model for cell in cells] == ["alpha", "beta"]


def test_run_that_goes_on_is_aggregated_at_each_call_and_nothing_is_stored() -> None:
    run = going_run()
    assert get_results(run)[0].statuses["passed"] == 2
    stored_response(run, Case.objects.get(external_id="c3"))
    assert get_results(run)[0].statuses["passed"] == 3
    assert not RunResult.objects.exists()


# ---- reading ---------------------------------------------------------------------------------------------------------


def ended_run() -> Run:
    data = [{"id": f"c{i}", "input": "?", "row": {"cluster": f"text {i // 3}"}} for i in range(12)]
    run = stored_run(stored_version(cases=data), ["alpha", "beta"], attempts=2)
    for attempt in (1, 2):
        for i, case in enumerate(Case.objects.order_by("position")):
            fields: dict[str, Any] = {
                "attempt": attempt,
                "latency_ms": 100.5 + i / 3,
                "execution_status": "passed" if i % 3 else "timeout",
                "execution_ms": 0.1 * i,
                "sandbox_tier": "B",
                "error_kind": "" if i % 5 else "connection",
                "cost_usd": None if i == 3 else 0.1,
                "input_tokens": 7,
            }
            stored_response(run, case, "passed" if (i + attempt) % 4 else "failed", **fields)
    return run


def test_results_of_an_ended_run_are_stored_at_the_first_read_and_read_with_one_query() -> None:
    run = ended_run()
    first = get_results(run)
    with CaptureQueriesContext(connection) as queries:
        second = get_results(run)
    assert len(queries) == 1
    assert first == second
    assert [cell.figures for cell in second] == fresh(run)
    assert second[0].figures.pass_at.keys() == {1, 2}  # JSON has texts as keys


def test_rows_of_another_revision_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended_run()
    get_results(run)
    RunResult.objects.update(figures={"a key of an earlier release": 1}, revision=stored.REVISION)
    monkeypatch.setattr(stored, "REVISION", stored.REVISION + 1)
    assert [cell.figures for cell in get_results(run)] == fresh(run) == rows_of(run)


def test_process_that_read_the_run_before_it_was_resumed_does_not_leave_outdated_rows() -> None:
    run = ended_run()
    early = Run.objects.get(pk=run.pk)
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now())
    run.refresh_from_db()
    get_results(run)
    Response.objects.filter(status="failed").update(status="passed")
    get_results(early)  # stores rows for the earlier end
    assert rows_of(run) == []
    assert [cell.figures for cell in get_results(run)] == fresh(run)


def test_past_results_store_missing_rows_of_earlier_runs() -> None:
    user = User.objects.create_superuser("curator")
    older, newer = ended_run(), None
    newer = stored_run(older.environments.get().version, ["alpha"], name="newer")
    stored_outcomes(newer, "p" * 12)
    version = older.environments.get().version
    store_environment_results(user, version.environment)
    found = [(past.run.pk, past.cell.model) for past in leaderboard(user, version)]
    assert found == [(newer.pk, "alpha")]  # beta has no responses
    assert RunResult.objects.count() == 3
    assert [past.run.pk for past in model_results(user, "alpha", versions_of_model(user, "alpha"))] == [newer.pk]
    with CaptureQueriesContext(connection) as queries:
        assert [run.pk for run, _ in latest_results(user, 5)] == [newer.pk, older.pk]
    assert not any("runs_response" in query["sql"] for query in queries)


# ---- results by case -------------------------------------------------------------------------------------------------


def cases_of(run: Run) -> list[CaseResults]:
    parts = list(run.environments.all())
    return list(get_cases(run, parts, list(run.models.filter(role=""))).values())


def test_results_by_case_are_stored_with_the_others_and_read_with_one_query() -> None:
    run = ended_run()
    Response.objects.filter(status="failed").update(text="wrong")
    parts, models = list(run.environments.all()), list(run.models.all())
    get_results(run)
    with CaptureQueriesContext(connection) as queries:
        found = get_cases(run, parts, models)
    assert len(queries) == 1
    assert found == {(part.pk, model.pk): aggregate_cases(run, part, model) for part in parts for model in models}
    (alpha, beta) = found.values()
    assert (len(alpha.case), beta.case) == (12, [])
    assert alpha.cluster == [f"text {i // 3}" for i in range(12)]
    assert set(map(type, alpha.cost)) == {type(None)}  # the model has no price
    assert {wrong == "" for wrong, mean in zip(alpha.wrong, alpha.means(), strict=True) if mean == 1} == {True}
    assert len({wrong for wrong in alpha.wrong if wrong}) == 1


def test_results_by_case_of_a_run_that_goes_on_are_aggregated_and_not_stored() -> None:
    run = going_run()
    assert [sum(cases.passed) for cases in cases_of(run)] == [2, 0]
    stored_response(run, Case.objects.get(external_id="c3"))
    assert [sum(cases.passed) for cases in cases_of(run)] == [3, 0]
    assert not RunResult.objects.exists()


def test_comparison_of_ended_runs_reads_no_responses_and_has_a_fixed_number_of_queries() -> None:
    def queries_of(cases: int) -> list[str]:
        version = stored_version(f"cases-{cases}", cases=cases)
        runs = [stored_run(version, ["alpha", "beta"]) for _ in range(2)]
        for run, outcomes in zip(runs, ("pf", "fp"), strict=True):
            for model in ("alpha", "beta"):
                stored_outcomes(run, outcomes * (cases // 2), model=model)
            get_results(run)
        with CaptureQueriesContext(connection) as queries:
            comparison = compare(*runs)
        assert [len(pair.environments[0].better_a) for pair in comparison.models] == [cases // 2] * 2
        return [query["sql"] for query in queries]

    few, many = queries_of(4), queries_of(40)
    assert len(few) == len(many)
    assert not any('FROM "runs_response"' in sql for sql in many)


def test_results_with_other_quarantined_cases_are_not_of_the_same_cases() -> None:
    version = stored_version()
    before, after = stored_run(version), stored_run(version, started_at=timezone.now() + timedelta(hours=2))
    for run in (before, after):
        stored_outcomes(run, "pfff")
    assert same_cases(aggregate_run(before)[0], aggregate_run(after)[0])
    accepted_defect(Case.objects.get(version=version, external_id="c3"), hours_ago=-1)
    results = [aggregate_run(run)[0] for run in (before, after)]
    assert [cell.accuracy.value for cell in results] == [0.25, pytest.approx(1 / 3)]
    assert not same_cases(*results)


# ---- counts of responses ---------------------------------------------------------------------------------------------


def test_stored_counts_include_quarantined_cases(folder: Path) -> None:
    record(folder, france="Paris", japan="Kyoto", peru="Lima", cuba="Havana")
    run = new_run(folder)
    accepted_defect(Case.objects.get(external_id="japan"), hours_ago=1)
    execute(run)
    run = Run.objects.get(pk=run.pk)
    assert rows_of(run)[0].statuses["failed"] == 0
    assert dict(count_responses([run])[run.pk]) == {"passed": 3, "failed": 1, "errored": 0, "unscored": 0}
    assert (get_progress(run)["done"], get_progress(run)["cells"][0]["failed"]) == (4, 1)


def test_progress_and_outcome_of_an_ended_run_read_no_responses() -> None:
    run = ended_run()
    Run.objects.filter(pk=run.pk).update(status=Run.Status.RUNNING)
    run.refresh_from_db()
    counted = get_progress(run)
    Run.objects.filter(pk=run.pk).update(status=Run.Status.COMPLETED, cost_usd=None)
    run.refresh_from_db()
    get_results(run)
    with CaptureQueriesContext(connection) as queries:
        read = get_progress(run)
        outcome_of(run)
    assert read == counted
    assert read["cost_usd"] is None  # the cost of one response is unknown
    assert not [query for query in queries if 'FROM "runs_response"' in query["sql"]]


def test_missing_responses_of_an_ended_run_are_read_from_its_results() -> None:
    run, ended = going_run(), stored_run(stored_version("more"))
    stored_outcomes(ended, "pe--")
    get_results(ended)
    with CaptureQueriesContext(connection) as queries:
        assert get_missing(ended) == 3
    [counted] = [query["sql"] for query in queries if 'FROM "runs_response"' in query["sql"]]
    assert "too_long" in counted  # only errored responses are read
    assert count_missing(ended) == 3
    assert get_missing(run) == count_missing(run) == 5


def test_responses_are_counted_while_results_are_not_stored() -> None:
    run, ended = going_run(), stored_run(stored_version("more"))
    stored_outcomes(ended, "pe--")
    found = count_responses([run, ended])
    assert dict(found[run.pk]) == {"passed": 2, "failed": 1}
    assert dict(found[ended.pk]) == {"passed": 1, "errored": 1}


def test_list_of_responses_starts_at_the_first_response_of_the_run() -> None:
    versions = [stored_version("first"), stored_version("second")]
    earlier, run = stored_run(versions), stored_run(versions)
    for one in (earlier, run):
        for version in reversed(versions):
            stored_outcomes(one, "pf--", version=version)
    assert [row.run_environment.run_id for row in list_responses(list_environments(run))] == [run.pk] * 4
    assert not list_responses(list_environments(stored_run(versions[0]))).exists()
