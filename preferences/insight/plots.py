"""Coordinates of the plots, which templates draw as SVG in the colors of the theme."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hub.common.wording import percent
from preferences.insight.bradley_terry import RankedModel
from preferences.insight.calibration import Bin

SIZE = 260  # width and height of the calibration plot, inside margins of 40


SIGNED = {  # figures that range from -1 to 1; others start at 0
    "judge_people_kappa",
    "judge_people_final_kappa",
    "people_alpha",
    "people_final_alpha",
    "own_family_excess",
    "length",
}


@dataclass(frozen=True, slots=True)
class Dot:
    """Point of a plot with its tooltip; `r` is the radius."""

    x: float
    y: float
    r: float
    title: str


def calibration_plot(bins: Sequence[Bin]) -> list[Dot]:
    """Return a dot for each bin: x is the confidence, y the share of correct verdicts, the area their number."""
    most = max((item.n for item in bins), default=1)
    return [
        Dot(
            x=round(40 + SIZE * item.confidence, 1),
            y=round(20 + SIZE * (1 - item.correct), 1),
            r=round(3 + 9 * (item.n / most) ** 0.5, 1),
            title=f"confidence {item.confidence:.2f}: {percent(item.correct)} correct of {item.n}",
        )
        for item in bins
    ]


@dataclass(frozen=True, slots=True)
class Bar:
    """Ranked model with coordinates in thousandths of the plot width; without an interval, `width` is 0."""

    model: RankedModel
    point: int
    low: int
    width: int


@dataclass(frozen=True, slots=True)
class Forest:
    """Ranked models of one environment on a scale from `-end` to `end` Elo points."""

    bars: list[Bar]
    end: int


def ranking_plot(rows: Sequence[RankedModel]) -> Forest:
    """Return the bars of *rows*. The scale spans at least ±50 points, so that small differences look small."""
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
