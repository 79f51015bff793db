"""The statistics of runs: intervals, pass@k, paired tests. Pure functions of numbers; docs/statistics.md
explains them.

Everything is two-sided at 95 %. A value that is undefined is None, never NaN, and comes with the reason where
it is shown. scipy takes a third of a second to import, so that the two functions that need it load it
themselves.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

CONFIDENCE = 0.95
POWER = 0.80
_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
_Z_POWER = NormalDist().inv_cdf(POWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over cases. `low` and `high` are None where no interval is defined, and `note` says why.

    `method` is wilson, t, clustered_t or none.
    """

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    method: str = "none"
    se: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Means of *a* and *b* over the cases both scored, and a - b. `p_value` is exact McNemar's, or that of
    `test`.

    `b_only` and `a_only` count the cases that only one of them passed; `mde` is the least difference that
    this many cases would show with 80 % power.
    """

    n: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    se: float | None
    low: float | None
    high: float | None
    a_only: int
    b_only: int
    p_value: float | None
    test: str
    mde: float | None
    note: str = ""


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def quantile(values: Sequence[float], q: float) -> float | None:
    """The *q* quantile (0 to 1) by linear interpolation between order statistics; None of nothing.

    Hyndman and Fan's type 7, the default of numpy.quantile and of R.
    """
    if not values:
        return None
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


# ---- means and their intervals -----------------------------------------------------------------------------


def wilson(proportion: float, n: int) -> tuple[float, float]:
    """Wilson's score interval of a *proportion* seen in *n* trials (Wilson 1927; n > 0).

    (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n). Unlike the normal interval it keeps its coverage for
    few trials and has a width at 0 and 1.
    """
    if n < 1:
        raise ValueError("Wilson's interval needs at least one trial.")
    squared = _Z * _Z
    centre = proportion + squared / (2 * n)
    spread = _Z * math.sqrt(max(proportion * (1 - proportion), 0.0) / n + squared / (4 * n * n))
    scale = 1 + squared / n
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def standard_error(values: Sequence[float]) -> float | None:
    """Standard error of the mean: sqrt(sum((s_i - mean)²) / (n(n-1))) (Miller, arXiv 2411.00640); None for n
    < 2.
    """
    n = len(values)
    if n < 2:
        return None
    centre = math.fsum(values) / n
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (n * (n - 1)))


def clustered_standard_error(values: Sequence[float], clusters: Sequence[Hashable]) -> float | None:
    """Standard error of the mean where values of one cluster go together; None for fewer than two clusters.

    Miller's sum over pairs within a cluster equals the squared sum of the cluster's deviations, so that SE =
    sqrt(C/(C-1) sum_c (sum_i (s_ic - mean))²) / n. The factor C/(C-1) corrects for few clusters and makes
    clusters of one give exactly `standard_error`.
    """
    if len(values) != len(clusters):
        raise ValueError("Every value needs a cluster.")
    deviations: dict[Hashable, float] = defaultdict(float)
    centre = math.fsum(values) / len(values) if values else 0.0
    for value, cluster in zip(values, clusters, strict=True):
        deviations[cluster] += value - centre
    count = len(deviations)
    if count < 2:
        return None
    return math.sqrt(count / (count - 1) * math.fsum(total**2 for total in deviations.values())) / len(values)


def mean_estimate(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Estimate:
    """The mean of the cases' means, each from 0 to 1, and its interval.

    Pass or fail (all values 0 or 1): Wilson. Else Student's t with n - 1 degrees; with *clusters*, the
    clustered error with C - 1. Where all values are equal the error is 0 and says nothing, so Wilson's
    interval over the cases (or clusters) stands in: it is the widest that values from 0 to 1 can need.
    """
    n = len(values)
    value = mean(values)
    if value is None:
        return Estimate(value=None, n=0, note="no case was scored")
    if clusters is not None:
        count = len(set(clusters))
        if count < 2:
            return Estimate(value=value, n=n, note="n/a: a clustered interval needs two clusters or more")
        return _t_estimate(value, n, clustered_standard_error(values, clusters), count, "clustered_t")
    if all(item in (0.0, 1.0) for item in values):
        low, high = wilson(value, n)
        return Estimate(value=value, n=n, low=low, high=high, method="wilson", se=standard_error(values))
    return _t_estimate(value, n, standard_error(values), n, "t")


def _t_estimate(value: float, n: int, se: float | None, units: int, method: str) -> Estimate:
    if not se:
        low, high = wilson(value, units)
        return Estimate(value=value, n=n, low=low, high=high, method="wilson", se=se)
    reach = t_quantile(0.5 + CONFIDENCE / 2, units - 1) * se
    return Estimate(value=value, n=n, low=max(0.0, value - reach), high=min(1.0, value + reach), method=method, se=se)


def t_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t with *degrees* of freedom."""
    from scipy.special import stdtrit  # slow to import, and needed by few runs

    return float(stdtrit(degrees, probability))


