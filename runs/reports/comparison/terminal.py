"""A comparison on a terminal or in a pipe."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hub.common.output.foreign_text import clean
from runs.models import Run
from runs.reports import formats
from runs.reports.terminal import PIPE_WIDTH, print_line
from runs.results.comparison.pair import Comparison, EnvironmentComparison, ModelComparison

_FLIPS = 10  # ids of cases that are listed for each direction of the flips
# From the widest: figures that a narrower layout lacks are printed below the table.
_FIRST = ("cases", "A", "B", "A - B", "95 %", "p")
_LAYOUTS = (
    (*_FIRST, "p (Holm)", "detectable", "better A", "better B"),
    (*_FIRST, "p (Holm)", "detectable"),
    (*_FIRST, "p (Holm)"),
    _FIRST,
    ("A - B", "95 %", "p"),
)
_UNITS = {"detectable": " points"}  # the title of the table gives it for the columns
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
    print_line(console, _side("A", comparison.run_a))
    print_line(console, _side("B", comparison.run_b))
    for pair in comparison.models:
        console.print()
        columns = _columns(pair, console)
        console.print(_table(pair, columns))
        for item in pair.environments:
            _print_details(console, item, columns)
    for note in comparison.notes:
        print_line(console, Text.assemble(("Note: ", "bold yellow"), clean(note)))


def _side(letter: str, run: Run) -> Text:
    return Text.assemble((letter, "bold"), f"  {clean(run.name)}, run {run.pk}, config {run.config_hash[:12]}")


def _table(pair: ModelComparison, columns: Sequence[str]) -> Table:
    title = f"A {clean(pair.model_a)}  -  B {clean(pair.model_b)}  (percentage points)"
    table = Table(
        title=Text(title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=0
    )
    table.add_column("environment", overflow="fold", min_width=12)  # the only column that may shrink
    for head in columns:
        table.add_column(head, justify="right", no_wrap=True)
    for item in pair.environments:
        figures = _figures(item)
        table.add_row(Text(clean(item.slug)), *(figures[head] for head in columns))
    return table


def _columns(pair: ModelComparison, console: Console) -> tuple[str, ...]:
    """Return the first layout in which all names of environments fit, or else the narrowest one."""
    for columns in _LAYOUTS:
        if console.measure(_table(pair, columns), options=console.options.update(width=1000)).maximum <= console.width:
            return columns
    return _LAYOUTS[-1]


def _figures(item: EnvironmentComparison) -> dict[str, Text]:
    """Return the cells of the row of *item*, by the heading of their column."""
    paired = item.paired
    return {
        "cases": Text(f"{paired.n:,}"),
        "A": Text(formats.percent(paired.mean_a)),
        "B": Text(formats.percent(paired.mean_b)),
        "A - B": Text(formats.points(paired.difference), style="bold"),
        "95 %": Text(formats.interval(paired.low, paired.high)),
        "p": Text(formats.p_value(paired.p_value)),
        "p (Holm)": Text(formats.p_value(item.p_adjusted)),
        "detectable": Text(formats.size(paired.mde)),
        "better A": Text(f"{len(item.better_a):,}"),
        "better B": Text(f"{len(item.better_b):,}"),
    }


def _print_details(console: Console, item: EnvironmentComparison, columns: Sequence[str]) -> None:
    slug = clean(item.slug)
    figures = _figures(item).items()
    beside = [f"{head} {figure.plain}{_UNITS.get(head, '')}" for head, figure in figures if head not in columns]
    if beside:
        print_line(console, Text(f"  {slug}: {', '.join(beside)}"))
    methods = f"interval: {formats.method(item.paired.method)}; test: {_TESTS[item.paired.test]}"
    print_line(console, Text(f"  {slug}: {methods}", style="dim"))
    for letter, cases in (("A", item.better_a), ("B", item.better_b)):
        if cases:
            more = f" and {len(cases) - _FLIPS:,} more" if len(cases) > _FLIPS else ""
            shown = ", ".join(clean(case) for case in cases[:_FLIPS])
            print_line(console, Text(f"  {slug}: better in {letter}: {shown}{more}"))
    for note in item.notes:
        print_line(console, Text(f"  {slug}: {clean(note)}", style="yellow"))
