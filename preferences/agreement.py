"""How far judgments agree: kappa, alpha, calibration and bias. Pure functions; undefined values are None.

Verdicts are any hashable labels; intervals are percentile bootstraps at 95 % over units, drawn with a fixed seed.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

RESAMPLES = 1000
Rated = tuple[Hashable, Hashable]
Unit = TypeVar("Unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A value of *n* units with its interval. `note` says why the value or the interval is undefined."""

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    note: str = ""


def raw_agreement(pairs: Sequence[Rated]) -> float | None:
    """The share of units on which both say the same."""
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else None


def cohen_kappa(pairs: Sequence[Rated]) -> float | None:
    """Cohen's kappa (1960): (po - pe) / (1 - pe), pe the agreement expected from both raters' own shares.

    None without units, and where both only ever say one and the same thing (pe = 1).
    """
    n = len(pairs)
    if not n:
        return None
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    expected = sum(left[label] * right[label] for label in left) / n**2
    observed = sum(a == b for a, b in pairs) / n
    return None if math.isclose(expected, 1.0) else (observed - expected) / (1 - expected)


def krippendorff_alpha(units: Sequence[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha for nominal data: 1 - Do/De (Computing Krippendorff's Alpha-Reliability, 2011).

    *units*: for each unit the labels given by its raters; units with fewer than two do not count. None where
    nothing can be paired or only one label was ever used.
    """
    paired = [unit for unit in units if len(unit) > 1]
    totals = Counter(label for unit in paired for label in unit)
    n = sum(totals.values())
    if n < 2 or len(totals) < 2:
        return None
    disagreed = 0.0
    for unit in paired:
        counts = Counter(unit)
        m = len(unit)
        disagreed += sum(count * (m - count) for count in counts.values()) / (m - 1)
    expected = sum(count * (n - count) for count in totals.values()) / (n - 1)
    return 1 - disagreed / expected


def bootstrap(
    units: Sequence[Unit], statistic: Callable[[Sequence[Unit]], float | None], *, seed: int = 0
) -> tuple[float, float] | None:
    """The 2.5 % and 97.5 % percentiles of *statistic* over resampled units (Efron 1979); None for fewer than ten."""
    if len(units) < 10:
        return None
    draw = random.Random(seed)  # noqa: S311 - a statistic that is the same on every visit, not a secret
    found = [value for _ in range(RESAMPLES) if (value := statistic(draw.choices(units, k=len(units)))) is not None]
    if len(found) < RESAMPLES // 2:
        return None
    found.sort()
    return found[int(0.025 * len(found))], found[min(int(0.975 * len(found)), len(found) - 1)]


def figure(units: Sequence[Unit], statistic: Callable[[Sequence[Unit]], float | None]) -> Figure:
    """*statistic* of *units* with its interval, or the reason why there is none."""
    value = statistic(units)
    if value is None:
        why = "nothing to compare yet" if not units else "nothing varies, so that it is undefined"
        return Figure(value=None, n=len(units), note=why)
    bounds = bootstrap(units, statistic)
    if bounds is None:
        return Figure(value=value, n=len(units), note="too few for an interval")
    return Figure(value=value, n=len(units), low=bounds[0], high=bounds[1])


@dataclass(frozen=True, slots=True)
class Bin:
    """Verdicts of like confidence: their mean confidence, and the share that was right."""

    confidence: float
    right: float
    n: int


def calibration(points: Sequence[tuple[float, bool]], bins: int = 10) -> tuple[list[Bin], float | None]:
    """Bins of equal width and the expected calibration error: sum over bins of n_b/n |right_b - confidence_b|.

    *points*: (confidence from 0 to 1, whether it was right). Naeini et al. 2015; None without points.
    """
    grouped: dict[int, list[tuple[float, bool]]] = {}
    for confidence, right in points:
        grouped.setdefault(min(int(confidence * bins), bins - 1), []).append((confidence, right))
    found = [
        Bin(
            confidence=sum(confidence for confidence, _ in group) / len(group),
            right=sum(right for _, right in group) / len(group),
            n=len(group),
        )
        for _, group in sorted(grouped.items())
    ]
    if not points:
        return [], None
    return found, sum(item.n * abs(item.right - item.confidence) for item in found) / len(points)


def correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's r; None for fewer than two points, or where one side never varies."""
    n = len(points)
    if n < 2:
        return None
    mean_x, mean_y = (math.fsum(point[i] for point in points) / n for i in (0, 1))
    spread_x = math.fsum((x - mean_x) ** 2 for x, _ in points)
    spread_y = math.fsum((y - mean_y) ** 2 for _, y in points)
    if spread_x == 0 or spread_y == 0:
        return None
    together = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    return together / math.sqrt(spread_x * spread_y)
