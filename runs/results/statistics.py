"""Statistics of runs: intervals, pass@k, paired tests. docs/statistics.md explains them.

All functions are pure. Intervals and tests are two-sided at 95 %. An undefined value is None, never NaN, and the result
says why. `benchmarks/coverage.py` simulates the coverage of every interval. scipy takes a third of a second to import,
so only the functions that need it import it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

CONFIDENCE = 0.95
POWER = 0.80
_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
_Z_POWER = NormalDist().inv_cdf(POWER)
_FEW = 4  # passes or failures; with fewer, but some, Wilson's interval covers as little as 89 %
_LEAST_PAIRS = 6  # that can have p < 0.05 in exact McNemar
_MANY_FLIPS = 5_000  # above, the normal approximation of the power is within 2 %
_EQUAL = 1e-12  # variances below this are rounding errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over cases with its interval. `note` says why `low` and `high` are None.

    `method` is wilson or agresti_coull, with the suffix _effective_n (several attempts, partial scores) or _clustered,
    or none. `effective_n` is the number of independent passes and failures that the interval assumes.
    """

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    method: str = "none"
    se: float | None = None
    effective_n: float | None = None
    note: str = ""


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


def wilson(proportion: float, n: float) -> tuple[float, float]:
    """Return Wilson's score interval of a *proportion* seen in *n* trials (Wilson 1927).

    (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n). *n* is at least 1 and may be an effective sample size.
    """
    if n < 1:
        raise ValueError("Wilson's interval needs at least one trial.")
    squared = _Z * _Z
    centre = proportion + squared / (2 * n)
    spread = _Z * math.sqrt(max(proportion * (1 - proportion), 0.0) / n + squared / (4 * n * n))
    scale = 1 + squared / n
    # The rounding error of a bound at 0 or 1 would show as 99.9999 %.
    low = max(0.0, (centre - spread) / scale) if proportion > 0 else 0.0
    high = min(1.0, (centre + spread) / scale) if proportion < 1 else 1.0
    return low, high


def agresti_coull(proportion: float, n: float) -> tuple[float, float]:
    """Return Agresti and Coull's interval of a *proportion* seen in *n* trials (1998).

    p' ± z sqrt(p'(1-p') / (n + z²)) with p' = (np + z²/2) / (n + z²). It contains Wilson's interval and has the same
    centre before both are cut at 0 and 1.
    """
    if n < 1:
        raise ValueError("Agresti and Coull's interval needs at least one trial.")
    squared = _Z * _Z
    centre = (proportion * n + squared / 2) / (n + squared)
    spread = _Z * math.sqrt(centre * (1 - centre) / (n + squared))
    return max(0.0, centre - spread), min(1.0, centre + spread)


def proportion_interval(proportion: float, n: float) -> tuple[float, float, str]:
    """Return the interval of a *proportion* seen in *n* trials, and the name of its method.

    Wilson's, but with one to three passes or failures Agresti and Coull's. Wilson's covers only 89 % there, for example
    at n = 14 and p = 0.04.
    """
    if 0 < n * min(proportion, 1 - proportion) < _FEW - 1e-9:
        return *agresti_coull(proportion, n), "agresti_coull"
    return *wilson(proportion, n), "wilson"


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
    """Return the mean of the cases' means, each from 0 to 1, with its interval.

    If all values are 0 or 1 and there are no *clusters*, n is the number of cases. Otherwise it is the effective sample
    size: the number of independent passes and failures whose mean would vary as much.
    """
    n = len(values)
    value = mean(values)
    if value is None:
        return Estimate(value=None, n=0, note="no case was scored")
    if clusters is None and all(item in (0.0, 1.0) for item in values):
        low, high, method = proportion_interval(value, n)
        return Estimate(
            value=value, n=n, low=low, high=high, method=method, se=standard_error(values), effective_n=float(n)
        )
    if clusters is not None and len(set(clusters)) < 2:
        return Estimate(value=value, n=n, note="n/a: a clustered interval needs two clusters or more")
    passes = _clusters_with((item > 0 for item in values), clusters)
    failures = _clusters_with((item < 1 for item in values), clusters)
    se = _standard_error(values, clusters)
    effective = effective_sample_size(value * (1 - value), se, _cluster_sizes(n, clusters), min(passes, failures))
    low, high, method = proportion_interval(value, effective)
    suffix = "effective_n" if clusters is None else "clustered"
    return Estimate(value=value, n=n, low=low, high=high, method=f"{method}_{suffix}", se=se, effective_n=effective)


def _standard_error(values: Sequence[float], clusters: Sequence[Hashable] | None) -> float | None:
    return standard_error(values) if clusters is None else clustered_standard_error(values, clusters)


def _cluster_sizes(n: int, clusters: Sequence[Hashable] | None) -> Sequence[int]:
    """Return the sizes of the clusters; without any, each of the *n* cases is one."""
    return [1] * n if clusters is None else list(Counter(clusters).values())


def _clusters_with(found: Iterable[bool], clusters: Sequence[Hashable] | None) -> int:
    """Return how many clusters hold a case for which *found* is true."""
    if clusters is None:
        return sum(found)
    return len({cluster for cluster, holds in zip(clusters, found, strict=True) if holds})


