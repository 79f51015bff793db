"""Estimates of what a run of several environments and models needs."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hub.models import EnvironmentVersion
from runs.models import Response, Run
from runs.providers.base import ModelSpec, Price
from runs.results.forecast import RunEstimate, estimate_from_responses, estimate_from_results
from runs.results.stored import get_results, store_results
from tests.factories import stored_outcomes, stored_run, stored_version

pytestmark = pytest.mark.django_db

PRICED = ModelSpec(name="alpha", provider="openai", model="m", price=Price(input=1, output=10))
UNPRICED = ModelSpec(name="beta", provider="openai", model="m")
RECORDED = ModelSpec(name="demo", provider="demo")


def estimate(
    versions: list[EnvironmentVersion], specs: list[ModelSpec], *, cases: int = 4, attempts: int = 1
) -> RunEstimate:
    runs = Run.objects.filter(deleted_at=None)
    return estimate_from_results(dict.fromkeys(versions, cases), specs, runs=runs, attempts=attempts, concurrency=2)


def finished(version: EnvironmentVersion, model: str, tokens: int = 1000, latency: float = 2000) -> Run:
    run = stored_run(version, [model])
    stored_outcomes(run, "pppp", model=model)
    Response.objects.filter(run_environment__run=run).update(
        input_tokens=tokens, output_tokens=tokens // 10, cached_input_tokens=0, latency_ms=latency
    )
    get_results(run)
    return run


def test_without_earlier_results_tokens_are_guessed_and_time_is_unknown() -> None:
    found = estimate([stored_version()], [PRICED], attempts=3)
    assert (found.responses, found.requests, found.parts, found.measured, found.earlier) == (12, 12, 1, 0, 0)
    assert found.seconds is None and found.cost_usd is not None
    assert found.cost_usd == pytest.approx(12 * (102 * 1 + 500 * 10) / 1e6, rel=0.02)


def test_latest_result_of_the_same_model_is_used_first() -> None:
    version = stored_version()
    finished(version, "alpha", tokens=5000)
    finished(version, "alpha", tokens=1000)
    finished(version, "gamma", tokens=9000, latency=9000)
    found = estimate([version], [PRICED])
    assert found.cost_usd == pytest.approx(4 * (1000 * 1 + 100 * 10) / 1e6)
    assert found.seconds == pytest.approx(4 * 2.0 / 2)
    assert (found.measured, found.parts_guessed, found.earlier) == (1, 0, 4)


def test_tokens_are_those_of_responses_without_an_error() -> None:
    version = stored_version()
    run = stored_run(version, ["alpha"])
    stored_outcomes(run, "ppee")
    Response.objects.filter(status="passed").update(input_tokens=1000, output_tokens=100, latency_ms=2000)
    get_results(run)
    found = estimate([version], [PRICED])
    assert found.cost_usd == pytest.approx(4 * (1000 * 1 + 100 * 10) / 1e6)
    assert found.earlier == 2


def test_time_is_that_of_the_mean_latency() -> None:
    version = stored_version()
    run = finished(version, "alpha")
    last = Response.objects.latest("id")
    Response.objects.filter(pk=last.pk).update(latency_ms=10_000)  # the median stays 2 s, the mean is 4 s
    store_results(run)
    assert estimate([version], [PRICED]).seconds == pytest.approx(4 * 4.0 / 2)


def test_results_of_another_model_are_used_if_there_are_none_of_the_same() -> None:
    version = stored_version()
    finished(version, "gamma", tokens=2000)
    found = estimate([version], [PRICED])
    assert found.cost_usd == pytest.approx(4 * (2000 * 1 + 200 * 10) / 1e6) and found.measured == 1


def test_models_without_a_price_are_named_and_time_needs_all_parts() -> None:
    known, unknown = stored_version("known"), stored_version("unknown")
    finished(known, "alpha")
    found = estimate([known, unknown], [PRICED, UNPRICED])
    assert found.unpriced == ["beta"] and found.cost_usd is not None
    assert (found.parts, found.measured, found.seconds) == (4, 2, None)
    assert estimate([known], [UNPRICED]).cost_usd is None


def test_recorded_answers_are_free() -> None:
    found = estimate([stored_version()], [RECORDED])
    assert (found.parts, found.cost_usd, found.responses) == (0, 0.0, 4)


def test_several_turns_need_more_requests() -> None:
    version = stored_version(harness={"type": "tools"})
    assert estimate([version], [PRICED]).requests == 24


def test_deleted_runs_are_left_out() -> None:
    version = stored_version()
    run = finished(version, "alpha")
    Run.objects.filter(pk=run.pk).update(deleted_at=run.created_at)
    assert estimate([version], [PRICED]).measured == 0


def test_number_of_queries_does_not_depend_on_the_size_of_the_run() -> None:
    versions = [stored_version(f"sums-{i}") for i in range(8)]
    for version in versions[:4]:
        finished(version, "alpha")
    for chosen, specs in (([versions[0], versions[7]], [PRICED]), (versions, [PRICED, UNPRICED, RECORDED])):
        with CaptureQueriesContext(connection) as queries:
            estimate(chosen, specs)
        assert len(queries) == 2


def test_responses_of_a_run_in_progress_are_used_with_their_turns() -> None:
    version = stored_version(harness={"type": "tools"})
    run = stored_run(version, ["alpha"])
    stored_outcomes(run, "pppp", model="alpha")
    Response.objects.update(input_tokens=1000, output_tokens=100, cached_input_tokens=0, latency_ms=2000, turns=3)
    found = estimate_from_responses(version, PRICED, runs=Run.objects.all(), cases=4)
    assert (found.requests, found.measured, found.earlier, found.recorded) == (12, 1, 4, False)
    assert found.cost_usd == pytest.approx(4 * (1000 * 1 + 100 * 10) / 1e6)
    assert found.seconds == pytest.approx(4 * 2.0 / 4)


def test_both_estimates_agree_without_earlier_runs() -> None:
    version = stored_version(harness={"type": "tools"})
    for spec in (PRICED, UNPRICED, RECORDED):
        found = estimate_from_responses(version, spec, runs=Run.objects.all(), cases=4)
        assert found == estimate([version], [spec])
