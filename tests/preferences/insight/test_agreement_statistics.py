"""Tests of kappa, alpha, calibration and Bradley-Terry against values computed by hand and by a library."""

import math
from collections import Counter
from itertools import pairwise

import pytest
from scipy.optimize import minimize
from scipy.stats import beta
from sklearn.metrics import cohen_kappa_score

from preferences.insight.agreement_statistics import (
    agreement_figure,
    bootstrap,
    cohen_kappa,
    correlation,
    correlation_figure,
    figure,
    krippendorff_alpha,
    mean,
    share_figure,
)
from preferences.insight.bradley_terry import Match, RankedModel, SeparateGroups, groups_of, rank_models, strengths
from preferences.insight.calibration import Bin, calibration, calibration_error
from preferences.insight.plots import calibration_plot, ranking_plot
from runs.results.statistics.proportion_intervals import wilson


def test_kappa_of_table_calculated_by_hand() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: po 0.7, pe 0.5
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohen_kappa(pairs) == pytest.approx(0.4)
    assert cohen_kappa(pairs) == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))
    assert agreement_figure([[pair] for pair in pairs]).value == 0.7


def test_kappa_is_undefined_if_all_agreement_is_expected_by_chance() -> None:
    assert cohen_kappa([("a", "a")] * 5) is None
    assert cohen_kappa([]) is None
    assert figure([[("a", "a")]] * 5, cohen_kappa).note == "undefined because all values are equal"
    assert figure([], cohen_kappa).note == "nothing to compare yet"


def test_alpha_of_example_by_krippendorff() -> None:
    # Krippendorff 2011, section C: four observers, twelve units, missing values; nominal alpha 0.743.
    units = [
        "111",
        "2232",
        "3333",
        "3333",
        "2222",
        "1234",
        "4444",
        "1121",
        "2222",
        "555",
        "11",
        "3",
    ]  # the units' values, unit by unit, as the paper tabulates them
    assert krippendorff_alpha([tuple(unit) for unit in units]) == pytest.approx(0.743, abs=0.0005)


def test_alpha_is_one_for_agreement_and_negative_for_systematic_disagreement() -> None:
    assert krippendorff_alpha([("a", "a"), ("b", "b", "b")]) == 1
    assert krippendorff_alpha([("a", "b"), ("b", "a")]) < 0
    assert krippendorff_alpha([("a",), ("b",)]) is None
    assert krippendorff_alpha([("a", "a")]) is None


def test_calibration_error_is_the_weighted_distance() -> None:
    points = [(0.95, True), (0.95, True), (0.95, False), (0.95, True), (0.15, False)]
    assert [(item.n, item.correct) for item in calibration(points)] == [(1, 0.0), (4, 0.75)]
    assert calibration_error(points) == pytest.approx((4 * 0.2 + 1 * 0.15) / 5)
    assert calibration_error([]) is None


def test_interval_contains_the_value_of_a_figure_that_is_biased_upwards() -> None:
    right = {0.55: 11, 0.75: 15, 0.95: 19}  # of 20: calibrated exactly, as hardly any resample is
    found = figure([[(confidence, i < n)] for confidence, n in right.items() for i in range(20)], calibration_error)
    assert found.value == pytest.approx(0) and found.low == found.value
    assert found.high is not None and found.high > 0.1


def test_confidence_of_one_belongs_to_the_last_bin() -> None:
    assert [(item.confidence, item.n) for item in calibration([(1.0, True), (0.9, True), (0.89, True)])] == [
        (0.89, 1),
        (pytest.approx(0.95), 2),
    ]


def test_mean_of_two_confidences_belongs_to_the_bin_that_it_begins() -> None:
    mean_of_two = (0.1 + 0.7) / 2
    assert mean_of_two < 0.4
    assert [item.n for item in calibration([(0.4, True), (mean_of_two, True)])] == [2]


def test_correlation_is_undefined_for_constant_variable() -> None:
    assert correlation([(1, 2), (2, 4), (3, 6)]) == pytest.approx(1)
    assert correlation([(1, 2), (1, 3)]) is None


def test_correlation_is_never_above_1() -> None:
    points = [(-3.0, 0.0)] * 6 + [(3.0, 1.0)] * 7
    assert correlation(points) == 1
    assert correlation([(x, -y) for x, y in points]) == -1
    assert correlation_figure(points).high == 1


def test_statistics_accept_counts_of_units() -> None:
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    units = [("a", "b"), ("a", "b"), ("a", "a", "c"), ("b",)]
    assert cohen_kappa(Counter(pairs)) == cohen_kappa(pairs)
    assert krippendorff_alpha(Counter(units)) == krippendorff_alpha(units)
    assert mean({0.5: 3, 1.0: 1}) == mean([0.5, 0.5, 0.5, 1.0]) == 0.625


