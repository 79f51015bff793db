"""A comparison on a terminal or in a pipe."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from runs.models import Run
from runs.reports import text as write
from runs.reports.terminal import PIPE_WIDTH
from runs.results.comparison import Comparison, EnvironmentComparison, ModelComparison

_FLIPS = 10  # case ids listed each way
_TESTS = {
    "mcnemar": "exact McNemar",
    "paired_score": "score test with the effective number of cases",
    "clustered_score": "score test with the effective number of clusters",
    "none": "no test",
}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print *comparison*: a table for each pair of models, then flips and notes for each environment."""
    if not console.is_terminal and console.width < PIPE_WIDTH:
        console.width = PIPE_WIDTH
    _print(console, _side("A", comparison.run_a))
    _print(console, _side("B", comparison.run_b))
    for pair in comparison.models:
        console.print()
        console.print(_table(pair))
        for item in pair.environments:
            _print_details(console, item)
    for note in comparison.notes:
        _print(console, Text.assemble(("Note: ", "bold yellow"), write.clean(note)))


def _side(letter: str, run: Run) -> Text:
    return Text.assemble((letter, "bold"), f"  {write.clean(run.name)}, run {run.pk}, config {run.config_hash[:12]}")


def _table(pair: ModelComparison) -> Table:
    title = f"A {write.clean(pair.model_a)}  -  B {write.clean(pair.model_b)}  (percentage points)"
    table = Table(
        title=Text(title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=0
    )
    table.add_column("environment", overflow="fold", min_width=12)
    for head in ("cases", "A", "B", "A - B", "95 %", "p", "p (Holm)", "detectable", "better A", "better B"):
        table.add_column(head, justify="right", no_wrap=True)
    for item in pair.environments:
        paired = item.paired
        table.add_row(
            Text(write.clean(item.slug)),
            f"{paired.n:,}",
            write.percent(paired.mean_a),
            write.percent(paired.mean_b),
            Text(write.points(paired.difference), style="bold"),
            Text(write.interval(paired.low, paired.high)),
            write.p_value(paired.p_value),
            write.p_value(item.p_adjusted),
            write.points(paired.mde).lstrip("+"),
            f"{len(item.better_a):,}",
            f"{len(item.better_b):,}",
        )
    return table


def _print_details(console: Console, item: EnvironmentComparison) -> None:
    slug = write.clean(item.slug)
    methods = f"interval: {write.method(item.paired.method)}; test: {_TESTS[item.paired.test]}"
    _print(console, Text(f"  {slug}: {methods}", style="dim"))
    for letter, cases in (("A", item.better_a), ("B", item.better_b)):
        if cases:
            more = f" and {len(cases) - _FLIPS:,} more" if len(cases) > _FLIPS else ""
            shown = ", ".join(write.clean(case) for case in cases[:_FLIPS])
            _print(console, Text(f"  {slug}: better in {letter}: {shown}{more}"))
    for note in item.notes:
        _print(console, Text(f"  {slug}: {write.clean(note)}", style="yellow"))


def _print(console: Console, line: Text) -> None:
    console.print(line, highlight=False, soft_wrap=not console.is_terminal)
