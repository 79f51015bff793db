"""Kinds of charts: intervals, points on two axes, values over time, stacked bars, and distributions side by side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from hub.common import wording
from runs.charts.svg import (
    NARROW,
    WIDTH,
    Chart,
    Drawing,
    Scale,
    draw_chart,
    horizontal_axis,
    shorten,
    text_width,
    ticks,
)

ROWS = 40  # rows that are drawn; the table of the chart has all
COLOURS = 8
DASHES = 3
_LABEL = 30  # characters beside a row
_LINE = 76  # characters above a row, fewer in a narrow chart


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """Value with its interval, all from 0 to 1 or None."""

    label: str
    n: int
    value: float | None
    low: float | None
    high: float | None


def interval_chart(
    key: str, title: str, rows: Sequence[IntervalRow], *, axis: str, low: float = 0.0, high: float = 1.0
) -> Chart:
    """Draw a point and its 95 % interval for each row, on an axis in percent from *low* to *high*.

    The labels are beside the rows, or above them if one is long or the chart is narrow. If *low* is negative, the
    values are differences in percentage points.
    """
    drawn = rows[:ROWS]
    write = _points if low < 0 else _percent

    def draw(width: int) -> Drawing:
        above = width == NARROW or any(len(row.label) > _LABEL for row in drawn)
        left, height = _row_labels([row.label for row in drawn], above=above, height=26)
        top, bottom = 8, 12 + height * len(drawn)
        drawing = Drawing(width, bottom + 44)
        scale = Scale(low=low, high=high, start=left, end=width - 64)
        horizontal_axis(drawing, scale, ticks(low, high), lambda value: f"{100 * value:.0f}", top, bottom)
        if low < 0 < high:
            drawing.line(scale(0.0), top, scale(0.0), bottom, "zero")
        _name_axis(drawing, (left + width - 64) / 2, bottom + 36, axis)
        for i, row in enumerate(drawn):
            y = top + height * (i + 1) - 10
            _write_label(drawing, row.label, left, y - 16 if above else None, y + 4)
            drawing.text(width - 56, y + 4, f"n = {row.n:,}", kind="tick")
            text = _interval_text(row, write)
            if row.low is not None and row.high is not None:
                drawing.box(scale(row.low), y - 4, scale(row.high) - scale(row.low), 8, "reach", text)
            if row.value is not None:
                drawing.box(scale(row.value) - 2, y - 9, 4, 18, "mark", text)
        return drawing

    summary = "; ".join(f"{row.label}: {_interval_text(row, write)}" for row in drawn) + _rest(rows)
    table = [[row.label, f"{row.n:,}", write(row.value), _bounds(row)] for row in rows]
    return draw_chart(key, title, summary, draw, ["", "Cases", axis, "95 % interval"], table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Point with an interval of its height; `y`, `low` and `high` are from 0 to 1."""

    label: str
    x: float
    y: float
    low: float | None
    high: float | None
    n: int


def point_chart(
    key: str, title: str, points: Sequence[Point], *, x_axis: str, y_axis: str, write_x: Callable[[float], str]
) -> Chart:
    """Draw the points with their intervals. Each has a number, which the legend below explains."""
    drawn = points[:ROWS]
    top, bottom, left = 36, 252, 48  # the title of the axis is above the numbers of points at 100 %
    highest = max((point.x for point in drawn), default=0.0) or 1.0

    def draw(width: int) -> Drawing:
        drawing = Drawing(width, bottom + 52 + 20 * len(drawn))
        across = Scale(low=0.0, high=1.1 * highest, start=left, end=width - 24)
        upwards = Scale(low=0.0, high=1.0, start=bottom, end=top)
        for value in ticks(0.0, 1.0):
            drawing.line(left, upwards(value), width - 24, upwards(value), "grid")
            drawing.text(left - 8, upwards(value) + 4, f"{100 * value:.0f}", anchor="end", kind="tick")
        for value in ticks(0.0, 1.1 * highest, 2 if width == NARROW else 4):
            drawing.text(across(value), bottom + 16, write_x(value), anchor="middle", kind="tick")
        drawing.text(left - 40, 12, y_axis, kind="tick")
        drawing.text(width - 24, bottom + 34, x_axis, anchor="end", kind="tick")
        for i, point in enumerate(drawn):
            x, colour = across(point.x), f"c{i % COLOURS}"
            words = f"{point.label}: {write_x(point.x)}, {_percent(point.y)}"
            if point.low is not None and point.high is not None:
                drawing.line(x, upwards(point.low), x, upwards(point.high), f"whisker {colour}")
            drawing.dot(x, upwards(point.y), colour, words)
            drawing.text(x + 8, upwards(point.y) - 6, str(i + 1), kind="tick")
            y = bottom + 56 + 20 * i
            drawing.dot(left + 4, y - 4, colour)
            drawing.text(left + 18, y, f"{i + 1}  {shorten(point.label, 60 * width // WIDTH)}")
        return drawing

    summary = "; ".join(f"{p.label}: {write_x(p.x)}, {_percent(p.y)}" for p in drawn) + _rest(points)
    table = [[p.label, f"{p.n:,}", write_x(p.x), _percent(p.y), _bounds(p)] for p in points]
    return draw_chart(key, title, summary, draw, ["", "Cases", x_axis, y_axis, "95 % interval"], table)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """Value at a moment with its interval, all from 0 to 1 or None. Points with the same label form a line."""

    label: str
    detail: str
    moment: datetime
    n: int
    value: float | None
    low: float | None
    high: float | None


