"""Kappa, alpha, calibration and Bradley-Terry against hand-worked values and a library."""

import math

import pytest
from sklearn.metrics import cohen_kappa_score

from preferences.agreement import (
    bootstrap,
    calibration,
    cohen_kappa,
    correlation,
    figure,
    krippendorff_alpha,
    raw_agreement,
)
from preferences.ranking import Match, standings, strengths


def test_kappa_agrees_with_a_table_worked_by_hand() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: po 0.7, pe 0.5
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohen_kappa(pairs) == pytest.approx(0.4)
    assert cohen_kappa(pairs) == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))
    assert raw_agreement(pairs) == 0.7


def test_kappa_is_undefined_where_chance_alone_agrees() -> None:
    assert cohen_kappa([("a", "a")] * 5) is None
    assert cohen_kappa([]) is None
    assert figure([("a", "a")] * 5, cohen_kappa).note


def test_alpha_agrees_with_krippendorffs_own_example() -> None:
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


def test_alpha_is_one_for_full_and_below_nought_for_systematic_disagreement() -> None:
    assert krippendorff_alpha([("a", "a"), ("b", "b", "b")]) == 1
    assert krippendorff_alpha([("a", "b"), ("b", "a")]) < 0
    assert krippendorff_alpha([("a",), ("b",)]) is None
    assert krippendorff_alpha([("a", "a")]) is None


def test_calibration_error_is_the_weighted_distance() -> None:
    bins, error = calibration([(0.95, True), (0.95, True), (0.95, False), (0.95, True), (0.15, False)])
    assert [(item.n, item.right) for item in bins] == [(1, 0.0), (4, 0.75)]
    assert error == pytest.approx((4 * 0.2 + 1 * 0.15) / 5)
    assert calibration([]) == ([], None)


def test_correlation_needs_something_that_varies() -> None:
    assert correlation([(1, 2), (2, 4), (3, 6)]) == pytest.approx(1)
    assert correlation([(1, 2), (1, 3)]) is None


def test_intervals_hold_the_value_and_need_ten_units() -> None:
    units = [(True, True)] * 30 + [(False, True)] * 10
    low, high = bootstrap(units, raw_agreement)
    assert 0.55 < low < 0.75 < high < 0.92
    assert bootstrap(units[:9], raw_agreement) is None


def test_two_models_get_the_odds_of_their_wins() -> None:
    # 30 wins to 10, with half a win added on either side: odds 30.5 to 10.5
    matches = [Match("a", "b", 1.0, i) for i in range(30)] + [Match("a", "b", 0.0, 30 + i) for i in range(10)]
    found = strengths(matches)
    assert found["a"] - found["b"] == pytest.approx(400 * math.log10(30.5 / 10.5), abs=0.01)
    assert found["a"] + found["b"] == pytest.approx(0, abs=1e-6)


def test_ties_are_half_a_win_and_order_does_not_matter() -> None:
    tie = strengths([Match("a", "b", 0.5, 1)])
    assert tie["a"] == pytest.approx(tie["b"])
    assert strengths([Match("a", "b", 1.0, 1)]) == pytest.approx(strengths([Match("b", "a", 0.0, 1)]))


def test_standings_are_ordered_with_intervals_over_cases() -> None:
    matches = [Match("a", "b", 1.0 if i % 4 else 0.0, i) for i in range(40)]
    matches += [Match("b", "c", 1.0 if i % 4 else 0.0, i) for i in range(40)]
    rows = standings(matches, resamples=50)
    assert [row.name for row in rows] == ["a", "b", "c"]
    assert all(row.low < row.strength < row.high for row in rows)
    assert standings(matches[:5])[0].low is None