def t_two_sided(statistic: float, degrees: int) -> float:
    """P(|T| >= |statistic|) for Student's t with *degrees* of freedom."""
    from scipy.special import stdtr  # slow to import, and needed by few runs

    return min(1.0, 2 * float(stdtr(degrees, -abs(statistic))))


# ---- several attempts --------------------------------------------------------------------------------------


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Chance that at least one of *k* attempts passes, when *c* of *n* did; None when n < k.

    The unbiased estimate 1 - C(n-c, k) / C(n, k) of Chen et al., arXiv 2107.03374.
    """
    return None if n < k else 1 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Chance that all of *k* attempts pass, when *c* of *n* did; None when n < k.

    pass^k = C(c, k) / C(n, k) of Yao et al., arXiv 2406.12045.
    """
    return None if n < k else math.comb(c, k) / math.comb(n, k)


# ---- two runs ----------------------------------------------------------------------------------------------


def mcnemar_exact(b: int, c: int) -> float:
    """McNemar's exact two-sided p for *b* and *c* cases that flipped either way: min(1, 2 P(Bin(b+c, 1/2) <=
    min(b, c))).

    Whole numbers all the way, so that it holds for thousands of flips. No flips: 1.
    """
    n = b + c
    term = total = 1
    for i in range(min(b, c)):
        term = term * (n - i) // (i + 1)
        total += term
    return min(1.0, 2 * total / 2**n)


def minimum_detectable_effect(se: float) -> float:
    """The least true difference that a two-sided 5 % test finds with 80 % power: (z_0.975 + z_0.8) SE
    (Miller, section 5).

    *se* is the standard error of the difference.
    """
    return (_Z + _Z_POWER) * se


def paired_difference(
    a: Sequence[float], b: Sequence[float], clusters: Sequence[Hashable] | None = None
) -> PairedDifference:
    """Compare means per case, from 0 to 1, of the cases that both scored, in the same order.

    The interval is that of the mean of d_i = a_i - b_i, by Student's t. Pass or fail without clusters is
    tested by exact McNemar; else by the t of the differences, because McNemar knows neither parts nor
    clusters.
    """
    n = len(a)
    differences = [x - y for x, y in zip(a, b, strict=True)]
    a_only = sum(d > 0 for d in differences)
    b_only = sum(d < 0 for d in differences)
    difference = mean(differences)
    se = clustered_standard_error(differences, clusters) if clusters is not None else standard_error(differences)
    units = n if clusters is None else len(set(clusters))
    low = high = mde = None
    note = ""
    if difference is None:
        note = "no case was scored by both"
    elif se is None:
        note = f"an interval needs two {'cases' if clusters is None else 'clusters'} or more"
    elif se == 0:
        note = "every case differs by the same, so nothing is known of the spread"
    else:
        reach = t_quantile(0.5 + CONFIDENCE / 2, units - 1) * se
        low, high = max(-1.0, difference - reach), min(1.0, difference + reach)
        mde = minimum_detectable_effect(se)
    p_value, test = None, "none"
    if n and clusters is None and all(value in (0.0, 1.0) for value in (*a, *b)):
        p_value, test = mcnemar_exact(a_only, b_only), "mcnemar"
    elif difference is not None and se:
        p_value = t_two_sided(difference / se, units - 1)
        test = "paired_t" if clusters is None else "clustered_t"
    return PairedDifference(
        n=n,
        mean_a=mean(a),
        mean_b=mean(b),
        difference=difference,
        se=se,
        low=low,
        high=high,
        a_only=a_only,
        b_only=b_only,
        p_value=p_value,
        test=test,
        mde=mde,
        note=note,
    )


def holm(p_values: Iterable[float]) -> list[float]:
    """Holm's step-down adjusted p values, in the given order (Holm 1979).

    The i-th smallest of m becomes max over j <= i of (m - j + 1) p_(j), at most 1.
    """
    given = list(p_values)
    adjusted = [0.0] * len(given)
    highest = 0.0
    for rank, i in enumerate(sorted(range(len(given)), key=given.__getitem__)):
        highest = max(highest, min(1.0, (len(given) - rank) * given[i]))
        adjusted[i] = highest
    return adjusted