def trend_chart(key: str, title: str, points: Sequence[TrendPoint], *, axis: str) -> Chart:
    """Draw values over time, a line with a colour for each label, or a colour and dashes. *points* are in any order."""
    drawn = sorted((p for p in points if p.value is not None), key=lambda p: (p.moment, p.label))
    labels = list(dict.fromkeys(point.label for point in drawn))
    top, bottom, left = 36, 252, 48  # the title of the axis is above the numbers of points at 100 %

    def draw(width: int) -> Drawing:
        entries = _legend_places([shorten(label, _LABEL) for label in labels], width, bottom + 48)
        drawing = Drawing(width, int(entries[-1][1]) + 16 if entries else bottom + 32)
        upwards = Scale(low=0.0, high=1.0, start=bottom, end=top)
        for value in ticks(0.0, 1.0):
            drawing.line(left, upwards(value), width - 24, upwards(value), "grid")
            drawing.text(left - 8, upwards(value) + 4, f"{100 * value:.0f}", anchor="end", kind="tick")
        drawing.text(left - 40, 12, axis, kind="tick")
        across, moments = _time_scale(drawn, left + 12, width - 40)
        for moment, anchor in moments[::2] if width == NARROW else moments:  # the middle one would not fit
            drawing.text(across(moment.timestamp()), bottom + 16, _moment_text(moment), anchor=anchor, kind="tick")
        last: dict[str, tuple[float, float]] = {}
        for point in drawn:
            style = _line_style(labels.index(point.label))
            x, y = across(point.moment.timestamp()), upwards(point.value or 0.0)
            if point.label in last:
                drawing.line(*last[point.label], x, y, style)
            if point.low is not None and point.high is not None:
                drawing.line(x, upwards(point.low), x, upwards(point.high), f"whisker {style}")
            drawing.dot(x, y, style, f"{point.label}, {point.detail}: {_interval_text(point)}")
            last[point.label] = (x, y)
        for i, (x, below, label) in enumerate(entries):
            drawing.box(x, below - 10, 12, 12, _line_style(i))
            drawing.text(x + 18, below, label)
        return drawing

    newest = list(reversed(drawn))
    summary = "; ".join(
        f"{point.label} on {_moment_text(point.moment)}: {_interval_text(point)}" for point in newest[:ROWS]
    ) + _rest(newest)
    return draw_chart(
        key,
        title,
        summary,
        draw,
        ["", "From", "Date (UTC)", "Cases", axis, "95 % interval"],
        [[p.label, p.detail, _moment_text(p.moment), f"{p.n:,}", _percent(p.value), _bounds(p)] for p in newest],
    )


def _line_style(number: int) -> str:
    """Return the classes of a line: its colour, and its dashes if lines before it have all colours."""
    dashes, colour = divmod(number, COLOURS)
    return f"c{colour} dashed{(dashes - 1) % DASHES}" if dashes else f"c{colour}"


