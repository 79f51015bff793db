"""Statistics against values worked by hand and against scipy and numpy."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from runs.results import statistics


def test_wilson_gives_the_values_worked_by_hand() -> None:
    # p = 0.85, n = 60, z = 1.959964: centre (0.85 + 0.0320122) / 1.0640244, spread 0.0898594 + ...
    low, high = statistics.wilson(51 / 60, 60)
    assert (round(low, 3), round(high, 3)) == (0.739, 0.919)


@given(st.integers(1, 3000), st.data())
def test_wilson_agrees_with_scipy(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    expected = scipy.stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert statistics.wilson(successes / n, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_has_a_width_where_all_passed() -> None:
    low, high = statistics.wilson(1.0, 10)
    assert low == pytest.approx(10 / (10 + 1.959964**2))
    assert high == 1.0


def test_wilson_refuses_no_trials() -> None:
    with pytest.raises(ValueError, match="at least one trial"):
        statistics.wilson(0.5, 0)


def test_standard_error_over_case_means_is_worked_by_hand() -> None:
    # mean 0.5; squared deviations 0.25 + 0 + 0.25 = 0.5; sqrt(0.5 / (3 * 2))
    assert statistics.standard_error([0.0, 0.5, 1.0]) == pytest.approx((0.5 / 6) ** 0.5)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_standard_error_agrees_with_scipy(values: list[float]) -> None:
    assert statistics.standard_error(values) == pytest.approx(scipy.stats.sem(values), abs=1e-12)


def test_one_value_has_no_standard_error() -> None:
    assert statistics.standard_error([0.4]) is None


def test_clustered_error_sums_deviations_within_each_cluster() -> None:
    # mean 0.5; cluster x: +0.5 +0.5 = 1, cluster y: -0.5 -0.5 = -1; sqrt(2/1 * (1 + 1)) / 4 = 0.5
    assert statistics.clustered_standard_error([1, 1, 0, 0], ["x", "x", "y", "y"]) == pytest.approx(0.5)
    # Deviations that cancel within each cluster leave nothing.
    assert statistics.clustered_standard_error([1, 0, 1, 0], ["x", "x", "y", "y"]) == 0


def test_clustered_error_follows_millers_double_sum() -> None:
    values, clusters = [0.2, 0.9, 0.4, 1.0, 0.0, 0.7], [1, 1, 2, 2, 2, 3]
    centre = sum(values) / 6
    double = sum(
        (values[i] - centre) * (values[j] - centre) for i in range(6) for j in range(6) if clusters[i] == clusters[j]
    )
    assert statistics.clustered_standard_error(values, clusters) == pytest.approx((3 / 2 * double / 36) ** 0.5)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_clusters_of_one_give_the_plain_standard_error(values: list[float]) -> None:
    clustered = statistics.clustered_standard_error(values, range(len(values)))
    assert clustered == pytest.approx(statistics.standard_error(values), abs=1e-12)


def test_pass_or_fail_gets_wilsons_interval() -> None:
    estimate = statistics.mean_estimate([1.0] * 51 + [0.0] * 9)
    assert (estimate.value, estimate.n, estimate.method) == (0.85, 60, "wilson")
    assert round(estimate.low or 0, 3) == 0.739


def test_case_means_get_students_t() -> None:
    values = [0.0, 0.5, 1.0, 0.5, 0.75]
    estimate = statistics.mean_estimate(values)
    expected = scipy.stats.t.interval(0.95, 4, loc=np.mean(values), scale=scipy.stats.sem(values))
    assert estimate.method == "t"
    assert (estimate.low, estimate.high) == pytest.approx((expected[0], 1.0))  # a share ends at one


def test_clusters_get_t_with_one_degree_less_than_clusters() -> None:
    values, clusters = [1, 0, 1, 1, 0, 1, 1, 1], ["a", "a", "b", "b", "c", "c", "d", "d"]
    estimate = statistics.mean_estimate(values, clusters)
    reach = scipy.stats.t.ppf(0.975, 3) * (statistics.clustered_standard_error(values, clusters) or 0)
    assert estimate.method == "clustered_t"
    assert estimate.low == pytest.approx(0.75 - reach)
    assert estimate.high == 1.0  # a share cannot be above one


def test_one_cluster_has_no_interval_and_says_so() -> None:
    estimate = statistics.mean_estimate([1, 0, 1], ["a", "a", "a"])
    assert (estimate.low, estimate.high, estimate.method) == (None, None, "none")
    assert "two clusters" in estimate.note


def test_equal_case_means_do_not_pretend_to_certainty() -> None:
    estimate = statistics.mean_estimate([0.5] * 10)
    assert estimate.method == "wilson"
    assert (estimate.low, estimate.high) == statistics.wilson(0.5, 10)


def test_nothing_scored_is_undefined_with_a_reason() -> None:
    assert statistics.mean_estimate([]) == statistics.Estimate(value=None, n=0, note="no case was scored")


@pytest.mark.parametrize(
    ("n", "c", "k", "at", "hat"),
    [
        (1, 1, 1, 1.0, 1.0),
        (5, 2, 1, 0.4, 0.4),
        (5, 2, 2, 1 - 3 / 10, 1 / 10),  # C(3,2) = 3, C(2,2) = 1, C(5,2) = 10
        (5, 2, 3, 1 - 1 / 10, 0.0),
        (5, 2, 4, 1.0, 0.0),
        (5, 0, 3, 0.0, 0.0),
        (3, 3, 3, 1.0, 1.0),
    ],
)
def test_pass_at_k_and_pass_hat_k_by_hand(n: int, c: int, k: int, at: float, hat: float) -> None:
    assert statistics.pass_at_k(n, c, k) == pytest.approx(at)
    assert statistics.pass_hat_k(n, c, k) == pytest.approx(hat)


@given(st.integers(1, 60), st.data())
def test_pass_at_k_and_pass_hat_k_are_hypergeometric(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    drawn = scipy.stats.hypergeom(n, c, k)
    assert statistics.pass_at_k(n, c, k) == pytest.approx(1 - drawn.pmf(0), abs=1e-9)
    assert statistics.pass_hat_k(n, c, k) == pytest.approx(drawn.pmf(k), abs=1e-9)


def test_fewer_attempts_than_k_leave_it_undefined() -> None:
    assert statistics.pass_at_k(2, 1, 3) is None
    assert statistics.pass_hat_k(2, 2, 3) is None


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_binomial_test(b: int, c: int) -> None:
    expected = scipy.stats.binomtest(b, b + c).pvalue if b + c else 1.0
    assert statistics.mcnemar_exact(b, c) == pytest.approx(expected, abs=1e-12)


def test_mcnemar_by_hand_and_for_many_flips() -> None:
    # 2 * (C(6,0) + C(6,1)) / 64
    assert statistics.mcnemar_exact(1, 5) == pytest.approx(14 / 64)
    assert statistics.mcnemar_exact(0, 0) == 1.0
    assert 0 < statistics.mcnemar_exact(5000, 5400) < 1e-4


def test_paired_difference_agrees_with_a_paired_t_test() -> None:
    a, b = [0.2, 0.9, 0.5, 1.0, 0.4], [0.1, 0.6, 0.6, 0.5, 0.4]
    found = statistics.paired_difference(a, b)
    reference = scipy.stats.ttest_rel(a, b)
    low, high = reference.confidence_interval(0.95)
    assert found.test == "paired_t"
    assert (found.difference, found.p_value) == pytest.approx((0.16, reference.pvalue))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_pass_or_fail_is_tested_by_mcnemar_and_counts_flips() -> None:
    a, b = [1, 1, 1, 1, 1, 0, 0, 1], [0, 0, 0, 0, 0, 1, 0, 1]
    found = statistics.paired_difference(a, b)
    assert (found.a_only, found.b_only, found.test) == (5, 1, "mcnemar")
    assert found.p_value == pytest.approx(14 / 64)
    assert found.difference == pytest.approx(0.5)


def test_clustered_pairs_are_not_tested_by_mcnemar() -> None:
    found = statistics.paired_difference([1, 1, 0, 1], [0, 0, 0, 1], ["x", "x", "y", "y"])
    assert found.test == "clustered_t"
    # d = 1, 1, 0, 0: mean 0.5, clusters +1 and -1, SE 0.5, t = 1 with one degree: p = 0.5
    assert (found.se, found.p_value) == pytest.approx((0.5, 0.5))


def test_equal_results_have_no_interval_and_say_why() -> None:
    found = statistics.paired_difference([1, 0, 1], [1, 0, 1])
    assert (found.difference, found.low, found.mde, found.p_value) == (0, None, None, 1.0)
    assert "spread" in found.note


def test_no_common_case_is_undefined() -> None:
    found = statistics.paired_difference([], [])
    assert (found.difference, found.p_value, found.test) == (None, None, "none")
    assert found.note == "no case was scored by both"


def test_minimum_detectable_effect_has_the_power_it_claims() -> None:
    se = 0.03
    effect = statistics.minimum_detectable_effect(se)
    assert effect == pytest.approx(2.80158 * se, rel=1e-5)
    assert 1 - scipy.stats.norm.cdf(1.959964 - effect / se) == pytest.approx(0.8, abs=1e-6)


def test_holm_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04 -> the last may not fall below
    # 0.06.
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert statistics.holm([0.6, 0.9]) == [1.0, 1.0]
    assert statistics.holm([]) == []


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.floats(0, 1))
def test_quantiles_agree_with_numpy(values: list[float], q: float) -> None:
    assert statistics.quantile(values, q) == pytest.approx(float(np.quantile(values, q)), abs=1e-6, rel=1e-9)


def test_quantile_of_nothing_is_undefined() -> None:
    assert statistics.quantile([], 0.5) is None


def test_importing_the_module_does_not_import_scipy() -> None:
    code = "import runs.results.statistics as s, sys; s.mean_estimate([1.0, 0.0]); sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
