"""The report as Markdown, for a comment on a change or a summary of a CI job."""

from collections.abc import Sequence
from itertools import groupby

from django.contrib.auth.models import AnonymousUser, User

from runs.models import Run
from runs.reports import formats
from runs.reports.columns import TABLE_COLUMNS, Column
from runs.reports.document import frequent_reasons, known_cost, stage_sentences
from runs.reports.verdicts import verdicts
from runs.results.figures import CellResult
from runs.results.outcomes import outcome_of
from runs.results.stored import get_results
from runs.results.warnings import warnings
from runs.selectors import sees_endpoints, shown_summaries


def render_markdown(run: Run, *, user: User | AnonymousUser | None = None) -> str:
    """Return the report of *run* as Markdown: verdicts, a table for each environment, frequent reasons, notes.

    It leaves out what *user* may not see of endpoints. None: an operator.
    """
    cells = get_results(run)
    facts = [f"Run {run.pk}", outcome_of(run).label, formats.duration(run.seconds)]
    if (cost := known_cost(run)) is not None:
        facts.append(formats.money(cost))
    lines = [f"# {formats.markdown(run.name)}", "", formats.markdown(", ".join(facts)) + ".", ""]
    lines += [f"- {formats.markdown(sentence)}" for sentence in verdicts(cells)] + [""]
    for environment, group in groupby(cells, key=lambda cell: cell.environment):
        lines += [f"## {formats.markdown(environment)}", "", *_table(list(group)), ""]
    lines += _reasons(cells)
    sentences = stage_sentences(shown_summaries(run, user))
    notes = [*sentences, *warnings(run, list(cells), name_served=sees_endpoints(user))]
    lines += [*(f"- {formats.markdown(note)}" for note in notes), ""] if notes else []
    lines += [f"Config `{run.config_hash}`. Intervals are 95 % confidence intervals of the accuracy.", ""]
    return "\n".join(lines)


def _table(cells: Sequence[CellResult]) -> list[str]:
    lines = [
        "| Model | " + " | ".join(column.title for column in TABLE_COLUMNS) + " |",
        "| --- |" + " ---: |" * len(TABLE_COLUMNS),
    ]
    for cell in cells:
        figures = [_figure(column, cell) for column in TABLE_COLUMNS]
        lines.append(f"| {formats.markdown(cell.model)} | " + " | ".join(figures) + " |")
    return lines


def _figure(column: Column, cell: CellResult) -> str:
    """Return the figure. An incomplete result has an asterisk after its interval, as on a terminal."""
    text = column.text(cell)
    return f"{text} \\*" if column.kind == "interval" and cell.incomplete else text


def _reasons(cells: Sequence[CellResult]) -> list[str]:
    lines = []
    for cell in cells:
        where = formats.markdown(f"{cell.model} on {cell.slug}")
        for pattern, count in frequent_reasons(cell):
            lines.append(f"- {count:,} times, {where}: {formats.markdown(pattern)}")
    return ["## Frequent reasons", "", *lines, ""] if lines else []
