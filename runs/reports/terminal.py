"""The report on a terminal or in a pipe: a table for each environment, then what fell short, then what to know."""

from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hub.common.wording import counted
from hub.management.invocation import command
from runs.models import Run
from runs.reports import formats as write
from runs.results.aggregate import (
    CellResult,
    FailedResponse,
    failed_responses,
    known_cost,
    run_results,
    stage_sentences,
    warnings,
)
from runs.results.outcomes import outcome_of

PIPE_WIDTH = 116  # columns where no terminal says how wide it is
_LABEL_WIDTH = 16  # columns for the models' names; longer ones fold
_OUTCOMES = ("accuracy [95 %]", "n", "passed", "failed", "error", "unsc.", "trunc.", "refus.")
_SPENT = ("p50/p95 ms", "tokens in/out", "cost")
_LAYOUTS = ((*_OUTCOMES, *_SPENT), _OUTCOMES, _OUTCOMES[:2])  # what stands in no column is told below the table
_FAILURES = 5  # listed for each environment and model
_ERRORS = 3
_REASON = 240
STATUS_STYLES = {"passed": "green", "failed": "red", "errored": "magenta", "unscored": "yellow"}


def print_report(run: Run, console: Console) -> None:
    """Print the whole report of *run*. What models wrote is printed as text, never as markup or terminal commands."""
    if not console.is_terminal and console.width < PIPE_WIDTH:
        console.width = PIPE_WIDTH
    cells = run_results(run)
    columns = _columns(cells, console.width)
    _print(console, _headline(run))
    for environment in dict.fromkeys(cell.environment for cell in cells):
        group = [cell for cell in cells if cell.environment == environment]
        console.print()
        console.print(_table(environment, group, columns), soft_wrap=False)
        for cell in group:
            _print_details(console, cell, columns)
    for cell in cells:
        _print_failed_responses(console, cell)
    sentences, notes = stage_sentences(run), warnings(run, cells)
    if sentences or notes:
        console.print()
    for sentence in sentences:
        _print(console, Text(write.clean(sentence)))
    for note in notes:
        _print(console, Text.assemble(("Note: ", "bold yellow"), write.clean(note)))
    _print_tracking(console, run)


def _headline(run: Run) -> Text:
    return Text.assemble(
        (write.clean(run.name), "bold"),
        f"  run {run.pk}  {outcome_of(run).label}  {write.duration(run.seconds)}  {_cost(run)}",
        (f"config {run.config_hash[:12]}", "dim"),
    )


def _cost(run: Run) -> str:
    cost = known_cost(run)
    return "" if cost is None else f"{write.money(cost)}  "


def _columns(cells: Sequence[CellResult], width: int) -> tuple[str, ...]:
    """The first layout that fits beside the models' names, so that no figure is ever cut."""
    rows = [_figures(cell) for cell in cells]
    label = max([len("model"), *(min(cell_len(cell.model), _LABEL_WIDTH) for cell in cells)])
    for columns in _LAYOUTS:
        if label + sum(1 + max([len(head), *(row[head].cell_len for row in rows)]) for head in columns) <= width:
            return columns
    return _LAYOUTS[-1]