def _time_scale(points: Sequence[TrendPoint], start: float, end: float) -> tuple[Scale, list[tuple[datetime, str]]]:
    """Return the scale of the points, which are sorted, and the moments to name on it with the anchors of their texts.

    Points of one moment are in the middle.
    """
    if not points:
        return Scale(low=0.0, high=1.0, start=start, end=end), []
    first, last = points[0].moment, points[-1].moment
    if first == last:
        middle = (start + end) / 2
        return Scale(low=first.timestamp(), high=first.timestamp(), start=middle, end=middle), [(first, "middle")]
    scale = Scale(low=first.timestamp(), high=last.timestamp(), start=start, end=end)
    return scale, [(first, "start"), (first + (last - first) / 2, "middle"), (last, "end")]


def _moment_text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Counts of one bar by kind. `n` is what the whole bar is a share of."""

    label: str
    n: int
    counts: Mapping[str, int]


def stack_chart(key: str, title: str, stacks: Sequence[Stack], *, axis: str) -> Chart:
    """Draw the counts of each stack as shares of its n, one above the other, with a legend."""
    totals: dict[str, int] = {}
    for stack in stacks:
        for kind, count in stack.counts.items():
            totals[kind] = totals.get(kind, 0) + count
    kinds = sorted(totals, key=lambda kind: (-totals[kind], kind))
    named = kinds if len(kinds) <= COLOURS else kinds[: COLOURS - 1]
    legend = [*named, *(["other"] if len(kinds) > len(named) else [])]
    drawn = stacks[:ROWS]

    def draw(width: int) -> Drawing:
        above = width == NARROW
        left, row = _row_labels([stack.label for stack in drawn], above=above, height=26)
        top, bottom = 8, 12 + row * len(drawn)
        widest = max((sum(stack.counts.values()) / stack.n for stack in drawn if stack.n), default=0.0) or 1.0
        scale = Scale(low=0.0, high=widest, start=left, end=width - 76)
        entries = _legend_places(legend, width, bottom + 60)
        drawing = Drawing(width, int(entries[-1][1]) + 16 if entries else bottom + 44)
        horizontal_axis(drawing, scale, ticks(0.0, widest), lambda value: f"{100 * value:g}", top, bottom)
        _name_axis(drawing, (left + width - 76) / 2, bottom + 36, axis)
        for i, stack in enumerate(drawn):
            y, done = top + row * (i + 1) - 10, 0
            _write_label(drawing, stack.label, left, y - 16 if above else None, y + 4)
            drawing.text(width - 68, y + 4, f"n = {stack.n:,}", kind="tick")
            for colour, kind in enumerate(legend):
                count = _count_of(stack, kind, named)
                if count and stack.n:
                    start, end = scale(done / stack.n), scale((done + count) / stack.n)
                    drawing.box(start, y - 8, end - start, 16, f"c{colour}", f"{stack.label}: {kind}, {count:,}")
                    done += count
        for colour, (x, below, kind) in enumerate(entries):
            drawing.box(x, below - 10, 12, 12, f"c{colour}")
            drawing.text(x + 18, below, kind)
        return drawing

    parts = [
        f"{stack.label} (n = {stack.n:,}): "
        + (", ".join(f"{kind} {count:,}" for kind, count in stack.counts.items()) or "none")
        for stack in drawn
    ]
    summary = "; ".join(parts) + _rest(stacks)
    return draw_chart(
        key,
        title,
        summary,
        draw,
        ["", "n", *kinds],
        [[stack.label, f"{stack.n:,}", *(f"{stack.counts.get(kind, 0):,}" for kind in kinds)] for stack in stacks],
    )


def _count_of(stack: Stack, kind: str, named: Sequence[str]) -> int:
    if kind in named:
        return stack.counts.get(kind, 0)
    return sum(count for other, count in stack.counts.items() if other not in named)


def _legend_places(legend: Sequence[str], right: float, top: float) -> list[tuple[float, float, str]]:
    places = []
    x, y = 8.0, top
    for kind in legend:
        width = 34 + text_width(kind)
        if x + width > right and x > 8:
            x, y = 8.0, y + 20
        places.append((x, y, kind))
        x += width
    return places


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Counts by the number of a bin, with its quantiles as text."""

    label: str
    n: int
    bins: Mapping[int, int]
    quantiles: Sequence[str]


