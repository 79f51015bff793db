"""Comparison of runs: pairing of models, the cases that count, and notes about the others."""

import io
import json
from typing import Any

import pytest
from django.core.management import call_command

from hub.management.base import ReportConsole
from hub.models import Case, EnvironmentVersion
from runs.models import Run
from runs.reports import formats
from runs.reports.comparison.files import comparison_markdown, difference_chart, ratio_text
from runs.reports.comparison.rows import compared_rows, describe_comparison
from runs.reports.comparison.terminal import print_comparison
from runs.results.comparison.pair import Comparison, ComparisonError, EnvironmentComparison, compare
from runs.results.comparison.several import compare_all
from runs.results.statistics.paired import paired_difference
from runs.results.statistics.resampling import PairedRatio
from tests.factories import accepted_defect, stored_outcomes, stored_response, stored_run, stored_version

pytestmark = pytest.mark.django_db


def only(comparison: Comparison) -> EnvironmentComparison:
    (pair,) = comparison.models
    (item,) = pair.environments
    return item


def two_runs(outcomes_a: str, outcomes_b: str) -> tuple[Run, Run]:
    version = stored_version(cases=len(outcomes_a))
    runs = stored_run(version), stored_run(version)
    for run, outcomes in zip(runs, (outcomes_a, outcomes_b), strict=True):
        stored_outcomes(run, outcomes)
    return runs


# ---- figures ---------------------------------------------------------------------------------------------------------


def test_flips_are_listed_each_way_and_tested_by_mcnemar() -> None:
    item = only(compare(*two_runs("pppppfffpp", "fffffpffpp")))
    assert (item.better_a, item.better_b) == (["c0", "c1", "c2", "c3", "c4"], ["c5"])
    assert item.paired.difference == pytest.approx(0.4)
    assert item.paired.p_value == pytest.approx(14 / 64)
    assert item.paired.mde is not None


def test_chart_of_differences_is_in_percentage_points() -> None:
    chart = difference_chart(compared_rows([compare(*two_runs("p" * 12 + "ff", "f" * 12 + "pp"))]))
    assert chart is not None
    (row,) = chart.rows
    assert row[2] == "+71.4 points"
    assert "sums: +71.4 points [" in chart.summary and "%" not in chart.summary


def test_cases_that_one_side_did_not_score_are_left_out_and_counted() -> None:
    item = only(compare(*two_runs("ppeup-", "pfppp" + "p")))
    assert item.paired.n == 3
    assert item.left_out == {"not scored by both": 2, "only in B": 1}
    assert any("Left out: 2 cases, because one side is errored or unscored" in note for note in item.notes)


def test_several_attempts_are_compared_by_their_means() -> None:
    version = stored_version(cases=2)
    first, second = Case.objects.order_by("position")
    a, b = stored_run(version, attempts=2), stored_run(version)
    for case, statuses in ((first, "pp"), (second, "pf")):
        for attempt, letter in enumerate(statuses, 1):
            stored_response(a, case, "passed" if letter == "p" else "failed", attempt=attempt)
    stored_outcomes(b, "pp")
    comparison = compare(a, b)
    item = only(comparison)
    assert (item.paired.mean_a, item.paired.mean_b, item.paired.test) == (0.75, 1.0, "paired_score")
    assert item.better_b == ["c1"]
    assert any("2 attempts per case and B 1" in note for note in comparison.notes)


def test_p_values_are_corrected_over_the_environments_by_holm() -> None:
    versions = [stored_version("one", 8), stored_version("two", 8)]
    a, b = stored_run(versions), stored_run(versions)
    for run, first, second in ((a, "pppppppp", "pppppppp"), (b, "ffffffff", "fffffppp")):
        stored_outcomes(run, first, version=versions[0])
        stored_outcomes(run, second, version=versions[1])
    one, two = compare(a, b).models[0].environments
    assert one.paired.p_value == pytest.approx(2 / 2**8)
    assert one.p_adjusted == pytest.approx(2 * 2 / 2**8)
    assert two.p_adjusted == two.paired.p_value == pytest.approx(2 / 2**5)


def test_quarantined_cases_do_not_count() -> None:
    a, b = two_runs("pppf", "pppp")
    accepted_defect(Case.objects.get(external_id="c3"), hours_ago=1)
    item = only(compare(a, b))
    assert (item.paired.n, item.better_b, item.left_out) == (3, [], {"quarantined": 1})


