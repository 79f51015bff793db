"""The report on a terminal or in a pipe: a table for each environment, failed responses, then notes."""

from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hub.common.output.foreign_text import clean
from hub.management.invocation import command
from runs.models import Run
from runs.reports import formats
from runs.reports.columns import TABLE_COLUMNS, Column
from runs.reports.details import detail_lines
from runs.reports.document import known_cost, stage_sentences
from runs.results.failed_responses import FailedResponse, failed_responses
from runs.results.figures import CellResult
from runs.results.outcomes import outcome_of
from runs.results.stored import get_results
from runs.results.warnings import warnings
from runs.selectors import shown_summaries

PIPE_WIDTH = 116  # columns of a pipe, which has no width of its own
_LABEL_WIDTH = 16  # columns for the models' names; longer ones fold
# The first layout that fits is used. Figures without a column are printed below the table.
_LAYOUTS = (
    TABLE_COLUMNS,
    tuple(column for column in TABLE_COLUMNS if column.group != "spending"),
    tuple(column for column in TABLE_COLUMNS if column.group == "result"),
)
_FAILURES = 5  # listed for each environment and model
_ERRORS = 3
_REASON = 240
STATUS_STYLES = {"passed": "green", "failed": "red", "errored": "magenta", "unscored": "yellow"}


def print_report(run: Run, console: Console) -> None:
    """Print the whole report of *run*. Text of models is printed as text, never as markup or terminal commands."""
    if not console.is_terminal and console.width < PIPE_WIDTH:
        console.width = PIPE_WIDTH
    cells = get_results(run)
    columns = _columns_that_fit(cells, console.width)
    print_line(console, _headline(run))
    for environment in dict.fromkeys(cell.environment for cell in cells):
        group = [cell for cell in cells if cell.environment == environment]
        console.print()
        console.print(_table(environment, group, columns), soft_wrap=False)
        for cell in group:
            _print_details(console, cell, columns)
    for cell in cells:
        _print_failed_responses(console, cell)
    sentences, notes = stage_sentences(shown_summaries(run)), warnings(run, cells)
    if sentences or notes:
        console.print()
    for sentence in sentences:
        print_line(console, Text(clean(sentence)))
    for note in notes:
        print_line(console, Text.assemble(("Note: ", "bold yellow"), clean(note)))
    _print_tracking(console, run)


def _headline(run: Run) -> Text:
    cost = known_cost(run)
    return Text.assemble(
        (clean(run.name), "bold"),
        f"  run {run.pk}  {outcome_of(run).label}  {formats.duration(run.seconds)}  ",
        "" if cost is None else f"{formats.money(cost)}  ",
        (f"config {run.config_hash[:12]}", "dim"),
    )


def _columns_that_fit(cells: Sequence[CellResult], width: int) -> tuple[Column, ...]:
    """Return the first layout that fits beside the models' names, so that no figure is ever cut."""
    label = max([len("model"), *(min(cell_len(cell.model), _LABEL_WIDTH) for cell in cells)])
    for columns in _LAYOUTS:
        widths = [
            max(cell_len(text) for text in (column.short_title, *(_figure(column, cell).plain for cell in cells)))
            for column in columns
        ]
        if label + sum(1 + column_width for column_width in widths) <= width:
            return columns
    return _LAYOUTS[-1]


def _table(environment: str, cells: Sequence[CellResult], columns: Sequence[Column]) -> Table:
    table = Table(
        title=Text(clean(environment), style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=0,
    )
    table.add_column("model", overflow="fold", min_width=8)  # the only column that may shrink
    for column in columns:
        table.add_column(Text(column.short_title), justify="right", no_wrap=True)
    for cell in cells:
        table.add_row(Text(clean(cell.model)), *(_figure(column, cell) for column in columns))
    return table


def _figure(column: Column, cell: CellResult) -> Text:
    """Return the figure with its style. An incomplete result has an asterisk after its interval."""
    text = column.text(cell)
    if column.key == "accuracy":
        return Text(text, style="bold")
    if column.kind == "interval":
        return Text(f"{text} *" if cell.incomplete else text)
    if column.kind == "status":
        return Text(text, style=STATUS_STYLES[column.key] if cell.statuses[column.key] else "dim")
    return Text(text)


def _print_details(console: Console, cell: CellResult, columns: Sequence[Column]) -> None:
    without_column = ", ".join(
        f"{column.short_title} {column.text(cell)}" for column in TABLE_COLUMNS if column not in columns
    )
    for line in [*([without_column] if without_column else []), *detail_lines(cell)]:
        print_line(console, Text(f"  {clean(cell.model)}: {clean(line)}", style="dim"))


def _print_failed_responses(console: Console, cell: CellResult) -> None:
    failed = failed_responses(cell, statuses=["failed"], limit=_FAILURES)
    others = failed_responses(cell, statuses=["errored", "unscored"], limit=_ERRORS)
    if not failed and not others:
        return
    more = cell.responses - cell.statuses["passed"] - len(failed) - len(others)
    console.print()
    print_line(console, Text(f"{clean(cell.model)} on {clean(cell.environment)}", style="bold"))
    for item in (*failed, *others):
        print_line(console, _failed_response_line(item, cell.figures.attempts))
    if more:
        print_line(console, Text(f"  and {more:,} more", style="dim"))


def _failed_response_line(item: FailedResponse, attempts: int) -> Text:
    case = clean(item.case) + (f" #{item.attempt}" if attempts > 1 else "")
    flags = f" ({', '.join(item.flags)})" if item.flags else ""
    reason = formats.cut(clean(item.reason), _REASON) or "no reason was given"
    return Text.assemble("  ", (item.status, STATUS_STYLES[item.status]), "  ", (case, "bold"), f"{flags}  {reason}")


def _print_tracking(console: Console, run: Run) -> None:
    tracking = run.tracking
    if run.tracking_state == Run.TrackingState.LOGGED:
        experiment = clean(tracking["experiment"])
        print_line(console, Text(f"MLflow: run {tracking['parent']} in experiment {experiment}", "dim"))
    elif "error" in tracking:
        error = formats.cut(clean(tracking["error"]), _REASON)
        text = f"not logged in MLflow yet ({error}). To log it later: {command('sync_tracking', run.pk)}"
        print_line(console, Text.assemble(("Note: ", "bold yellow"), text))


def print_line(console: Console, line: Text) -> None:
    """Print *line*, wrapped on a terminal only, so that programs and files get one line."""
    console.print(line, highlight=False, soft_wrap=not console.is_terminal)
