"""Lines for figures of a result that have no column in the tables."""

from hub.common.wording import counted
from runs.reports import formats
from runs.results.figures import CellFigures, CellResult, InstructionCounts


def detail_lines(cell: CellResult) -> list[str]:
    """Return one fact per line: pass@k, mean score, instructions, executions, errors, limits, cost of role models."""
    figures = cell.figures
    lines = []
    if cell.accuracy.note:
        lines.append(f"accuracy: {cell.accuracy.note}")
    if figures.attempts > 1:
        lines.append(_pass_rates(figures))
    if figures.score.value is not None and abs(figures.score.value - (cell.accuracy.value or 0.0)) > 1e-9:
        interval = formats.interval(figures.score.low, figures.score.high)
        lines.append(f"mean score {formats.percent(figures.score.value)} of the highest possible {interval}")
    if figures.instructions:
        lines.append(_instructions(figures.instructions))
    if figures.executions:
        lines.append(_executions(cell))
    if figures.errors:
        lines.append(f"errors: {_counts(figures.errors)}")
    if figures.limits:
        lines.append(f"ended by a limit: {_counts(figures.limits)}")
    if figures.role_cost_usd:
        lines.append(f"role models (judges, simulated users) cost {formats.money(figures.role_cost_usd)}")
    return lines


def _pass_rates(figures: CellFigures) -> str:
    rates = ", ".join(
        f"pass@{k} {formats.percent(figures.pass_at[k])}, pass^{k} {formats.percent(figures.pass_hat[k])}"
        for k in figures.pass_at
    )
    complete = figures.pass_cases[max(figures.pass_cases)]
    return f"{rates} ({counted(complete, 'case')} with all {figures.attempts} attempts)"


def _instructions(counts: InstructionCounts) -> str:
    prompt_strict = formats.percent(counts.responses_strict / counts.responses)
    prompt_loose = formats.percent(counts.responses_loose / counts.responses)
    strict = formats.percent(counts.strict / counts.instructions)
    loose = formats.percent(counts.loose / counts.instructions)
    return (
        f"instructions: prompt level strict {prompt_strict}, loose {prompt_loose}; "
        f"instruction level strict {strict}, loose {loose}"
    )


def _executions(cell: CellResult) -> str:
    figures = cell.figures
    p50, p95 = formats.milliseconds(figures.execution_ms.p50), formats.milliseconds(figures.execution_ms.p95)
    return (
        f"{counted(sum(figures.executions.values()), 'execution')} in the sandbox (tier {figures.tier or 'unknown'}), "
        f"p50 {p50} ms, p95 {p95} ms; {_counts(cell.execution_failures) or 'no failures'}"
    )


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in counts.items())
