"""Comparison of two models on the same cases: difference, interval and test."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from runs.results.statistics.confidence_level import CONFIDENCE, Z
from runs.results.statistics.mean_intervals import (
    cluster_sizes,
    count_clusters,
    effective_sample_size,
    mean,
    standard_error_of,
)
from runs.results.statistics.power import LEAST_PAIRS, minimum_detectable_effect


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Means of *a* and *b* over the cases both scored, and their difference a - b.

    `a_only` and `b_only` count the cases that went better on one side. `method` names the interval: tango,
    tango_effective_n, tango_clustered or none. `test` names the test of no difference: mcnemar, paired_score,
    clustered_score or none. The interval excludes 0 if and only if `p_value` is below 0.05. `mde` is the smallest true
    difference that a comparison of this size finds with 80 % power.
    """

    n: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    se: float | None
    low: float | None
    high: float | None
    method: str
    effective_n: float | None
    a_only: int
    b_only: int
    p_value: float | None
    test: str
    mde: float | None
    note: str = ""


def paired_difference(
    a: Sequence[float], b: Sequence[float], clusters: Sequence[Hashable] | None = None
) -> PairedDifference:
    """Compare the cases' means, each from 0 to 1, of the cases that both scored, in the same order."""
    n = len(a)
    differences = [x - y for x, y in zip(a, b, strict=True)]
    found = paired_interval(a, b, clusters)
    mde = None
    note = ""
    if not differences:
        note = "no case was scored by both"
    elif found is None:
        note = "an interval needs two clusters or more"
    else:
        mde = minimum_detectable_effect(math.fsum(map(abs, differences)) / n, math.floor(found.effective_n))
        if mde is None:
            note = f"fewer than {LEAST_PAIRS} independent cases cannot show a difference"
    return PairedDifference(
        n=n,
        mean_a=mean(a),
        mean_b=mean(b),
        difference=mean(differences),
        se=standard_error_of(differences, clusters),
        low=found.low if found else None,
        high=found.high if found else None,
        method=found.method if found else "none",
        effective_n=found.effective_n if found else None,
        a_only=sum(d > 0 for d in differences),
        b_only=sum(d < 0 for d in differences),
        p_value=found.p_value if found else None,
        test=found.test if found else "none",
        mde=mde,
        note=note,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedInterval:
    """Interval of a mean difference and the test of no difference that agrees with it about 0."""

    low: float
    high: float
    method: str
    p_value: float
    test: str
    effective_n: float
    se: float | None


def paired_interval(
    a: Sequence[float], b: Sequence[float], clusters: Sequence[Hashable] | None = None
) -> PairedInterval | None:
    """Return the interval and test of the mean of a - b; None without cases or with only one cluster.

    Pass or fail without clusters: exact McNemar and Tango's interval over the cases. Otherwise Tango's interval and the
    score test that it inverts, over the effective sample size; p is at least 2^(1-m), the least that exact McNemar can
    have with m flips, the effective number of them. Both intervals are widened to 0 if the test does not reject it.
    """
    n = len(a)
    differences = [x - y for x, y in zip(a, b, strict=True)]
    difference = mean(differences)
    sizes = cluster_sizes(n, clusters)
    if difference is None or (clusters is not None and len(sizes) < 2):
        return None
    se = standard_error_of(differences, clusters)
    if clusters is None and all(value in (0.0, 1.0) for value in (*a, *b)):
        a_only, b_only = differences.count(1), differences.count(-1)
        low, high = tango(a_only, b_only, n)
        p_value = mcnemar_exact(a_only, b_only)
        low, high = _widened(low, high, p_value)
        return PairedInterval(
            low=low, high=high, method="tango", p_value=p_value, test="mcnemar", effective_n=float(n), se=se
        )
    flip_rate = math.fsum(map(abs, differences)) / n
    events = count_clusters((d != 0 for d in differences), clusters)
    effective = effective_sample_size(flip_rate - difference**2, se, sizes, events)
    low, high = tango(effective * (flip_rate + difference) / 2, effective * (flip_rate - difference) / 2, effective)
    # The score test alone would call two models different after four flips, which all go one way by chance in 12.5 % of
    # comparisons.
    flips = max(1, math.floor(effective * flip_rate + 1e-9))
    p_value = max(score_test(difference, flip_rate, effective), 2.0 ** (1 - flips))
    low, high = _widened(low, high, p_value)
    return PairedInterval(
        low=low,
        high=high,
        method="tango_effective_n" if clusters is None else "tango_clustered",
        p_value=p_value,
        test="paired_score" if clusters is None else "clustered_score",
        effective_n=effective,
        se=se,
    )


def _widened(low: float, high: float, p_value: float) -> tuple[float, float]:
    """Return an interval that contains 0 unless *p_value* rejects it."""
    return (low, high) if p_value < 1 - CONFIDENCE else (min(low, 0.0), max(high, 0.0))


def tango(b: float, c: float, n: float) -> tuple[float, float]:
    """Return Tango's score interval of the difference of two paired proportions (Tango 1998).

    Of *n* pairs, *b* passed on the first side only and *c* on the second side only. All three may be effective numbers.
    The interval holds every difference D with |b - c - nD| <= z sqrt(n (2q + D(1 - D))), where q is the most likely
    share of c under D: the larger root of 2n q² - (b + c - (2n - b + c) D) q - cD(1 - D) = 0.
    """
    if n <= 0:
        raise ValueError("Tango's interval needs at least one pair.")
    centre = (b - c) / n

    def rejected(difference: float) -> bool:
        linear = b + c - (2 * n - b + c) * difference
        product = difference * (1 - difference)
        q = max(0.0, (linear + math.sqrt(max(0.0, linear * linear + 8 * n * c * product))) / (4 * n))
        return abs(b - c - n * difference) > Z * math.sqrt(max(0.0, n * (2 * q + product)))

    return _boundary(rejected, centre, -1.0), _boundary(rejected, centre, 1.0)


def _boundary(rejected: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return the last value on the way from *inside* to *outside* that is not rejected, by bisection."""
    if not rejected(outside):
        return outside
    for _ in range(60):
        middle = (inside + outside) / 2
        if rejected(middle):
            outside = middle
        else:
            inside = middle
    return inside


def mcnemar_exact(b: int, c: int) -> float:
    """Return McNemar's exact two-sided p if *b* cases flipped one way and *c* the other; 1 without flips.

    min(1, 2 P(Bin(b+c, 1/2) <= min(b, c))), computed in integers so that it is exact for thousands of flips.
    """
    n = b + c
    term = total = 1
    for i in range(min(b, c)):
        term = term * (n - i) // (i + 1)
        total += term
    return min(1.0, float(2 * total / 2**n))


def score_test(difference: float, flip_rate: float, n: float) -> float:
    """Return the two-sided p of no difference that Tango's interval inverts: z = D sqrt(n / flip_rate).

    For whole numbers of flips this is McNemar's test without continuity correction.
    """
    return math.erfc(abs(difference) * math.sqrt(n / flip_rate) / math.sqrt(2)) if difference else 1.0


def holm(p_values: Iterable[float]) -> list[float]:
    """Return Holm's step-down adjusted p values, in the given order (Holm 1979).

    The i-th smallest of m becomes max over j <= i of (m - j + 1) p_(j), at most 1.
    """
    given = list(p_values)
    adjusted = [0.0] * len(given)
    highest = 0.0
    for rank, i in enumerate(sorted(range(len(given)), key=given.__getitem__)):
        highest = max(highest, min(1.0, (len(given) - rank) * given[i]))
        adjusted[i] = highest
    return adjusted
