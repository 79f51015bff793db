"""A comparison as a Markdown or HTML file."""

from collections.abc import Sequence

from django.template import Context
from django.utils import timezone

from hub.common.output.foreign_text import clean
from runs.charts.plots import IntervalRow, interval_chart
from runs.charts.svg import Chart
from runs.reports import formats
from runs.reports.comparison.rows import ComparedRow, compared_rows
from runs.reports.document import file_engine
from runs.results.comparison.gate import GateResult
from runs.results.comparison.pair import Comparison
from runs.results.statistics.resampling import PairedRatio

COLUMNS = (
    *("Environment", "A", "B", "Cases", "Accuracy A", "Accuracy B", "A - B, points", "95 %", "p", "p (Holm)"),
    *("Detectable, points", "Cost A / B", "Latency A / B", "Better A", "Better B"),
)
METHOD = (
    "Both sides answered the same cases, with the same input and scoring. Differences are A - B in percentage points; "
    "intervals are 95 %. p is the p-value of a test for any difference; Holm's correction covers everything in this "
    "document. Detectable is the smallest true difference that this number of cases finds with 80 % power before that "
    "correction. Ratios of cost and latency are A / B, with bootstrap intervals over the cases."
)
_MAX_AXIS_LABEL = 60  # characters


def compared_cells(row: ComparedRow) -> list[str]:
    """Return the figures of *row* as text, in the order of COLUMNS."""
    paired = row.item.paired
    return [
        row.item.slug,
        row.name_a,
        row.name_b,
        f"{paired.n:,}",
        formats.percent(paired.mean_a),
        formats.percent(paired.mean_b),
        formats.points(paired.difference),
        formats.interval(paired.low, paired.high),
        formats.p_value(paired.p_value),
        formats.p_value(row.item.p_adjusted),
        formats.size(paired.mde),
        ratio_text(row.item.cost),
        ratio_text(row.item.latency),
        f"{len(row.item.better_a):,}",
        f"{len(row.item.better_b):,}",
    ]


def ratio_text(found: PairedRatio) -> str:
    """Return a ratio with its interval: `1.21x [1.10, 1.34]`."""
    if found.ratio is None:
        return formats.UNDEFINED
    if found.ratio_low is None or found.ratio_high is None:
        return f"{formats.ratio(found.ratio)}x"
    bounds = f"[{formats.ratio(found.ratio_low)}, {formats.ratio(found.ratio_high)}]"
    return f"{formats.ratio(found.ratio)}x {bounds}"


def difference_chart(rows: Sequence[ComparedRow]) -> Chart | None:
    """Return a chart of the differences with their intervals, or None if there is none."""
    shown = [row for row in rows if row.item.paired.difference is not None]
    if not shown:
        return None
    pairs = {f"{row.pair.model_a} - {row.pair.model_b}" for row in shown}
    bounds = [abs(bound) for row in shown for bound in (row.item.paired.low, row.item.paired.high) if bound is not None]
    reach = min(1.0, max(0.05, *bounds) * 1.05) if bounds else 1.0
    return interval_chart(
        "chart-differences",
        "Differences of accuracy, A - B, with 95 % intervals",
        [
            IntervalRow(
                label=_difference_label(row, several=len(pairs) > 1),
                n=row.item.paired.n,
                value=row.item.paired.difference,
                low=row.item.paired.low,
                high=row.item.paired.high,
            )
            for row in shown
        ],
        axis=f"{_axis_label(pairs)}, percentage points",
        low=-reach,
        high=reach,
    )


def _axis_label(pairs: set[str]) -> str:
    """Return the pair of models if there is one and it fits below the axis."""
    only = next(iter(pairs))
    return only if len(pairs) == 1 and len(only) <= _MAX_AXIS_LABEL else "A - B"


def _difference_label(row: ComparedRow, *, several: bool) -> str:
    """Return the environment, and the models if the chart has several pairs of them."""
    return f"{row.item.slug}: {row.pair.model_a} - {row.pair.model_b}" if several else row.item.slug


def comparison_markdown(
    comparisons: Sequence[Comparison], *, gate: GateResult | None = None, margin: float | None = None
) -> str:
    """Return the comparison as Markdown: verdicts, the gate, the table, notes."""
    rows = compared_rows(comparisons, margin=margin)
    lines = ["# Comparison", ""]
    if gate is not None:
        lines += [f"**{gate.decision}**: {formats.markdown(gate.expression)}", ""]
        lines += [f"- {formats.markdown(line)}" for line in gate_lines(gate)] + [""]
    lines += [f"- {formats.markdown(row.verdict)}" for row in rows] + [""]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * 3 + " ---: |" * (len(COLUMNS) - 3)]
    lines += ["| " + " | ".join(formats.markdown(text) for text in compared_cells(row)) + " |" for row in rows]
    notes = _notes(comparisons)
    lines += ["", *(f"- {formats.markdown(note)}" for note in notes), *([""] if notes else []), METHOD, ""]
    return "\n".join(lines)


def comparison_html(
    comparisons: Sequence[Comparison], *, gate: GateResult | None = None, margin: float | None = None
) -> str:
    """Return the comparison as one HTML file without external resources."""
    rows = compared_rows(comparisons, margin=margin)
    content = Context(
        {
            "generated": timezone.now(),
            "gate": gate,
            "gate_lines": gate_lines(gate) if gate else [],
            "verdicts": [row.verdict for row in rows],
            "columns": COLUMNS,
            "rows": [compared_cells(row) for row in rows],
            "chart": difference_chart(rows),
            "notes": _notes(comparisons),
            "method": METHOD,
        }
    )
    return file_engine().get_template("runs/comparison_file.html").render(content)


def gate_lines(gate: GateResult) -> list[str]:
    """Return a line for each condition of *gate* that was checked."""
    lines = []
    for check in gate.checks:
        sides = f"{check.model_a} (run {check.run_a}), {check.model_b} (run {check.run_b})"
        if check.bounds is None:
            found = f"no interval: {check.note or 'unknown'}"
        else:
            unit = "x" if check.condition.ratio else ""
            low, high = (_gate_bound(bound, check.condition.limit) for bound in check.bounds)
            found = f"95 % interval [{low}{unit}, {high}{unit}]"
        lines.append(clean(f"{check.decision}: {check.condition} on {check.environment}, {sides}: {found}"))
    return lines


def _gate_bound(bound: float, limit: float) -> str:
    """Return *bound* with four significant digits, or more if it would be rounded to *limit* without being equal."""
    text = f"{bound:.4g}"
    return text if float(text) != limit or bound == limit else repr(bound)


def _notes(comparisons: Sequence[Comparison]) -> list[str]:
    notes = []
    for comparison in comparisons:
        notes += comparison.notes
        notes += [
            f"{item.slug}: {note}" for pair in comparison.models for item in pair.environments for note in item.notes
        ]
    return [clean(note) for note in dict.fromkeys(notes)]
