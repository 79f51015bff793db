"""Coordinates of the plots; templates draw them as SVG whose colours follow the theme."""

from collections.abc import Sequence
from dataclasses import dataclass

from preferences.agreement import Bin
from preferences.ranking import Standing

SIZE = 260  # of the calibration plot, within margins of 40
_LEFT, _WIDTH, _ROW = 180, 400, 28


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
    """A standing drawn: its interval from `low` to `high` and its point, in the plot's coordinates."""

    name: str
    y: int
    point: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Forest:
    """A forest plot: bars, height, the place of 0 and labels of the ends."""

    bars: list[Bar]
    height: int
    zero: float
    first: int
    last: int


def ranking_plot(rows: Sequence[Standing]) -> Forest:
    ends = [bound for row in rows for bound in (row.low, row.high, row.strength) if bound is not None]
    low, high = min([*ends, -50.0]), max([*ends, 50.0])

    def place(value: float) -> float:
        return round(_LEFT + _WIDTH * (value - low) / (high - low), 1)

    bars = [
        Bar(
            name=row.name,
            y=20 + i * _ROW,
            point=place(row.strength),
            low=place(row.strength if row.low is None else row.low),
            high=place(row.strength if row.high is None else row.high),
        )
        for i, row in enumerate(rows)
    ]
    return Forest(bars, 40 + _ROW * len(bars), place(0), round(low), round(high))