def test_clusters_change_the_test() -> None:
    version = stored_version(cases=[{"id": str(i), "row": {"cluster": i // 2}} for i in range(6)])
    a, b = stored_run(version), stored_run(version)
    stored_outcomes(a, "pppppf")
    stored_outcomes(b, "ffpppf")
    assert only(compare(a, b)).paired.test == "clustered_score"


def test_clusters_of_either_version_change_the_test() -> None:
    old = stored_version(cases=6)
    new = stored_version(cases=[{"id": f"c{i}", "row": {"cluster": i // 2}} for i in range(6)], version="1.1.0")
    for case in Case.objects.filter(version=new):
        case.input_digest = Case.objects.get(version=old, external_id=case.external_id).input_digest
        case.save(update_fields=["input_digest"])
    a, b = stored_run(old), stored_run(new)
    stored_outcomes(a, "pppppf")
    stored_outcomes(b, "ffpppf")
    found, turned = only(compare(a, b)).paired, only(compare(b, a)).paired
    assert found.test == turned.test == "clustered_score"
    assert found.p_value == turned.p_value


# ---- digests ---------------------------------------------------------------------------------------------------------


def versions_that_differ(**changed: dict[str, str]) -> tuple[EnvironmentVersion, EnvironmentVersion]:
    old = stored_version(cases=3)
    new = stored_version(cases=3, version="1.1.0")
    for case_id, fields in changed.items():
        Case.objects.filter(version=new, external_id=case_id).update(**fields)
    return old, new


def test_versions_are_compared_on_cases_with_equal_input_and_scoring() -> None:
    old, new = versions_that_differ(c0={"input_digest": "x"}, c1={"scoring_digest": "x"})
    a, b = stored_run(old), stored_run(new)
    stored_outcomes(a, "ppp")
    stored_outcomes(b, "ppf")
    item = only(compare(a, b))
    assert (item.paired.n, item.better_a) == (1, ["c2"])
    assert item.left_out == {"other input": 1, "other scoring": 1}
    notes = " ".join(item.notes)
    assert "sums@1.0.0 and sums@1.1.0" in notes
    assert "Left out: 1 case, because A asked something else than B" in notes
    assert "scored differently" in notes


def test_environments_of_only_one_run_are_listed() -> None:
    one, two = stored_version("one"), stored_version("two")
    comparison = compare(stored_run([one, two]), stored_run(one))
    assert comparison.notes == ["Not compared, because only one run has them: two (A only)."]


def test_models_of_only_one_run_are_listed_unless_models_are_named() -> None:
    version = stored_version(cases=1)
    run_a, run_b = stored_run(version, ["alpha", "old"]), stored_run(version, ["new", "alpha"])
    note = "Models that are not compared, because only one run has them: old (A only), new (B only)."
    assert compare(run_a, run_b).notes == [note]
    assert compare(run_a, run_b, model_a="old", model_b="new").notes == []
    assert compare(stored_run(version, ["old"]), stored_run(version, ["new"])).notes == []


def test_runs_without_a_common_environment_are_rejected() -> None:
    with pytest.raises(ComparisonError, match=r"no environment in common: run .* has one, run .* has two"):
        compare(stored_run(stored_version("one")), stored_run(stored_version("two")))


# ---- which models ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models_a", "models_b", "named", "pairs"),
    [
        (["x", "y"], ["y", "x"], {}, [("x", "x"), ("y", "y")]),
        (["x", "y"], ["y", "z"], {}, [("y", "y")]),
        (["x"], ["z"], {}, [("x", "z")]),
        (["x", "y"], ["y", "z"], {"model_a": "x", "model_b": "z"}, [("x", "z")]),
        (["x", "y"], ["y", "x"], {"model_a": "y"}, [("y", "y")]),
    ],
)
def test_models_are_paired_by_label_or_as_named(
    models_a: list[str], models_b: list[str], named: dict[str, str], pairs: list[tuple[str, str]]
) -> None:
    version = stored_version()
    found = compare(stored_run(version, models_a), stored_run(version, models_b), **named)
    assert [(pair.model_a, pair.model_b) for pair in found.models] == pairs


def test_two_models_of_one_run_are_compared() -> None:
    run = stored_run(stored_version(), ["x", "y"])
    stored_outcomes(run, "pppp", model="x")
    stored_outcomes(run, "ppff", model="y")
    assert only(compare(run, run)).better_a == ["c2", "c3"]
    assert only(compare(run, run, model_a="y", model_b="x")).better_b == ["c2", "c3"]


@pytest.mark.parametrize(
    ("models_a", "models_b", "named", "message"),
    [
        (["x", "y"], ["z"], {}, "choose one of run \\d+, of x, y, and one of run \\d+, of z"),
        (["x"], ["y"], {"model_a": "q"}, "has no model 'q'; its models are x"),
        (["x"], None, {}, "Run \\d+ has one model, x; compare it with another run."),
        (["x", "y", "z"], None, {}, "Within one run, choose two different models"),
        (["x", "y"], None, {"model_a": "x"}, "Within one run, choose two different models"),
        (["x", "y"], None, {"model_a": "nope"}, "has no model 'nope'; its models are x, y"),
        (["x", "y"], None, {"model_a": "x", "model_b": "x"}, "Within one run, choose two different models"),
    ],
)
def test_ambiguous_models_are_rejected_with_the_option_to_use(
    models_a: list[str], models_b: list[str] | None, named: dict[str, str], message: str
) -> None:
    version = stored_version()
    run = stored_run(version, models_a)
    with pytest.raises(ComparisonError, match=message) as raised:
        compare(run, stored_run(version, models_b) if models_b else run, **named)
    assert raised.value.path == ("b" if message.endswith("another run.") else "model_a")


def test_runs_without_a_common_label_are_named_if_several_are_compared() -> None:
    version = stored_version()
    runs = [stored_run(version, labels) for labels in (["x", "y"], ["x"], ["z"])]
    message = f"compare runs {runs[0].pk} and {runs[2].pk} alone, or leave one out"
    with pytest.raises(ComparisonError, match=message) as raised:
        compare_all(runs)
    assert "model_a" not in str(raised.value.errors())


# ---- the command -----------------------------------------------------------------------------------------------------


def test_command_prints_a_table_with_flips(capsys: Any) -> None:
    a, b = two_runs("pppf", "pfff")
    call_command("compare", str(a.pk), str(b.pk))
    text = capsys.readouterr().out
    assert "better in A: c1, c2" in text
    assert "sums: interval: Tango; test: exact McNemar" in text
    assert "+50.0" in text
    assert max(map(len, text.splitlines())) <= 120


def test_command_gives_one_json_document() -> None:
    a, b = two_runs("pppf", "pfff")
    out = io.StringIO()
    call_command("compare", str(a.pk), str(b.pk), "--json", stdout=out)
    document = json.loads(out.getvalue())
    (item,) = document["models"][0]["environments"]
    assert (item["difference"], item["better_a"], item["test"]) == (0.5, ["c1", "c2"], "mcnemar")


def test_json_names_the_method_of_the_interval() -> None:
    a, b = two_runs("ppppppff", "ppppppff")
    (item,) = compare(a, b).to_json()["models"][0]["environments"]
    assert (item["ci_method"], item["effective_n"], item["ci_note"]) == ("tango", 8.0, "")
    assert item["ci95"] == [pytest.approx(-0.3244, abs=1e-4), pytest.approx(0.3244, abs=1e-4)]
    assert item["minimum_detectable_effect"] is not None


def test_command_exits_with_1_if_nothing_is_comparable(capsys: Any) -> None:
    old, new = versions_that_differ(
        c0={"input_digest": "x"}, c1={"scoring_digest": "x"}, c2={"input_digest": "y", "scoring_digest": "y"}
    )
    a, b = stored_run(old), stored_run(new)
    stored_outcomes(a, "ppp")
    stored_outcomes(b, "ppp")
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("compare", str(a.pk), str(b.pk), "--json", stdout=out, stderr=err)
    assert left.value.code == 1
    (item,) = json.loads(out.getvalue())["models"][0]["environments"]
    assert (item["cases"], item["left_out"]) == (0, {"other input": 2, "other scoring": 1})
    assert "No case can be compared." in err.getvalue()
    assert "sums, alpha and alpha: 2 cases (other input), 1 case (other scoring)." in err.getvalue()


def test_command_exits_with_1_if_no_run_has_a_response(capsys: Any) -> None:
    version = stored_version(cases=2)
    with pytest.raises(SystemExit) as left:
        call_command("compare", str(stored_run(version).pk), str(stored_run(version).pk))
    assert left.value.code == 1
    assert "sums, alpha and alpha: no response on either side." in capsys.readouterr().err


def test_command_exits_with_0_if_any_case_is_comparable() -> None:
    a, b = two_runs("pe", "pp")
    call_command("compare", str(a.pk), str(b.pk))


def test_command_accepts_latest_as_a_run() -> None:
    a, b = two_runs("pp", "pf")
    out = io.StringIO()
    call_command("compare", str(a.pk), "latest", "--json", stdout=out)
    assert json.loads(out.getvalue())["b"]["run"] == b.pk


@pytest.mark.parametrize("arguments", [["999"], ["x"], ["1", "2"]])
def test_command_refuses_unknown_runs_with_exit_code_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        call_command("compare", *arguments)
    assert left.value.code == 2


# ---- on a terminal ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, *(pytest.param(width, marks=pytest.mark.exhaustive) for width in (100, 160))])
@pytest.mark.parametrize("slugs", [["python-functions"], ["python-functions", "instruction-following-with-care"]])
def test_comparison_cuts_no_name_or_figure_at_any_width(width: int, slugs: list[str]) -> None:
    versions = [stored_version(slug, cases=200) for slug in slugs]
    runs = stored_run(versions), stored_run(versions)
    for version in versions:
        for run, outcomes in zip(runs, ("p" * 160 + "f" * 40, "p" * 80 + "f" * 80 + "p" * 40), strict=True):
            stored_outcomes(run, outcomes, version=version)
    found = compare(*runs)
    out = io.StringIO()
    print_comparison(found, ReportConsole(file=out, width=width, force_terminal=True, color_system=None))
    lines = out.getvalue().splitlines()
    for item in found.models[0].environments:
        (row,) = [line for line in lines if line.startswith(f"{item.slug} ")]
        assert formats.points(item.paired.difference) in row
        assert formats.interval(item.paired.low, item.paired.high) in row
        assert formats.p_value(item.paired.p_value) in row
        # A figure without a column of its own is printed below the table.
        assert f"detectable {formats.points(item.paired.mde).lstrip('+')} points" in out.getvalue() or "detectable" in (
            next(line for line in lines if "A - B" in line)
        )
    assert "…" not in out.getvalue()
    assert max(len(line.rstrip()) for line in lines if line.startswith("python-functions ")) <= width


def test_too_many_pairs_are_refused_with_what_to_do() -> None:
    run = stored_run(stored_version(cases=1), models=[f"m{i}" for i in range(13)])
    with pytest.raises(
        ComparisonError, match=r"^The 13 models of the run make 78 pairs, and at most 66 .* two of them\.$"
    ):
        compare_all([run])
    runs = [run, *(stored_run(run.environments.get().version, models=["m"]) for _ in range(12))]
    with pytest.raises(ComparisonError, match=r"^The 13 runs make 78 pairs, and at most 66 .*\. Name fewer\.$"):
        compare_all(runs)


def test_cost_of_a_much_cheaper_model_is_no_ratio_of_zero() -> None:
    version = stored_version(cases=12)
    cheap, dear = (stored_run(version, price={"input": price}) for price in (0.05, 15.0))
    for i, case in enumerate(version.cases.order_by("position")):
        stored_response(cheap, case, cost_usd=1e-6 * (3 + i % 2))
        stored_response(dear, case, cost_usd=1e-3)
    (row,) = compared_rows([compare(cheap, dear)])
    assert row.item.cost.ratio == pytest.approx(0.0035)
    assert ratio_text(row.item.cost).startswith("0.0035x [0.003")
    assert "0.0035x [0.003" in comparison_markdown([row.comparison])


def test_small_difference_that_is_shown_is_not_rounded_to_zero() -> None:
    paired = paired_difference([1.0] * 20_000, [0.0] * 6 + [1.0] * 19_994)
    item = EnvironmentComparison(
        slug="sums",
        version_a="sums@1.0.0",
        version_b="sums@1.0.0",
        paired=paired,
        cost=PairedRatio(n=0),
        latency=PairedRatio(n=0),
        p_adjusted=paired.p_value,
        better_a=[],
        better_b=[],
        left_out={},
        notes=[],
    )
    wanted = "alpha is better than beta on sums by 0.03 points [0.01, 0.1] (n = 20,000 cases)."
    assert describe_comparison(item, "alpha", "beta") == wanted
