"""Coordinates of the plots; templates draw them as SVG whose colours follow the theme."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from preferences.insight.agreement import Bin
from preferences.insight.ranking import Standing

SIZE = 260  # of the calibration plot, within margins of 40


SIGNED = {  # from -1 to 1; other figures from 0
    "judge_people_kappa",
    "judge_people_final_kappa",
    "people_alpha",
    "people_final_alpha",
    "own_family_excess",
    "length",
}


@dataclass(frozen=True, slots=True)
class Dot:
    """A point with what it says; `r` is its radius."""

    x: float
    y: float
    r: float
    title: str


def calibration_plot(bins: Sequence[Bin]) -> list[Dot]:
    """Confidence to the right, share that was right upwards; the area grows with the number of verdicts."""
    most = max((item.n for item in bins), default=1)
    return [
        Dot(
            x=round(40 + SIZE * item.confidence, 1),
            y=round(20 + SIZE * (1 - item.right), 1),
            r=round(3 + 9 * (item.n / most) ** 0.5, 1),
            title=f"confidence {item.confidence:.2f}: {100 * item.right:.0f} % right of {item.n}",
        )
        for item in bins
    ]


@dataclass(frozen=True, slots=True)
class Bar:
    """A standing drawn, in thousandths of the plot's width; without an interval `width` is 0."""

    standing: Standing
    point: int
    low: int
    width: int


@dataclass(frozen=True, slots=True)
class Forest:
    """An environment's standings, drawn on one scale that goes from `-end` to `end` Elo points, 0 in the middle."""

    bars: list[Bar]
    end: int


def ranking_plot(rows: Sequence[Standing]) -> Forest:
    """At least 50 points to either side, so that small differences look small."""
    reached = [abs(bound) for row in rows for bound in (row.low, row.high, row.strength) if bound is not None]
    end = math.ceil(max([*reached, 50.0]) / 50) * 50

    def place(value: float) -> int:
        return round(500 + 500 * value / end)

    bars = []
    for row in rows:
        low = place(row.strength if row.low is None else row.low)
        high = place(row.strength if row.high is None else row.high)
        bars.append(Bar(row, place(row.strength), low, high - low))
    return Forest(bars, end)