def test_intervals_have_the_expected_width_and_need_ten_groups() -> None:
    # the standard error of 30 of 40 is sqrt(0.75 * 0.25 / 40) = 0.0685, and 1.96 of them are 0.134
    groups = [[True]] * 30 + [[False]] * 10
    low, high = bootstrap(groups, mean)
    assert (low, high) == (pytest.approx(0.75 - 0.134, abs=0.03), pytest.approx(0.75 + 0.134, abs=0.03))
    assert bootstrap(groups[:9], mean) is None
    assert figure(groups[:9], mean).note == "too few values for an interval"


def test_share_intervals_equal_accuracy_intervals() -> None:
    found = share_figure([[True]] * 30 + [[False]] * 10)
    assert (found.value, found.n) == (0.75, 40)
    assert found.ci95 == wilson(0.75, 40)
    assert agreement_figure([[("a", "a")]] * 12).ci95 == (pytest.approx(0.7575, abs=1e-4), 1.0)
    assert share_figure([]).note == "nothing to compare yet"


def test_verdicts_on_one_pair_are_one_cluster() -> None:
    together = share_figure([[True] * 4] * 8 + [[False] * 4] * 8)
    assert (together.n, together.ci95) == (64, wilson(0.5, 15))
    assert share_figure([[True, False]]).note == "too few pairs for an interval"


def test_bootstrap_resamples_verdicts_by_pair() -> None:
    # four verdicts that always agree are worth one: the interval of 16 such pairs is twice that of 64 pairs
    alone = bootstrap([[True]] * 32 + [[False]] * 32, mean)
    together = bootstrap([[True] * 4] * 8 + [[False] * 4] * 8, mean)
    assert (together[1] - together[0]) / (alone[1] - alone[0]) == pytest.approx(2, abs=0.3)
    assert figure([[True] * 4] * 8 + [[False] * 4] * 8, mean).n == 64


def test_correlation_interval_is_close_to_fisher_z() -> None:
    points = [(float(i % 20), float(i % 20 + 6 * (i % 3))) for i in range(120)]
    found = correlation_figure(points)
    middle, spread = math.atanh(found.value), 1.96 / math.sqrt(120 - 3)
    assert found.low == pytest.approx(math.tanh(middle - spread), abs=0.03)
    assert found.high == pytest.approx(math.tanh(middle + spread), abs=0.03)
    assert correlation_figure(points[:9]).note == "too few values for an interval"


def test_strengths_of_two_models_are_odds_of_wins() -> None:
    # 30 wins to 10, with half a win added on either side: odds 30.5 to 10.5
    matches = [Match("a", "b", 1.0, i) for i in range(30)] + [Match("a", "b", 0.0, 30 + i) for i in range(10)]
    found = strengths(matches)
    assert found["a"] - found["b"] == pytest.approx(400 * math.log10(30.5 / 10.5), abs=0.01)
    assert found["a"] + found["b"] == pytest.approx(0, abs=1e-6)


def test_tie_counts_half_and_order_of_models_does_not_matter() -> None:
    tie = strengths([Match("a", "b", 0.5, 1)])
    assert tie["a"] == pytest.approx(tie["b"])
    assert strengths([Match("a", "b", 1.0, 1)]) == pytest.approx(strengths([Match("b", "a", 0.0, 1)]))


def test_strengths_of_three_models_maximize_likelihood() -> None:
    # found by scipy from the likelihood itself: a win counts log(s_a / (s_a + s_b)), a tie half of it for either side
    results = [("a", "b", 1.0, 7), ("a", "b", 0.0, 3), ("b", "c", 1.0, 6), ("b", "c", 0.5, 4), ("c", "a", 1.0, 2)]
    matches = [Match(a, b, score, 1) for a, b, score, times in results for _ in range(times)]
    added = [(a, b, 0.5, 1) for a, b in ("ab", "bc", "ca")]  # the half win each way that is added

    def unlikely(logs: list[float]) -> float:
        at = dict(zip("abc", [*logs, -sum(logs)], strict=True))
        return sum(
            times * (math.log(math.exp(at[a]) + math.exp(at[b])) - score * at[a] - (1 - score) * at[b])
            for a, b, score, times in [*results, *added]
        )

    first, second = minimize(unlikely, [0.0, 0.0], tol=1e-9).x
    expected = [400 / math.log(10) * log for log in (first, second, -first - second)]
    assert [strengths(matches)[name] for name in "abc"] == pytest.approx(expected, abs=0.01)


