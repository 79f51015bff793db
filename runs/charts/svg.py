"""Elements of the charts: the chart itself, its frame with axes, marks and text."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH = 560
NARROW = 320  # on phones
_CHARACTER = 6.6  # width of an average character at 12 pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Drawing with the table behind it. `summary` says in a sentence what is drawn, for readers who cannot see it.

    `narrow` is the same drawing for phones, on which the first one would have to be scrolled.
    """

    key: str
    title: str
    summary: str
    svg: SafeString
    narrow: SafeString
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Linear scale from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + share * (self.end - self.start)


@dataclass(slots=True)
class Drawing:
    """SVG elements in the order in which they are drawn. Coordinates and sizes are in pixels, from the upper left."""

    width: int
    height: int
    parts: list[SafeString] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Add a line from (x1, y1) to (x2, y2) with the class *kind*."""
        self.parts.append(
            format_html('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>', kind, *map(_n, (x1, y1, x2, y2)))
        )

    def box(self, x: float, y: float, width: float, height: float, kind: str, tooltip: str = "") -> None:
        title = format_html("<title>{}</title>", tooltip) if tooltip else ""
        sizes = map(_n, (x, y, max(width, 0.0), max(height, 0.0)))
        self.parts.append(
            format_html('<rect class="{}" x="{}" y="{}" width="{}" height="{}">{}</rect>', kind, *sizes, title)
        )

    def dot(self, x: float, y: float, kind: str, tooltip: str = "") -> None:
        title = format_html("<title>{}</title>", tooltip) if tooltip else ""
        self.parts.append(
            format_html('<circle class="{}" cx="{}" cy="{}" r="5">{}</circle>', kind, _n(x), _n(y), title)
        )

    def text(self, x: float, y: float, text: str, *, anchor: str = "start", kind: str = "label") -> None:
        self.parts.append(
            format_html('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>', kind, _n(x), _n(y), anchor, text)
        )

    def finish(self, key: str, title: str, summary: str) -> SafeString:
        """Return the SVG element. *key* makes its ids unique on the page."""
        kind = "chart"
        if self.width == NARROW:
            key, kind = f"{key}-narrow", "chart narrow"
        return format_html(
            '<svg class="{}" viewBox="0 0 {} {}" role="img" aria-labelledby="{}-title {}-desc">'
            '<title id="{}-title">{}</title><desc id="{}-desc">{}</desc>{}</svg>',
            kind,
            self.width,
            self.height,
            key,
            key,
            key,
            title,
            key,
            summary,
            format_html_join("", "{}", ((part,) for part in self.parts)),
        )


def draw_chart(
    key: str,
    title: str,
    summary: str,
    draw: Callable[[int], Drawing],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
) -> Chart:
    """Return the chart with the drawings that *draw* returns for each width."""
    return Chart(
        key=key,
        title=title,
        summary=summary,
        svg=draw(WIDTH).finish(key, title, summary),
        narrow=draw(NARROW).finish(key, title, summary),
        columns=columns,
        rows=rows,
    )


def text_width(text: str) -> float:
    return _CHARACTER * len(text)


def shorten(text: str, size: int) -> str:
    """Return *text* in at most *size* characters; a longer one loses its middle."""
    if len(text) <= size:
        return text
    head = (size - 1) // 2
    return f"{text[:head]}…{text[len(text) - (size - 1 - head) :]}"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about *count* round values from *low* to *high*."""
    span = high - low
    if span <= 0:
        return [low]
    raw = span / count
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def horizontal_axis(
    drawing: Drawing, scale: Scale, values: Sequence[float], write: Callable[[float], str], top: float, bottom: float
) -> None:
    """Draw vertical grid lines with their values below."""
    for value in values:
        x = scale(value)
        drawing.line(x, top, x, bottom, "grid")
        drawing.text(x, bottom + 16, write(value), anchor="middle", kind="tick")


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
