"""Charts of a run's results."""

from collections.abc import Sequence

from hub.common.output.foreign_text import clean
from runs.charts.plots import (
    Distribution,
    IntervalRow,
    Point,
    Stack,
    distribution_chart,
    interval_chart,
    point_chart,
    stack_chart,
)
from runs.charts.svg import Chart
from runs.reports import formats
from runs.results.breakdown.latencies import bin_start
from runs.results.figures import CellResult


def result_charts(cells: Sequence[CellResult]) -> list[Chart]:
    """Return accuracies, cost against accuracy, latencies and kinds of failures, if there is anything to show."""
    several = len({cell.slug for cell in cells}) > 1
    names = {id(cell): clean(f"{cell.model}, {cell.slug}" if several else cell.model) for cell in cells}
    scored = [cell for cell in cells if cell.accuracy.value is not None]
    charts = []
    if scored:
        charts.append(
            interval_chart(
                "chart-accuracy",
                "Accuracy with 95 % intervals",
                [
                    IntervalRow(
                        label=names[id(cell)],
                        n=cell.accuracy.n,
                        value=cell.accuracy.value,
                        low=cell.accuracy.low,
                        high=cell.accuracy.high,
                    )
                    for cell in scored
                ],
                axis="accuracy, % of cases",
            )
        )
    charts += [chart for chart in (_costs(scored, names), _latencies(cells, names), _failures(cells, names)) if chart]
    return charts


def _costs(cells: Sequence[CellResult], names: dict[int, str]) -> Chart | None:
    points = [
        Point(
            label=names[id(cell)],
            x=cell.known_cost_usd / sum(cell.figures.stored.values()),  # the cost includes quarantined cases
            y=cell.accuracy.value or 0.0,
            low=cell.accuracy.low,
            high=cell.accuracy.high,
            n=cell.accuracy.n,
        )
        for cell in cells
        if cell.known_cost_usd is not None
    ]
    if not any(point.x for point in points):  # recorded answers and local models cost nothing
        return None
    return point_chart(
        "chart-cost",
        "Cost against accuracy",
        points,
        x_axis="US dollars per response",
        y_axis="accuracy, % of cases",
        write_x=formats.money,
    )


def _latencies(cells: Sequence[CellResult], names: dict[int, str]) -> Chart | None:
    items = [
        Distribution(
            label=names[id(cell)],
            n=sum(cell.figures.latency_bins.values()),
            bins=cell.figures.latency_bins,
            quantiles=[
                formats.milliseconds(cell.figures.latency_ms.p50),
                formats.milliseconds(cell.figures.latency_ms.p95),
            ],
        )
        for cell in cells
        if cell.figures.latency_bins
    ]
    if not items:
        return None
    return distribution_chart(
        "chart-latency",
        "Latency of responses",
        items,
        axis="time per response, logarithmic scale",
        write_bin=lambda number: _time(bin_start(number)),
        quantiles=["median, ms", "95th percentile, ms"],
    )


def _failures(cells: Sequence[CellResult], names: dict[int, str]) -> Chart | None:
    if not any(cell.figures.failures for cell in cells):
        return None
    stacks = [
        Stack(label=names[id(cell)], n=cell.responses, counts=cell.figures.failures) for cell in cells if cell.responses
    ]
    return stack_chart("chart-failures", "Kinds of failures", stacks, axis="% of responses")


def _time(milliseconds: float) -> str:
    """Return a time with two digits and its unit."""
    if milliseconds < 1000:
        return f"{float(f'{milliseconds:.2g}'):g} ms"
    seconds = float(f"{milliseconds / 1000:.2g}")
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:.0f} min"