def distribution_chart(
    key: str,
    title: str,
    items: Sequence[Distribution],
    *,
    axis: str,
    write_bin: Callable[[int], str],
    quantiles: Sequence[str],
) -> Chart:
    """Draw a row of bars for each item on a shared axis. The height of a bar is the bin's share of the item."""
    drawn = items[:ROWS]
    first = min((min(item.bins) for item in drawn if item.bins), default=0)
    last = max((max(item.bins) for item in drawn if item.bins), default=0) + 1

    def draw(width: int) -> Drawing:
        above = width == NARROW
        left, row = _row_labels([item.label for item in drawn], above=above, height=44)
        top, bar = 8, 34
        bottom = top + row * len(drawn) + 4
        drawing = Drawing(width, bottom + 44)
        scale = Scale(low=first, high=max(last, first + 1), start=left, end=width - 76)
        step = max(1, -(-(last - first) // (3 if width == NARROW else 6)))
        horizontal_axis(
            drawing, scale, range(first, last + 1, step), lambda value: write_bin(round(value)), top, bottom
        )
        _name_axis(drawing, (left + width - 76) / 2, bottom + 36, axis)
        for i, item in enumerate(drawn):
            base = top + row * (i + 1)
            _write_label(drawing, item.label, left, base - bar - 6 if above else None, base - 10)
            drawing.text(width - 68, base - 10, f"n = {item.n:,}", kind="tick")
            drawing.line(left, base, width - 76, base, "grid")
            most = max(item.bins.values(), default=1)
            for number, count in item.bins.items():
                height = bar * count / most
                words = f"{item.label}: {write_bin(number)} to {write_bin(number + 1)}, {count:,} of {item.n:,}"
                drawing.box(
                    scale(number) + 1, base - height, scale(number + 1) - scale(number) - 2, height, "mark", words
                )
        return drawing

    parts = [
        f"{item.label} (n = {item.n:,}): "
        + ", ".join(f"{name} {text}" for name, text in zip(quantiles, item.quantiles, strict=True))
        for item in drawn
    ]
    summary = "; ".join(parts) + _rest(items)
    return draw_chart(
        key,
        title,
        summary,
        draw,
        ["", "n", *quantiles],
        [[item.label, f"{item.n:,}", *item.quantiles] for item in items],
    )


def _label_column(labels: Sequence[str]) -> float:
    """Return where the plot starts, right of the labels."""
    return 20 + min(max((text_width(shorten(label, _LABEL)) for label in labels), default=0.0), 200.0)


def _row_labels(labels: Sequence[str], *, above: bool, height: int) -> tuple[float, int]:
    """Return where the plot starts, and the height of a row of *height* with its label beside or above it."""
    return (24.0, height + 18) if above else (_label_column(labels), height)


def _write_label(drawing: Drawing, label: str, left: float, above: float | None, beside: float) -> None:
    """Write the label of a row at the height *above*, or to the left of the plot at the height *beside*."""
    if above is None:
        drawing.text(left - 10, beside, shorten(label, _LABEL), anchor="end")
    else:
        drawing.text(left, above, shorten(label, _LINE * drawing.width // WIDTH))


def _name_axis(drawing: Drawing, middle: float, y: float, name: str) -> None:
    """Write the name of the horizontal axis: in the middle of the axis, as far as it fits."""
    name = shorten(name, int(drawing.width / text_width("x")))
    half = text_width(name) / 2
    drawing.text(max(half, min(middle, drawing.width - half)), y, name, anchor="middle", kind="tick")


def _rest(rows: Sequence[object]) -> str:
    return f"; and {len(rows) - ROWS:,} more in the table" if len(rows) > ROWS else ""


def _percent(value: float | None) -> str:
    return "-" if value is None else wording.percent(value)


def _points(value: float | None) -> str:
    return "-" if value is None else f"{wording.points(value)} points"


def _bounds(row: IntervalRow | Point | TrendPoint) -> str:
    return "-" if row.low is None or row.high is None else wording.interval(row.low, row.high)


def _interval_text(row: IntervalRow | TrendPoint, write: Callable[[float | None], str] = _percent) -> str:
    return f"{write(row.value)} {_bounds(row)}, n = {row.n:,}"