def effective_sample_size(variance: float, se: float | None, sizes: Sequence[int], events: int) -> float:
    """Return how many independent trials of *variance* would have a mean with the standard error *se*.

    That is variance / se², the sample size over the design effect (Kish 1965), with three corrections for what *se*,
    estimated from clusters of these *sizes*, cannot tell:

    - It is at least the number of trials if all values of one cluster were the same: Kish's (sum m)² / sum m², less
      one if any cluster has more than one case. It is exactly that if *se* is undefined or 0.
    - 1 / n is weighted between both by e / (e + 1), where e is the number of *events*: the clusters whose values tell
      something about the variance.
    - It is multiplied by (z / t)² for the degrees of freedom of *se* (Korn and Graubard 1998).
    """
    total, units = sum(sizes), len(sizes)
    least = total**2 / sum(size**2 for size in sizes)
    if units < total:
        least = max(1.0, least - 1)
    if not se or se * se < _EQUAL:
        return least
    weight = events / (events + 1)
    mixed = 1 / (weight / max(variance / se**2, least) + (1 - weight) / least)
    return max(least, mixed * (_Z / t_quantile(0.5 + CONFIDENCE / 2, units - 1)) ** 2)


def t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t with *degrees* of freedom."""
    from scipy.special import stdtrit  # slow to import, and needed by few runs

    return float(stdtrit(degrees, probability))


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
        return abs(b - c - n * difference) > _Z * math.sqrt(max(0.0, n * (2 * q + product)))

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


def minimum_detectable_effect(flip_rate: float, n: int) -> float | None:
    """Return the smallest true difference that exact McNemar over *n* pairs finds with 80 % power.

    *flip_rate* is the share of pairs with different results. A larger difference needs at least as many flips, so the
    rate is raised to the difference if it is smaller. Above 5,000 flips this is Miller's (z_0.975 + z_0.8) SE with
    SE = sqrt(flip_rate / n) (arXiv 2411.00640, section 5). None for fewer than 6 pairs: 5 flips one way have p 0.0625.
    """
    if n < _LEAST_PAIRS:
        return None
    if n * flip_rate > _MANY_FLIPS:
        return (_Z + _Z_POWER) * math.sqrt(flip_rate / n)
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        if _mcnemar_power(middle, max(flip_rate, middle), n) < POWER:
            low = middle
        else:
            high = middle
    return high


def _mcnemar_power(difference: float, flip_rate: float, n: int) -> float:
    """Return the chance that exact McNemar finds *difference* if *flip_rate* of *n* pairs flip on average."""
    import numpy as np
    from scipy.special import bdtr, bdtrik, gammaln, xlog1py, xlogy  # slow to import, and needed by few commands

    spread = 10 * math.sqrt(n * flip_rate) + 10
    flips = np.arange(max(0, math.floor(n * flip_rate - spread)), min(n, math.ceil(n * flip_rate + spread)) + 1)
    chance = np.exp(
        gammaln(n + 1)
        - gammaln(flips + 1)
        - gammaln(n - flips + 1)
        + xlogy(flips, flip_rate)
        + xlog1py(n - flips, -flip_rate)
    )
    # The most flips against the better side that are still significant; -1 if there are too few flips for any.
    tail = (1 - CONFIDENCE) / 2
    most = np.nan_to_num(np.floor(bdtrik(tail, flips, 0.5)))
    most -= bdtr(most, flips, 0.5) >= tail
    towards = (1 + difference / flip_rate) / 2
    found = np.where(most >= 0, bdtr(most, flips, 1 - towards) + bdtr(most, flips, towards), 0.0)
    return float(np.sum(chance * found))


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

    Pass or fail without clusters: exact McNemar and Tango's interval over the cases, widened to 0 if McNemar does not
    reject it. Otherwise Tango's interval and the score test that it inverts, over the effective sample size.
    """
    n = len(a)
    differences = [x - y for x, y in zip(a, b, strict=True)]
    difference = mean(differences)
    sizes = _cluster_sizes(n, clusters)
    if difference is None or (clusters is not None and len(sizes) < 2):
        return None
    se = _standard_error(differences, clusters)
    if clusters is None and all(value in (0.0, 1.0) for value in (*a, *b)):
        a_only, b_only = differences.count(1), differences.count(-1)
        low, high = tango(a_only, b_only, n)
        p_value = mcnemar_exact(a_only, b_only)
        if p_value >= 1 - CONFIDENCE:
            low, high = min(low, 0.0), max(high, 0.0)
        return PairedInterval(
            low=low, high=high, method="tango", p_value=p_value, test="mcnemar", effective_n=float(n), se=se
        )
    flip_rate = math.fsum(map(abs, differences)) / n
    events = _clusters_with((d != 0 for d in differences), clusters)
    effective = effective_sample_size(flip_rate - difference**2, se, sizes, events)
    low, high = tango(effective * (flip_rate + difference) / 2, effective * (flip_rate - difference) / 2, effective)
    return PairedInterval(
        low=low,
        high=high,
        method="tango_effective_n" if clusters is None else "tango_clustered",
        p_value=score_test(difference, flip_rate, effective),
        test="paired_score" if clusters is None else "clustered_score",
        effective_n=effective,
        se=se,
    )


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
            note = f"fewer than {_LEAST_PAIRS} independent cases cannot show a difference"
    return PairedDifference(
        n=n,
        mean_a=mean(a),
        mean_b=mean(b),
        difference=mean(differences),
        se=_standard_error(differences, clusters),
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


def score_test(difference: float, flip_rate: float, n: float) -> float:
    """Return the two-sided p of no difference that Tango's interval inverts: z = D sqrt(n / flip_rate).

    For whole numbers of flips this is McNemar's test without continuity correction.
    """
    return math.erfc(abs(difference) * math.sqrt(n / flip_rate) / math.sqrt(2)) if difference else 1.0


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
