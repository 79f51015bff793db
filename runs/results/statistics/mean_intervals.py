"""Means and quantiles over cases, with standard errors, effective sample sizes and intervals."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from runs.results.statistics.confidence_level import CONFIDENCE, Z
from runs.results.statistics.proportion_intervals import proportion_interval

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

    @property
    def bounds(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


def mean(values: Sequence[float]) -> float | None:
    """Return the arithmetic mean; None without values."""
    return math.fsum(values) / len(values) if values else None


def quantile(values: Sequence[float], q: float) -> float | None:
    """Return the *q* quantile (0 to 1) by linear interpolation between order statistics; None without values.

    Hyndman and Fan's type 7, the default of numpy.quantile and of R.
    """
    if not values:
        return None
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the mean; None for fewer than two values.

    sqrt(sum((s_i - mean)²) / (n(n-1))) (Miller, arXiv 2411.00640).
    """
    n = len(values)
    if n < 2:
        return None
    centre = math.fsum(values) / n
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (n * (n - 1)))


def clustered_standard_error(values: Sequence[float], clusters: Sequence[Hashable]) -> float | None:
    """Return the standard error of the mean if values of one cluster depend on each other; None for one cluster.

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
    passes = count_clusters((item > 0 for item in values), clusters)
    failures = count_clusters((item < 1 for item in values), clusters)
    se = standard_error_of(values, clusters)
    effective = effective_sample_size(value * (1 - value), se, cluster_sizes(n, clusters), min(passes, failures))
    low, high, method = proportion_interval(value, effective)
    suffix = "effective_n" if clusters is None else "clustered"
    return Estimate(value=value, n=n, low=low, high=high, method=f"{method}_{suffix}", se=se, effective_n=effective)


def standard_error_of(values: Sequence[float], clusters: Sequence[Hashable] | None) -> float | None:
    """Return the standard error of the mean, clustered if there are *clusters*."""
    return standard_error(values) if clusters is None else clustered_standard_error(values, clusters)


def cluster_sizes(n: int, clusters: Sequence[Hashable] | None) -> Sequence[int]:
    """Return the sizes of the clusters; without any, each of the *n* cases is one."""
    return [1] * n if clusters is None else list(Counter(clusters).values())


def count_clusters(matches: Iterable[bool], clusters: Sequence[Hashable] | None) -> int:
    """Return how many clusters have a case for which *matches* is true; without clusters, how many cases."""
    if clusters is None:
        return sum(matches)
    return len({cluster for cluster, match in zip(clusters, matches, strict=True) if match})


def effective_sample_size(variance: float, se: float | None, sizes: Sequence[int], events: int) -> float:
    """Return how many independent trials of *variance* would have a mean with the standard error *se*.

    That is variance / se², the sample size over the design effect (Kish 1965), with three corrections for what *se*,
    estimated from clusters of these *sizes*, does not show:

    - It is at least the number of trials if all values of one cluster were the same: Kish's (sum m)² / sum m², less
      one if any cluster has more than one case. It is exactly that if *se* is undefined or 0.
    - 1 / n is weighted between both by e / (e + 1), where e is the number of *events*: the clusters whose values
      are informative about the variance.
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
    return max(least, mixed * (Z / t_quantile(0.5 + CONFIDENCE / 2, units - 1)) ** 2)


def t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t with *degrees* of freedom."""
    from scipy.special import stdtrit  # slow to import, and needed by few runs

    return float(stdtrit(degrees, probability))
