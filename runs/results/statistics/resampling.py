"""Paired differences and ratios of costs and times, with bootstrap intervals over cases."""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from runs.results.statistics.confidence_level import CONFIDENCE

RESAMPLES = 2000
LEAST_GROUPS = 10  # cases or clusters that an interval needs
_DRAWN = 2_000_000  # weights in memory at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRatio:
    """Means of positive amounts on the same cases: a - b and a / b, each with its interval.

    `note` says why a value or an interval is undefined.
    """

    n: int
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    note: str = ""


def paired_ratio(a: Sequence[float], b: Sequence[float], clusters: Sequence[Hashable] | None = None) -> PairedRatio:
    """Compare the amounts of the cases that both sides have, in the same order.

    Intervals are 95 % percentiles of 2,000 bootstrap resamples (Efron 1979) with a fixed seed. Cases of one cluster are
    drawn together. The two amounts of a case stay together, so what makes a case expensive for both cancels.
    """
    n = len(a)
    if n != len(b):
        raise ValueError("Both sides need an amount for each case.")
    if not n:
        return PairedRatio(n=0, note="no case has a known amount on both sides")
    mean_a, mean_b = math.fsum(a) / n, math.fsum(b) / n
    sums = _group_sums(a, b, clusters)
    bounds = _intervals(sums) if len(sums) >= LEAST_GROUPS else None
    note = "" if bounds else f"an interval needs {LEAST_GROUPS} cases or clusters"
    return PairedRatio(
        n=n,
        mean_a=mean_a,
        mean_b=mean_b,
        difference=mean_a - mean_b,
        low=bounds[0] if bounds else None,
        high=bounds[1] if bounds else None,
        ratio=mean_a / mean_b if mean_b > 0 else None,
        ratio_low=bounds[2] if bounds else None,
        ratio_high=bounds[3] if bounds else None,
        note=note,
    )


def _group_sums(
    a: Sequence[float], b: Sequence[float], clusters: Sequence[Hashable] | None
) -> list[tuple[float, float, int]]:
    """Return the sums of both sides and the number of cases of each cluster; without clusters, of each case."""
    if clusters is None:
        return [(x, y, 1) for x, y in zip(a, b, strict=True)]
    sums: dict[Hashable, tuple[float, float, int]] = defaultdict(lambda: (0.0, 0.0, 0))
    for x, y, cluster in zip(a, b, clusters, strict=True):
        before = sums[cluster]
        sums[cluster] = (before[0] + x, before[1] + y, before[2] + 1)
    return list(sums.values())


def _intervals(sums: Sequence[tuple[float, float, int]]) -> tuple[float, float, float | None, float | None]:
    import numpy as np  # slow to import, and needed by comparisons only

    amounts = np.asarray(sums, dtype=float)
    groups = len(sums)
    random = np.random.default_rng(0)
    at_once = max(1, _DRAWN // groups)
    totals = np.concatenate(
        [
            random.multinomial(groups, np.full(groups, 1 / groups), size=min(at_once, RESAMPLES - start)) @ amounts
            for start in range(0, RESAMPLES, at_once)
        ]
    )
    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    low, high = np.quantile((totals[:, 0] - totals[:, 1]) / totals[:, 2], tails)
    if (totals[:, 1] <= 0).any():
        return float(low), float(high), None, None
    ratio_low, ratio_high = np.quantile(totals[:, 0] / totals[:, 1], tails)
    return float(low), float(high), float(ratio_low), float(ratio_high)
