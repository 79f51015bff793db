"""Statistics against values computed by hand and by scipy and numpy."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from runs.results.statistics.mean_intervals import (
    Estimate,
    clustered_standard_error,
    effective_sample_size,
    mean_estimate,
    quantile,
    standard_error,
)
from runs.results.statistics.paired import holm, mcnemar_exact, paired_difference, paired_interval, tango
from runs.results.statistics.pass_at_k import pass_at_k, pass_hat_k
from runs.results.statistics.power import minimum_detectable_effect
from runs.results.statistics.proportion_intervals import wilson


def test_wilson_gives_the_values_worked_by_hand() -> None:
    # p = 0.85, n = 60, z = 1.959964: centre (0.85 + 0.0320122) / 1.0640244, spread 0.0898594 + ...
    low, high = wilson(51 / 60, 60)
    assert (round(low, 3), round(high, 3)) == (0.739, 0.919)


@given(st.integers(1, 3000), st.data())
def test_wilson_agrees_with_scipy(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    expected = scipy.stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes / n, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_interval_has_a_width_if_all_passed() -> None:
    low, high = wilson(1.0, 10)
    assert low == pytest.approx(10 / (10 + 1.959964**2))
    assert high == 1.0


def test_wilson_refuses_no_trials() -> None:
    with pytest.raises(ValueError, match="at least one trial"):
        wilson(0.5, 0)


def test_standard_error_over_case_means_is_worked_by_hand() -> None:
    # mean 0.5; squared deviations 0.25 + 0 + 0.25 = 0.5; sqrt(0.5 / (3 * 2))
    assert standard_error([0.0, 0.5, 1.0]) == pytest.approx((0.5 / 6) ** 0.5)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_standard_error_agrees_with_scipy(values: list[float]) -> None:
    assert standard_error(values) == pytest.approx(scipy.stats.sem(values), abs=1e-12)


def test_one_value_has_no_standard_error() -> None:
    assert standard_error([0.4]) is None


def test_clustered_error_sums_deviations_within_each_cluster() -> None:
    # mean 0.5; cluster x: +0.5 +0.5 = 1, cluster y: -0.5 -0.5 = -1; sqrt(2/1 * (1 + 1)) / 4 = 0.5
    assert clustered_standard_error([1, 1, 0, 0], ["x", "x", "y", "y"]) == pytest.approx(0.5)
    # Deviations that cancel within each cluster leave nothing.
    assert clustered_standard_error([1, 0, 1, 0], ["x", "x", "y", "y"]) == 0


def test_clustered_error_follows_millers_double_sum() -> None:
    values, clusters = [0.2, 0.9, 0.4, 1.0, 0.0, 0.7], [1, 1, 2, 2, 2, 3]
    centre = sum(values) / 6
    double = sum(
        (values[i] - centre) * (values[j] - centre) for i in range(6) for j in range(6) if clusters[i] == clusters[j]
    )
    assert clustered_standard_error(values, clusters) == pytest.approx((3 / 2 * double / 36) ** 0.5)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_clusters_of_one_give_the_plain_standard_error(values: list[float]) -> None:
    clustered = clustered_standard_error(values, range(len(values)))
    assert clustered == pytest.approx(standard_error(values), abs=1e-12)


def test_pass_or_fail_gets_wilsons_interval() -> None:
    estimate = mean_estimate([1.0] * 51 + [0.0] * 9)
    assert (estimate.value, estimate.n, estimate.method) == (0.85, 60, "wilson")
    assert round(estimate.low or 0, 3) == 0.739


@pytest.mark.parametrize(
    ("passed", "n", "expected"),
    [
        # statsmodels.stats.proportion.proportion_confint(method="agresti_coull")
        (40, 42, (0.833514, 0.995430)),
        (1, 20, (0.0, 0.254115)),
        (3, 10, (0.103338, 0.607675)),
    ],
)
def test_one_to_three_passes_or_failures_get_agresti_and_coulls_interval(
    passed: int, n: int, expected: tuple[float, float]
) -> None:
    estimate = mean_estimate([1.0] * passed + [0.0] * (n - passed))
    assert (estimate.low, estimate.high) == pytest.approx(expected, abs=1e-6)
    assert estimate.method == "agresti_coull"


def test_all_passed_gets_wilsons_interval() -> None:
    estimate = mean_estimate([1.0] * 46)
    assert (estimate.low, estimate.high, estimate.method) == (pytest.approx(0.922926, abs=1e-6), 1.0, "wilson")


def test_effective_sample_size_by_hand() -> None:
    # 30 cases of one attempt, half of them passed: 0.25 / se² is 29 with n - 1 in the standard error, so the least, 30
    # independent trials, is kept.
    se = standard_error([1.0] * 15 + [0.0] * 15)
    assert effective_sample_size(0.25, se, [1] * 30, 15) == 30
    # With se² = 0.25 / 100 and 15 events: 1 / (15/16 / 100 + 1/16 / 30) times (1.959964 / 2.045230)²
    found = effective_sample_size(0.25, 0.05, [1] * 30, 15)
    assert found == pytest.approx(1 / (15 / 16 / 100 + 1 / 16 / 30) * (1.959964 / 2.045230) ** 2, rel=1e-5)


def test_effective_sample_size_of_clusters_that_answer_as_one_is_their_number_less_one() -> None:
    assert effective_sample_size(0.25, None, [5, 5, 5, 5], 4) == 3
    assert effective_sample_size(0.25, 0.25, [5, 5, 5, 5], 4) == 3  # 0.25 / 0.25² is 4
    # Kish: (8 + 1 + 1)² / (64 + 1 + 1) = 1.515, less one, but never below one trial
    assert effective_sample_size(0.25, None, [8, 1, 1], 3) == 1


def test_attempts_that_vary_freely_count_more_than_one_trial_a_case() -> None:
    values = [0.8, 1.0, 0.6, 0.8, 1.0, 0.8, 0.4, 1.0, 0.8, 1.0] * 4
    estimate = mean_estimate(values)
    assert estimate.method == "wilson_effective_n"
    assert 40 < (estimate.effective_n or 0) < 200
    assert (estimate.low, estimate.high) == wilson(estimate.value or 0, estimate.effective_n or 0)


def test_attempts_near_one_get_an_interval_that_is_wider_than_students_t() -> None:
    values = [1.0] * 49 + [0.8]
    estimate = mean_estimate(values)
    low, _ = scipy.stats.t.interval(0.95, 49, loc=np.mean(values), scale=scipy.stats.sem(values))
    assert (estimate.low or 1) < low - 0.03
    assert estimate.method == "agresti_coull_effective_n"


def test_clusters_widen_the_interval() -> None:
    values = [1.0] * 30 + [0.0] * 30
    plain = mean_estimate(values)
    alike = mean_estimate(values, [i // 6 for i in range(60)])
    mixed = mean_estimate(values, [i % 10 for i in range(60)])
    assert (alike.method, alike.effective_n) == ("wilson_clustered", 9)
    assert (alike.low, alike.high) == wilson(0.5, 9)
    assert (mixed.low or 0) < (plain.low or 0) < 0.5


def test_one_cluster_has_a_note_instead_of_an_interval() -> None:
    estimate = mean_estimate([1, 0, 1], ["a", "a", "a"])
    assert (estimate.low, estimate.high, estimate.method) == (None, None, "none")
    assert "two clusters" in estimate.note


def test_equal_case_means_count_as_one_trial_each() -> None:
    estimate = mean_estimate([0.5] * 10)
    assert (estimate.method, estimate.effective_n) == ("wilson_effective_n", 10)
    assert (estimate.low, estimate.high) == wilson(0.5, 10)


def test_nothing_scored_is_undefined_with_a_reason() -> None:
    assert mean_estimate([]) == Estimate(value=None, n=0, note="no case was scored")


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
    assert pass_at_k(n, c, k) == pytest.approx(at)
    assert pass_hat_k(n, c, k) == pytest.approx(hat)


@given(st.integers(1, 60), st.data())
def test_pass_at_k_and_pass_hat_k_are_hypergeometric(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    drawn = scipy.stats.hypergeom(n, c, k)
    assert pass_at_k(n, c, k) == pytest.approx(1 - drawn.pmf(0), abs=1e-9)
    assert pass_hat_k(n, c, k) == pytest.approx(drawn.pmf(k), abs=1e-9)


def test_fewer_attempts_than_k_leave_it_undefined() -> None:
    assert pass_at_k(2, 1, 3) is None
    assert pass_hat_k(2, 2, 3) is None


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_binomial_test(b: int, c: int) -> None:
    expected = scipy.stats.binomtest(b, b + c).pvalue if b + c else 1.0
    assert mcnemar_exact(b, c) == pytest.approx(expected, abs=1e-12)


def test_mcnemar_by_hand_and_for_many_flips() -> None:
    # 2 * (C(6,0) + C(6,1)) / 64
    assert mcnemar_exact(1, 5) == pytest.approx(14 / 64)
    assert mcnemar_exact(0, 0) == 1.0
    assert 0 < mcnemar_exact(5000, 5400) < 1e-4


@pytest.mark.parametrize(
    ("b", "c", "n", "expected"),
    [
        # Airway hyper-responsiveness before and after stem cell transplantation: Fagerland, Lydersen and Laake,
        # Statistics in Medicine 33 (2014), table V
        (1, 7, 21, (-0.517, -0.026)),
        # PropCIs::scoreci.mp(b = 40, c = 20, n = 160)
        (40, 20, 160, (0.0309, 0.2181)),
        # No flips: z² / (n + z²) either way, as Wilson's bound of no passes
        (0, 0, 20, (-0.1611, 0.1611)),
    ],
)
def test_tango_gives_published_values(b: int, c: int, n: int, expected: tuple[float, float]) -> None:
    assert tango(b, c, n) == pytest.approx(expected, abs=6e-4)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 100))
def test_tango_ends_where_the_score_under_the_likeliest_flips_is_1_96(b: int, c: int, more: int) -> None:
    n = b + c + more

    def score(difference: float) -> float:
        def unlikely(q: float) -> float:
            cells = ((b, q + difference), (c, q), (more, 1 - 2 * q - difference))
            return -sum(count * np.log(max(p, 1e-300)) for count, p in cells if count)

        least, most = max(0.0, -difference), (1 - difference) / 2
        q = scipy.optimize.minimize_scalar(unlikely, bounds=(least, most), method="bounded", options={"xatol": 1e-12}).x
        return (b - c - n * difference) / np.sqrt(n * (2 * q + difference * (1 - difference)))

    low, high = tango(b, c, n)
    assert score(low) == pytest.approx(1.959964, abs=0.01)
    assert score(high) == pytest.approx(-1.959964, abs=0.01)


def test_four_flips_one_way_leave_zero_in_the_interval() -> None:
    found = paired_difference([1.0] * 4 + [0.0] * 42, [0.0] * 46)
    assert (found.p_value, found.low, found.method) == (0.125, 0.0, "tango")
    assert found.high == pytest.approx(0.2032, abs=1e-4)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 300))
def test_interval_and_exact_mcnemar_agree_about_zero(b: int, c: int, same: int) -> None:
    n = max(1, b + c + same)
    found = paired_interval([1.0] * b + [0.0] * (n - b), [0.0] * b + [1.0] * c + [0.0] * (n - b - c))
    assert found is not None
    assert (found.low <= 0 <= found.high) == (found.p_value >= 0.05)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=40))
def test_interval_and_score_test_agree_about_zero(cases: list[tuple[int, int, int]]) -> None:
    a, b = [x / 3 for x, _, _ in cases], [y / 3 for _, y, _ in cases]
    for clusters in (None, [cluster for _, _, cluster in cases]):
        found = paired_interval(a, b, clusters)
        if found is not None and abs(found.p_value - 0.05) > 1e-9:
            assert (found.low <= 0 <= found.high) == (found.p_value >= 0.05)


def test_paired_attempts_are_near_the_paired_t_if_there_are_many_differences() -> None:
    draw = np.random.default_rng(1)
    a, b = draw.binomial(5, 0.6, 400) / 5, draw.binomial(5, 0.5, 400) / 5
    found = paired_difference(a.tolist(), b.tolist())
    low, high = scipy.stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (found.test, found.method) == ("paired_score", "tango_effective_n")
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.002)


def test_pass_or_fail_is_tested_by_mcnemar_and_counts_flips() -> None:
    a, b = [1, 1, 1, 1, 1, 0, 0, 1], [0, 0, 0, 0, 0, 1, 0, 1]
    found = paired_difference(a, b)
    assert (found.a_only, found.b_only, found.test) == (5, 1, "mcnemar")
    assert found.p_value == pytest.approx(14 / 64)
    assert found.difference == pytest.approx(0.5)


def test_clustered_pairs_are_not_tested_by_mcnemar() -> None:
    found = paired_difference([1, 1, 0, 1], [0, 0, 0, 1], ["x", "x", "y", "y"])
    assert (found.test, found.method, found.se) == ("clustered_score", "tango_clustered", pytest.approx(0.5))
    # Two clusters whose cases go together are one independent pair.
    assert (found.effective_n, found.p_value) == (1, 1.0)
    many = paired_difference([1, 1, 0, 1, 0, 1] * 10, [0, 0, 0, 1, 1, 1] * 10, [i // 2 for i in range(60)])
    assert many.p_value == pytest.approx(2 * scipy.stats.norm.sf(10 / 60 * (many.effective_n / 0.5) ** 0.5))


def test_equal_results_have_an_interval_and_a_detectable_effect() -> None:
    found = paired_difference([1.0] * 20, [1.0] * 20)
    assert (found.difference, found.p_value, found.note) == (0, 1.0, "")
    assert (found.low, found.high) == pytest.approx((-0.1611, 0.1611), abs=1e-4)
    # Six flips one way are significant: P(Bin(20, 0.366) >= 6) = 0.8
    assert scipy.stats.binom.sf(5, 20, found.mde) == pytest.approx(0.8, abs=1e-3)


def test_fewer_than_six_cases_cannot_show_a_difference() -> None:
    found = paired_difference([1.0] * 5, [0.0] * 5)
    assert (found.p_value, found.mde) == (0.0625, None)
    assert found.note == "fewer than 6 independent cases cannot show a difference"


@pytest.mark.parametrize(
    ("a", "clusters"),
    [
        ([1, 1, 1, 0.8], None),
        ([1] * 10, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
    ],
)
def test_fewer_than_six_effective_cases_cannot_show_a_difference(a: list[float], clusters: list[int] | None) -> None:
    found = paired_difference(a, [0.0] * len(a), clusters)
    assert found.effective_n < 6 and found.note == "fewer than 6 independent cases cannot show a difference"
    assert found.p_value == 2.0 ** (1 - math.floor(found.effective_n * found.difference)) >= 0.05
    assert found.low == 0


def test_few_flips_in_clusters_of_one_show_no_more_than_without_clusters() -> None:
    a, b = [1.0] * 20, [0.0] * 5 + [1.0] * 15
    alone, clustered = paired_difference(a, b), paired_difference(a, b, range(20))
    assert (clustered.test, clustered.p_value) == ("clustered_score", alone.p_value) == ("clustered_score", 0.0625)
    assert (clustered.low, clustered.high) == pytest.approx((0, alone.high))


def test_no_common_case_is_undefined() -> None:
    found = paired_difference([], [])
    assert (found.difference, found.p_value, found.test) == (None, None, "none")
    assert found.note == "no case was scored by both"


@pytest.mark.parametrize(("flip_rate", "n"), [(0.1, 200), (0.0, 30), (0.3, 50)])
def test_minimum_detectable_effect_has_the_power_it_claims(flip_rate: float, n: int) -> None:
    effect = minimum_detectable_effect(flip_rate, n) or 0
    rate = max(flip_rate, effect)
    drawn = np.random.default_rng(0).multinomial(n, [(rate + effect) / 2, (rate - effect) / 2, 1 - rate], size=20_000)
    results, counts = np.unique(drawn[:, :2], axis=0, return_counts=True)
    significant = [mcnemar_exact(b, c) < 0.05 for b, c in results.tolist()]
    assert (counts * significant).sum() / 20_000 == pytest.approx(0.8, abs=0.01)


def test_minimum_detectable_effect_of_many_cases_with_few_flips_is_as_precise() -> None:
    # All flips go one way, and six are significant.
    effect = minimum_detectable_effect(0.0, 200_000) or 0
    assert scipy.stats.poisson.sf(5, 200_000 * effect) == pytest.approx(0.8, abs=1e-3)


def test_minimum_detectable_effect_of_many_flips_is_millers() -> None:
    assert minimum_detectable_effect(0.5, 100_000) == pytest.approx(2.80158 * (0.5 / 100_000) ** 0.5, rel=1e-5)
    assert minimum_detectable_effect(0.4, 10_000) == pytest.approx(2.80158 * (0.4 / 10_000) ** 0.5, rel=0.02)


def test_holm_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04 -> the last may not fall below
    # 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.floats(0, 1))
def test_quantiles_agree_with_numpy(values: list[float], q: float) -> None:
    assert quantile(values, q) == pytest.approx(float(np.quantile(values, q)), abs=1e-6, rel=1e-9)


def test_quantile_of_nothing_is_undefined() -> None:
    assert quantile([], 0.5) is None


@pytest.mark.exhaustive
def test_every_interval_has_the_coverage_it_claims() -> None:
    benchmark = Path(__file__).parents[3] / "benchmarks" / "interval_coverage.py"
    done = subprocess.run([sys.executable, benchmark, "--quick"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("Every bound holds.\n")


def least_coverage(n: int) -> float:
    """Return the least coverage of the interval of an accuracy of *n* cases over all p; it is next to a bound."""
    found = [mean_estimate([1.0] * passed + [0.0] * (n - passed)).bounds or (0.0, 1.0) for passed in range(n + 1)]
    near = [bound + step for bounds in found for bound in bounds for step in (-1e-9, 1e-9)]
    return min(
        sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k, (low, high) in enumerate(found) if low <= p <= high)
        for p in near
        if 0 < p < 1
    )


def test_documentation_has_the_least_coverage_of_few_cases() -> None:
    docs = (Path(__file__).parents[3] / "docs" / "statistics.md").read_text()
    (row,) = [line for line in docs.splitlines() if line.startswith("| least coverage |")]
    assert row.split(" | ")[1:] == [f"{100 * least_coverage(n):.1f} %" for n in range(1, 9)] + [
        f"{100 * least_coverage(9):.1f} % |"
    ]


def test_least_coverage_from_ten_cases_on_is_at_thirteen() -> None:
    coverages = {n: least_coverage(n) for n in range(10, 60)}
    assert min(coverages, key=coverages.__getitem__) == 13
    assert coverages[13] == pytest.approx(0.909, abs=5e-4)


def test_importing_the_module_does_not_import_scipy() -> None:
    code = (
        "import sys, runs.results.statistics.mean_intervals as m; m.mean_estimate([1.0, 0.0]); "
        "sys.exit('scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