def _table(environment: str, cells: Sequence[CellResult], columns: Sequence[str]) -> Table:
    table = Table(
        title=Text(write.clean(environment), style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=0,
    )
    table.add_column("model", overflow="fold", min_width=8)  # the only column that may shrink
    for head in columns:
        table.add_column(head, justify="right", no_wrap=True)
    for cell in cells:
        figures = _figures(cell)
        table.add_row(Text(write.clean(cell.model)), *(figures[head] for head in columns))
    return table


def _figures(cell: CellResult) -> dict[str, Text]:
    """What the table shows of *cell*, by the column's head."""
    return dict(zip((*_OUTCOMES, *_SPENT), [*_outcomes(cell), *_spent(cell)], strict=True))


def _outcomes(cell: CellResult) -> list[Text]:
    accuracy = Text(write.percent(cell.accuracy.value), style="bold")
    accuracy.append(f" {write.interval(cell.accuracy.low, cell.accuracy.high)}", style="not bold")
    if cell.incomplete:
        accuracy.append(" *")
    counts = [
        Text(f"{cell.statuses[status]:,}", style=STATUS_STYLES[status] if cell.statuses[status] else "dim")
        for status in ("passed", "failed", "errored", "unscored")
    ]
    return [accuracy, Text(f"{cell.accuracy.n:,}"), *counts, Text(f"{cell.truncated:,}"), Text(f"{cell.refused:,}")]


def _spent(cell: CellResult) -> list[Text]:
    times = "/".join(write.milliseconds(cell.latency(q)) for q in (0.5, 0.95))
    return [
        Text(times if cell.latencies else write.UNDEFINED),
        Text(f"{write.tokens(cell.tokens['input'])}/{write.tokens(cell.tokens['output'])}"),
        Text(write.money(cell.known_cost_usd)),
    ]


def _print_details(console: Console, cell: CellResult, columns: Sequence[str]) -> None:
    rest = [f"{head} {value.plain}" for head, value in _figures(cell).items() if head not in columns]
    for line in [*([", ".join(rest)] if rest else []), *detail_lines(cell)]:
        _print(console, Text(f"  {write.clean(cell.model)}: {write.clean(line)}", style="dim"))


def detail_lines(cell: CellResult) -> list[str]:
    """What the table has no column for, one fact to a line: pass@k, partial scores, executions, errors, limits."""
    lines = []
    if cell.accuracy.note:
        lines.append(f"accuracy: {cell.accuracy.note}")
    if cell.attempts > 1:
        lines.append(
            ", ".join(
                f"pass@{k} {write.percent(cell.pass_at[k])}, pass^{k} {write.percent(cell.pass_hat[k])}"
                for k in cell.pass_at
            )
            + f" ({cell.pass_cases[max(cell.pass_cases)]:,} cases have all {cell.attempts} attempts)"
        )
    if cell.score.value is not None and abs(cell.score.value - (cell.accuracy.value or 0.0)) > 1e-9:
        lines.append(
            f"mean score {write.percent(cell.score.value)} of the most possible "
            f"{write.interval(cell.score.low, cell.score.high)}"
        )
    if found := cell.instructions:
        prompts = [write.percent(count / found.responses) for count in (found.responses_strict, found.responses_loose)]
        each = [write.percent(count / found.instructions) for count in (found.strict, found.loose)]
        lines.append(
            f"instructions: prompt level strict {prompts[0]}, loose {prompts[1]}; "
            f"instruction level strict {each[0]}, loose {each[1]}"
        )
    if cell.executions:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in cell.execution_failures.items()) or "no failures"
        p50, p95 = (write.milliseconds(cell.execution_time(q)) for q in (0.5, 0.95))
        lines.append(
            f"{counted(cell.executions.total(), 'execution')}, tier {cell.tier or write.UNDEFINED}, "
            f"isolated {cell.trust['isolated']:,}, in_process {cell.trust['in_process']:,}, "
            f"p50 {p50} ms, p95 {p95} ms; {kinds}"
        )
    if cell.errors:
        lines.append("errors: " + ", ".join(f"{kind} {count:,}" for kind, count in cell.errors.most_common()))
    if cell.limits:
        lines.append("ended by a limit: " + ", ".join(f"{kind} {n:,}" for kind, n in cell.limits.most_common()))
    if cell.role_cost_usd:
        lines.append(f"role models (judges, simulated users) cost {write.money(cell.role_cost_usd)}")
    return lines


def _print_failed_responses(console: Console, cell: CellResult) -> None:
    failed = failed_responses(cell, statuses=["failed"], limit=_FAILURES)
    others = failed_responses(cell, statuses=["errored", "unscored"], limit=_ERRORS)
    if not failed and not others:
        return
    left = cell.responses - cell.statuses["passed"] - len(failed) - len(others)
    console.print()
    _print(console, Text(f"{write.clean(cell.model)} on {write.clean(cell.environment)}", style="bold"))
    for item in (*failed, *others):
        _print(console, _failed_response_line(item, cell.attempts))
    if left:
        _print(console, Text(f"  and {left:,} more", style="dim"))


def _failed_response_line(item: FailedResponse, attempts: int) -> Text:
    case = write.clean(item.case) + (f" #{item.attempt}" if attempts > 1 else "")
    flags = f" ({', '.join(item.flags)})" if item.flags else ""
    reason = write.cut(write.clean(item.reason), _REASON) or "no reason was given"
    return Text.assemble("  ", (item.status, STATUS_STYLES[item.status]), "  ", (case, "bold"), f"{flags}  {reason}")


def _print_tracking(console: Console, run: Run) -> None:
    tracking = run.tracking
    if tracking.get("state") == "logged":
        _print(
            console,
            Text(f"MLflow: run {tracking['parent']} in experiment {write.clean(tracking['experiment'])}", "dim"),
        )
    elif tracking.get("state") == "pending":
        why = write.cut(write.clean(tracking["error"]), _REASON)
        text = f"not logged in MLflow yet ({why}). Later: {command('sync_tracking', run.pk)}"
        _print(console, Text.assemble(("Note: ", "bold yellow"), text))


def _print(console: Console, line: Text) -> None:
    console.print(line, highlight=False, soft_wrap=not console.is_terminal)
