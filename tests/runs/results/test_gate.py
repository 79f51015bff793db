"""Gates on comparisons, ratios of cost and latency, and `manage.py compare` with several runs."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command

from hub.models import Case
from runs.models import Response, Run, RunResult
from runs.reports.comparison.files import gate_lines
from runs.reports.comparison.matrices import comparison_matrices
from runs.reports.comparison.rows import compared_rows
from runs.results.comparison.gate import Condition, GateError, decide_gate, parse_gate
from runs.results.comparison.pair import ComparisonError
from runs.results.comparison.several import compare_all
from runs.results.statistics.resampling import paired_ratio
from tests.factories import stored_outcomes, stored_response, stored_run, stored_version


def test_gate_has_conditions_with_differences_and_ratios() -> None:
    assert parse_gate("accuracy >= -0.01; cost<=1.2x;") == [
        Condition(metric="accuracy", at_least=True, limit=-0.01, ratio=False),
        Condition(metric="cost", at_least=False, limit=1.2, ratio=True),
    ]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "no condition"),
        (" ; ", "no condition"),
        ("accuracy >= -0.01; speed <= 2x", "position 20: expected one of accuracy, cost, latency, found 'speed <= 2x'"),
        ("accuracy = 0", "position 10: expected >= or <=, found '= 0'"),
        ("accuracy", "position 9: expected >= or <=, but it ends here"),
        ("accuracy >= 1%", "position 13: .*write 1 % as 0.01"),
        ("accuracy >= 0.9x", "position 13: accuracy is compared by its difference"),
        ("accuracy >= 5", "position 13: a difference of accuracies is from -1 to 1"),
        ("cost <= 0x", "position 9: a ratio must be above zero"),
        ("cost <= 1.2x accuracy >= 0", "position 9: expected a number"),
        ("  ?? <= 1", "position 3: expected one of"),
    ],
)
def test_wrong_gate_is_reported_with_its_position(expression: str, message: str) -> None:
    with pytest.raises(GateError, match=message):
        parse_gate(expression)


@pytest.mark.parametrize(
    ("bounds", "decision"),
    [((-0.005, 0.1), "GO"), ((-0.3, -0.02), "NO-GO"), ((-0.05, 0.05), "INCONCLUSIVE"), (None, "INCONCLUSIVE")],
)
def test_condition_is_decided_by_the_interval(bounds: tuple[float, float] | None, decision: str) -> None:
    assert parse_gate("accuracy >= -0.01")[0].decide(bounds) == decision


def test_ratio_of_proportional_amounts_has_an_interval_without_width() -> None:
    b = [1.0, 5.0, 2.0, 8.0] * 5
    found = paired_ratio([1.5 * value for value in b], b)
    assert found.ratio == found.ratio_low == found.ratio_high == pytest.approx(1.5)
    assert found.low is not None and found.high is not None and found.low < found.difference < found.high  # type: ignore[operator]


def test_ratio_needs_ten_groups_and_a_positive_amount() -> None:
    assert paired_ratio([1.0] * 9, [2.0] * 9).ratio_low is None
    assert paired_ratio([1.0] * 20, [2.0] * 20, [i // 4 for i in range(20)]).note
    assert paired_ratio([1.0] * 12, [0.0] * 12).ratio is None
    assert paired_ratio([], []).note


def test_clusters_widen_the_interval_of_a_ratio() -> None:
    a, b = [float(1 + i // 5) for i in range(100)], [10.0 - (i // 5) % 7 for i in range(100)]
    alone, together = paired_ratio(a, b), paired_ratio(a, b, [i // 5 for i in range(100)])
    assert alone.ratio_high and alone.ratio_low and together.ratio_high and together.ratio_low
    assert together.ratio_high - together.ratio_low > 1.5 * (alone.ratio_high - alone.ratio_low)


def test_interval_of_many_cases_is_that_of_the_normal_approximation() -> None:
    random = np.random.default_rng(1)
    a, b = random.lognormal(6, 0.5, (2, 20_000))
    found = paired_ratio(a.tolist(), b.tolist())
    half = 1.96 * (a - b).std() / math.sqrt(len(a))
    assert found.low is not None and found.high is not None and found.difference is not None
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.1)
    assert found.difference == pytest.approx((a - b).mean())
    clusters = [i // 2 for i in range(20_000)]
    together = paired_ratio(np.repeat(a[:10_000], 2).tolist(), np.repeat(b[:10_000], 2).tolist(), clusters)
    half = 1.96 * (a - b)[:10_000].std() / math.sqrt(10_000)
    assert together.low is not None and together.high is not None
    assert (together.high - together.low) / 2 == pytest.approx(half, rel=0.1)


def test_interval_of_ten_cases_covers_no_difference_often_enough() -> None:
    random = np.random.default_rng(4)
    covered = 0
    for _ in range(600):
        shared = random.normal(0, 0.5, 10)
        a, b = np.exp(shared + random.normal(0, 0.25, (2, 10)))
        found = paired_ratio(a.tolist(), b.tolist())
        assert found.ratio_low is not None and found.ratio_high is not None
        covered += found.ratio_low <= 1 <= found.ratio_high
    assert covered / 600 > 0.92  # 0.89 with plain percentiles


@pytest.fixture
def runs(db: None) -> list[Run]:
    version = stored_version("sums", cases=40)
    price = {"input": 1.0, "output": 1.0}
    found = [stored_run(version, price=price, name=name) for name in ("new", "old", "older")]
    for run, outcomes, cost in zip(found, ("p" * 40, "p" * 20 + "f" * 20, "f" * 40), (0.02, 0.01, 0.01), strict=True):
        stored_outcomes(run, outcomes)
        Response.objects.filter(run_environment__run=run).update(cost_usd=cost, latency_ms=100.0)
    return found


def equal_models() -> Run:
    run = stored_run(stored_version("equal", cases=4), ["a", "b", "c"])
    for model in ("a", "b", "c"):
        stored_outcomes(run, "ppff", model=model)
    return run


def test_gate_of_runs_follows_accuracy_and_cost(runs: list[Run]) -> None:
    found = compare_all(runs[:2])
    assert decide_gate("accuracy >= 0.2; cost <= 2x", found).decision == "GO"
    assert decide_gate("accuracy >= 0.2; cost <= 1.2x", found).decision == "NO-GO"
    assert decide_gate("accuracy >= 0.5", found).decision == "INCONCLUSIVE"
    assert decide_gate("latency <= 0", found).decision == "GO"
    Response.objects.update(cost_usd=None)
    RunResult.objects.all().delete()
    assert decide_gate("cost <= 2x", compare_all(runs[:2])).decision == "INCONCLUSIVE"


def test_cost_gate_leaves_out_cases_answered_from_the_cache(runs: list[Run]) -> None:
    new = Response.objects.filter(run_environment__run=runs[0])
    cached = [response.pk for response in new.order_by("id")[:15]]
    new.filter(pk__in=cached).update(cost_usd=0.0, latency_ms=None)
    found = compare_all(runs[:2])
    (item,) = found[0].models[0].environments
    assert (item.paired.n, item.cost.n, item.cost.mean_a) == (40, 25, pytest.approx(0.02))
    assert "answered from the cache: 15 cases in A, 0 in B." in item.notes[-1]
    assert decide_gate("cost <= 1.2x", found).decision == "NO-GO"


def test_cost_leaves_out_attempts_without_a_request(runs: list[Run]) -> None:
    # The first attempts cost 0.02 each. The others came from the cache, or are errored because no reply arrived.
    for number, case in enumerate(Case.objects.order_by("position")):
        status = "errored" if number % 2 else "passed"
        stored_response(runs[0], case, status, attempt=2, cost_usd=0.0, latency_ms=None)
    found = compare_all(runs[:2])
    cost = found[0].models[0].environments[0].cost
    assert (cost.n, cost.mean_a) == (40, pytest.approx(0.02))
    assert decide_gate("cost <= 1.2x", found).decision == "NO-GO"


@pytest.mark.parametrize("role_cost", [0.0, 0.001, None])
def test_cost_gate_is_inconclusive_if_all_cases_were_answered_from_the_cache(
    runs: list[Run], role_cost: float | None
) -> None:
    new = Response.objects.filter(run_environment__run=runs[0])
    new.update(cost_usd=0.0, latency_ms=None, role_cost_usd=role_cost)
    assert decide_gate("cost <= 1.2x", compare_all(runs[:2])).decision == "INCONCLUSIVE"


def test_condition_with_an_interval_has_no_note_on_why_there_is_none(runs: list[Run]) -> None:
    (check,) = decide_gate("cost <= 2x", compare_all(runs[:2])).checks
    assert check.bounds is not None and check.note == ""


def test_gate_says_why_a_ratio_has_no_interval(runs: list[Run]) -> None:
    old = Response.objects.filter(run_environment__run=runs[1])
    old.exclude(pk=old.earliest("id").pk).update(cost_usd=0.0)
    (check,) = decide_gate("cost <= 2x", compare_all(runs[:2])).checks
    assert (check.bounds, check.note) == (None, "B is zero in too many cases")
    RunResult.objects.all().delete()
    old.update(cost_usd=0.0)
    (check,) = decide_gate("cost <= 2x", compare_all(runs[:2])).checks
    assert (check.bounds, check.note) == (None, "B is zero, so that there is no ratio")


def test_bound_of_an_interval_is_not_rounded_to_the_limit(runs: list[Run]) -> None:
    result = decide_gate("accuracy >= -0.01; accuracy >= 0.05", compare_all(runs[:2]))
    missed, met = (
        replace(check, bounds=(low, 0.2)) for check, low in zip(result.checks, (-0.010003, 0.05), strict=True)
    )
    lines = gate_lines(replace(result, checks=[missed, met]))
    assert [line.rpartition("interval ")[2] for line in lines] == ["[-0.010003, 0.2]", "[0.05, 0.2]"]


@pytest.mark.django_db
def test_matrix_shows_no_negative_zero() -> None:
    (matrix,) = comparison_matrices(compared_rows(compare_all([equal_models()])))
    texts = {(cell.text, cell.interval) for _, row in matrix.rows for cell in row if cell}
    assert texts == {("+0.0", "[-49.0, 49.0]")}


def test_holm_covers_all_pairs_of_runs(runs: list[Run]) -> None:
    found = compare_all(runs)
    items = [comparison.models[0].environments[0] for comparison in found]
    assert len(items) == 3
    least = min(items, key=lambda item: item.paired.p_value or 1)
    assert least.p_adjusted == pytest.approx(3 * (least.paired.p_value or 1))


def test_run_that_is_named_twice_is_compared_once(runs: list[Run]) -> None:
    a, b, *_ = runs
    (found,) = compare_all([a, b, a])
    assert (found.run_a, found.run_b) == (a, b)


def test_models_cannot_be_named_for_three_runs(runs: list[Run]) -> None:
    with pytest.raises(ComparisonError, match="two runs only"):
        compare_all(runs, model_a="alpha")


@pytest.mark.parametrize(
    ("gate", "code"), [("accuracy >= 0.2", None), ("cost <= 1.2x", 4), ("accuracy >= 0.5", 5), ("accuracy > 0", 2)]
)
def test_command_exits_with_the_decision(
    runs: list[Run], gate: str, code: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if code is None:
        call_command("compare", str(runs[0].pk), str(runs[1].pk), gate=gate)
        assert "GO: accuracy >= 0.2" in capsys.readouterr().out
        return
    with pytest.raises(SystemExit) as stopped:
        call_command("compare", str(runs[0].pk), str(runs[1].pk), gate=gate)
    assert stopped.value.code == code


def test_command_writes_html_and_markdown_with_escaped_names(runs: list[Run], tmp_path: Path) -> None:
    for run in runs:
        run.models.update(label="a|<b>x")
    page, text = tmp_path / "c.html", tmp_path / "c.md"
    call_command("compare", *(str(run.pk) for run in runs), html=page, markdown=text, margin=0.02)
    assert "a|&lt;b&gt;x" in page.read_text() and "<b>x" not in page.read_text() and "<svg" in page.read_text()
    rows = [line for line in text.read_text().splitlines() if line.startswith("| sums")]
    assert len(rows) == 3 and all(row.count("a\\|\\<b\\>x") == 2 for row in rows)
    assert "1.00x" in rows[2] and "2.00x" in rows[0]