def test_ranked_models_are_ordered_with_intervals_over_cases() -> None:
    matches = [Match("a", "b", 1.0 if i % 4 else 0.0, i) for i in range(40)]
    matches += [Match("b", "c", 1.0 if i % 4 else 0.0, i) for i in range(40)]
    rows = rank_models(matches, resamples=50)
    assert [row.name for row in rows] == ["a", "b", "c"]
    assert all(row.low < row.strength < row.high for row in rows)
    assert rank_models(matches[:5])[0].low is None
    assert [(row.wins, row.matches) for row in rows] == [(30, 40), (40, 80), (10, 40)]


def test_strengths_in_chain_of_thirty_models() -> None:
    # In a chain each link is fitted alone: 10 wins to 1, with half a win added on either side.
    names = [f"m{i:02}" for i in range(30)]
    links = [Match(better, worse, float(case < 10), case) for better, worse in pairwise(names) for case in range(11)]
    found = strengths(links)
    for better, worse in pairwise(names):
        assert found[better] - found[worse] == pytest.approx(400 * math.log10(10.5 / 1.5), abs=0.001)
    rows = rank_models(links, resamples=100)
    assert [row.name for row in rows] == names
    assert all(row.low < row.strength < row.high for row in rows if row.name not in ("m14", "m15"))


def test_model_that_always_won_has_interval() -> None:
    best, worst = rank_models([Match("a", "b", 1.0, i) for i in range(12)])
    # Two models: 200 log10 of the odds at the percentiles of Beta(12 + 3/4, 3/4)
    low, high = (200 * math.log10(p / (1 - p)) for p in beta(12.75, 0.75).ppf([0.025, 0.975]))
    assert (best.low, best.high) == (pytest.approx(low, abs=20), pytest.approx(high, rel=0.1))
    assert (worst.low, worst.high) == pytest.approx((-best.high, -best.low))


def test_unconnected_models_raise_separate_groups() -> None:
    matches = [Match("a", "b", 1.0, 1), Match("c", "d", 0.0, 2), Match("b", "e", 0.5, 3)]
    assert groups_of(matches) == [["a", "b", "e"], ["c", "d"]]
    for rank in (strengths, rank_models):
        with pytest.raises(SeparateGroups, match="no comparison connects them: a, b, e; c, d\\."):
            rank(matches)


def test_ranking_of_models_that_never_lost_to_the_next_one_has_intervals() -> None:
    # Some of 12,000 drawn prior wins are so small that rounding errors move the strengths on a flat likelihood.
    names = [f"m{i:02d}" for i in range(13)]
    matches = [Match(a, b, 1.0, (a, i)) for a, b in pairwise(names) for i in range(300)]
    rows = rank_models(matches)
    assert [row.name for row in rows] == names
    assert all(row.low is not None and row.high is not None and row.low < row.strength < row.high for row in rows)
    assert rows[0].strength - rows[1].strength == pytest.approx(400 * math.log10(300.5 / 0.5), abs=1e-6)


def test_ranking_without_matches_is_empty() -> None:
    assert (strengths([]), rank_models([])) == ({}, [])


def test_extreme_results_converge() -> None:
    found = strengths([Match("a", "b", 1.0, i) for i in range(100_000)])
    assert found["a"] - found["b"] == pytest.approx(400 * math.log10(200_001), abs=0.01)


def test_bootstrap_resamples_matches_by_case() -> None:
    alone = [Match("a", "b", float(i % 2), i) for i in range(160)]
    together = [Match("a", "b", float(match.case // 4 % 2), match.case // 4) for match in alone]
    (narrow, _), (wide, _) = (rank_models(found) for found in (alone, together))
    assert (wide.high - wide.low) / (narrow.high - narrow.low) == pytest.approx(2, abs=0.5)


def test_overconfident_verdict_is_below_diagonal() -> None:
    sure, careful = calibration_plot([Bin(confidence=1.0, correct=0.0, n=9), Bin(confidence=0.5, correct=0.75, n=1)])
    assert (sure.x, sure.y) == (40 + 260, 20 + 260)  # right below: the axes go from 40 and 280
    assert (careful.x, careful.y) == (40 + 130, 20 + 65)
    assert sure.r > careful.r
    assert careful.title == "confidence 0.50: 75.0 % correct of 1"


def test_ranking_plot_has_one_scale_around_zero() -> None:
    best = RankedModel(name="a", strength=100.0, low=50.0, high=150.0, wins=3, matches=4)
    worst = RankedModel(name="b", strength=-100.0, low=None, high=None, wins=1, matches=4)
    plot = ranking_plot([best, worst])
    assert plot.end == 150
    assert [(bar.low, bar.width, bar.point) for bar in plot.bars] == [(667, 333, 833), (167, 0, 167)]
    assert ranking_plot([RankedModel(name="a", strength=1.0, low=None, high=None, wins=1, matches=1)]).end == 50


def test_no_interval_if_all_values_are_equal() -> None:
    found = figure([[True]] * 30, mean)
    assert (found.value, found.ci95, found.note) == (1.0, None, "no interval because all values are equal")
