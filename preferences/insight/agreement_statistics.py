"""Statistics of agreement: kappa, alpha and correlation. Pure functions; undefined values are None.

Verdicts are any hashable labels. Units are given as a sequence, or as a mapping from a unit to its count. Intervals of
shares are computed like those of accuracies. All others are 95 % percentile bootstrap intervals over groups of units,
with a fixed seed. Verdicts on one pair of responses depend on each other, so a group holds all verdicts on one pair.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from runs.results.statistics.mean_intervals import mean_estimate

RESAMPLES = 1000
_GROUPS = 10  # minimum number of groups for an interval
_DRAWN = 100_000  # maximum number of resampled points in memory at a time
LabelPair = tuple[Hashable, Hashable]  # the labels that two raters gave to one unit
Unit = TypeVar("Unit", bound=Hashable)
Point = tuple[float, float]
Statistic = Callable[[Counter[Unit]], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Statistic of *n* units with its interval. `note` says why the value or the interval is undefined."""

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def ci95(self) -> Point | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    def to_json(self) -> dict[str, object]:
        return {"value": self.value, "n": self.n, "ci95": list(self.ci95) if self.ci95 else None, "note": self.note}


def mean(units: Iterable[float] | Mapping[float, int]) -> float | None:
    counts = Counter(units)
    return math.fsum(value * count for value, count in counts.items()) / counts.total() if counts else None


def cohen_kappa(pairs: Iterable[LabelPair] | Mapping[LabelPair, int]) -> float | None:
    """Return Cohen's kappa (1960): (po - pe) / (1 - pe), with pe the agreement expected by chance.

    None if there are no units, or if both raters always use the same single label (pe = 1).
    """
    counts = Counter(pairs)
    n = counts.total()
    if not n:
        return None
    left: Counter[Hashable] = Counter()
    right: Counter[Hashable] = Counter()
    for (a, b), count in counts.items():
        left[a] += count
        right[b] += count
    expected = sum(left[label] * right[label] for label in left) / n**2
    observed = sum(count for (a, b), count in counts.items() if a == b) / n
    return None if math.isclose(expected, 1.0) else (observed - expected) / (1 - expected)


def krippendorff_alpha(units: Iterable[tuple[Hashable, ...]] | Mapping[tuple[Hashable, ...], int]) -> float | None:
    """Return Krippendorff's alpha for nominal data: 1 - Do/De (Computing Krippendorff's Alpha-Reliability, 2011).

    *units* holds the labels of each unit; units with fewer than two labels are ignored. None if no unit has two labels
    or only one label occurs.
    """
    paired = {unit: times for unit, times in Counter(units).items() if len(unit) > 1}
    totals: Counter[Hashable] = Counter()
    disagreed = 0.0
    for unit, times in paired.items():
        counts = Counter(unit)
        for label, count in counts.items():
            totals[label] += times * count
            disagreed += times * count * (len(unit) - count) / (len(unit) - 1)
    n = totals.total()
    if n < 2 or len(totals) < 2:
        return None
    expected = sum(count * (n - count) for count in totals.values()) / (n - 1)
    return 1 - disagreed / expected


def bootstrap(groups: Sequence[Sequence[Unit]], statistic: Statistic[Unit], *, seed: int = 0) -> Point | None:
    """Return the 2.5 and 97.5 percentiles of *statistic* over resampled groups (Efron 1979); None for fewer than ten.

    The counts of equal groups in a resample are drawn from a multinomial distribution, so that the cost depends on the
    number of different groups only.
    """
    if len(groups) < _GROUPS:
        return None
    import numpy as np  # slow to import, and needed by few commands

    kinds = Counter(tuple(group) for group in groups)
    contents = [Counter(kind) for kind in kinds]
    shares = np.fromiter(kinds.values(), float) / len(groups)
    drawn = np.random.default_rng(seed).multinomial(len(groups), shares, size=RESAMPLES)
    return _percentiles([statistic(_drawn(contents, times)) for times in drawn.tolist()])


def _drawn(contents: list[Counter[Unit]], times: list[int]) -> Counter[Unit]:
    units: Counter[Unit] = Counter()
    for content, often in zip(contents, times, strict=True):
        if often:
            for unit, count in content.items():
                units[unit] += often * count
    return units


