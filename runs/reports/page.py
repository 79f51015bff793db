"""The results on a run's page: the same columns as in the other reports."""

from collections.abc import Sequence
from dataclasses import dataclass

from runs.models import Run
from runs.reports.columns import TABLE_COLUMNS, Column
from runs.reports.details import detail_lines
from runs.results.figures import CellResult
from runs.results.stored import get_results
from runs.results.warnings import warnings


@dataclass(frozen=True, slots=True)
class ResultRow:
    """Row of a result table: the figures with their columns, and lines for facts without a column."""

    cell: CellResult
    figures: list[tuple[Column, str]]
    details: list[str]


@dataclass(frozen=True, slots=True)
class RunResults:
    """Results of a run for its page."""

    columns: Sequence[Column]
    rows: list[ResultRow]
    warnings: list[str]


def results_for_page(run: Run) -> RunResults:
    """Return the results of *run* with its warnings."""
    cells = get_results(run)
    rows = [
        ResultRow(cell, [(column, column.text(cell)) for column in TABLE_COLUMNS], detail_lines(cell)) for cell in cells
    ]
    return RunResults(TABLE_COLUMNS, rows, warnings(run, cells))