def _percentiles(values: Iterable[float | None]) -> Point | None:
    """Return the 2.5 and 97.5 percentiles of *values*, or None if most are undefined."""
    found = sorted(value for value in values if value is not None)
    if len(found) < RESAMPLES // 2:
        return None
    return found[int(0.025 * len(found))], found[min(int(0.975 * len(found)), len(found) - 1)]


def figure(groups: Sequence[Sequence[Unit]], statistic: Statistic[Unit]) -> Figure:
    """Return *statistic* of the units in *groups* with its interval, or a note on why there is none."""
    units = Counter(unit for group in groups for unit in group)
    return _figure(statistic(units), units.total(), lambda: bootstrap(groups, statistic))


def share_figure(groups: Sequence[Sequence[bool]]) -> Figure:
    """Return the share of units that are true, with the interval of an accuracy; groups of several are clusters."""
    values = [float(unit) for group in groups for unit in group]
    if not values:
        return Figure(value=None, n=0, note="nothing to compare yet")
    clusters = [place for place, group in enumerate(groups) for _ in group]
    found = mean_estimate(values, clusters if len(values) > len(set(clusters)) else None)
    note = "too few pairs for an interval" if found.low is None else ""
    return Figure(value=found.value, n=found.n, low=found.low, high=found.high, note=note)


def agreement_figure(groups: Sequence[Sequence[LabelPair]]) -> Figure:
    """Return the share of units with two equal labels, with its interval."""
    return share_figure([[a == b for a, b in group] for group in groups])


def note_if_only_final(blind: Figure, final: Sequence[object]) -> Figure:
    """Return the figure of *blind* verdicts, with a note if there are only *final* ones."""
    return replace(blind, note="no verdict was given before a suggestion was seen") if final and not blind.n else blind


def _figure(value: float | None, n: int, bounds_of: Callable[[], Point | None]) -> Figure:
    if value is None:
        note = "nothing to compare yet" if not n else "undefined because all values are equal"
        return Figure(value=None, n=n, note=note)
    bounds = bounds_of()
    if bounds is None:
        return Figure(value=value, n=n, note="too few values for an interval")
    if bounds[0] == bounds[1]:
        return Figure(value=value, n=n, note="no interval because all values are equal")
    # Most resamples of a figure that is biased upwards, such as the calibration error, can be above its value.
    return Figure(value=value, n=n, low=min(bounds[0], value), high=max(bounds[1], value))


# ---- correlation -----------------------------------------------------------------------------------------------------


def correlation(points: Sequence[Point]) -> float | None:
    """Return Pearson's r, or None for fewer than two points or if one variable is constant."""
    n = len(points)
    if n < 2:
        return None
    mean_x, mean_y = (math.fsum(point[i] for point in points) / n for i in (0, 1))
    spread_x = math.fsum((x - mean_x) ** 2 for x, _ in points)
    spread_y = math.fsum((y - mean_y) ** 2 for _, y in points)
    if spread_x == 0 or spread_y == 0:
        return None
    together = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    return max(-1.0, min(1.0, together / math.sqrt(spread_x * spread_y)))  # without the error of rounding


def correlation_figure(points: Sequence[Point]) -> Figure:
    """Return Pearson's r of *points* with its interval. Points are resampled one by one, since few are equal."""
    return _figure(correlation(points), len(points), lambda: _correlation_bounds(points))


def _correlation_bounds(points: Sequence[Point], seed: int = 0) -> Point | None:
    if len(points) < _GROUPS:
        return None
    import numpy as np  # slow to import, and needed by few commands

    draw = np.random.default_rng(seed)
    x, y = np.array(points, dtype=float).T
    at_once = max(1, _DRAWN // len(points))
    found: list[float | None] = []
    for start in range(0, RESAMPLES, at_once):
        chosen = draw.integers(0, len(points), (min(at_once, RESAMPLES - start), len(points)))
        a, b = x[chosen], y[chosen]  # a row for each resample
        varies = (np.ptp(a, axis=1) > 0) & (np.ptp(b, axis=1) > 0)
        a -= a.mean(axis=1, keepdims=True)
        b -= b.mean(axis=1, keepdims=True)
        xx, xy, yy = (np.einsum("ij,ij->i", left, right) for left, right in ((a, a), (a, b), (b, b)))
        with np.errstate(divide="ignore", invalid="ignore"):
            r = (xy / np.sqrt(xx * yy)).clip(-1, 1)
        found += [value if defined else None for value, defined in zip(r.tolist(), varies.tolist(), strict=True)]
    return _percentiles(found)
