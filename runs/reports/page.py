"""The results on a run's page: the same columns as in the other reports."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import AnonymousUser, User

from hub.common.wording import counted
from runs.charts.svg import Chart
from runs.models import Run
from runs.reports import formats
from runs.reports.columns import TABLE_COLUMNS, Column
from runs.reports.details import detail_lines
from runs.reports.result_charts import result_charts
from runs.reports.verdicts import verdicts
from runs.results.figures import CellResult
from runs.results.stored import get_results
from runs.results.warnings import warnings
from runs.selectors import COUNTED, sees_endpoints


@dataclass(frozen=True, slots=True)
class ResultRow:
    """Row of a result table: the figures with their columns, and lines for facts without a column.

    flag: the filter with which the list of responses has as many as the counts say; None if it needs none.
    """

    cell: CellResult
    figures: list[tuple[Column, str]]
    details: list[str]
    flag: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The figures of one cell that a reader looks for first. `facts` has cost, latency and time."""

    cell: CellResult
    accuracy: str
    interval: str
    facts: str
    first_failed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonGroup:
    """Responses of one cell whose reasons have the same pattern; `query` selects them in the list of responses."""

    cell: CellResult
    pattern: str
    count: int
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResults:
    """Results of a run for its page. `more` counts the cells without a headline; those with one are then the best."""

    columns: Sequence[Column]
    rows: list[ResultRow]
    warnings: list[str]
    verdicts: list[str]
    headlines: list[Headline]
    more: int
    charts: list[Chart]
    reasons: list[ReasonGroup]


HEADLINES = 8
REASON_GROUPS = 20


def results_for_page(
    run: Run, *, withheld: Collection[int] = (), user: User | AnonymousUser | None = None
) -> RunResults:
    """Return the results of *run* with its warnings, without what *user* may not see of endpoints. None: an operator.

    *withheld*: ids of environments whose reasons are not shown.
    """
    cells = get_results(run)
    best = best_cells(cells)
    return RunResults(
        columns=TABLE_COLUMNS,
        rows=[
            ResultRow(cell, [(column, column.text(cell)) for column in TABLE_COLUMNS], detail_lines(cell), _flag(cell))
            for cell in cells
        ],
        warnings=warnings(run, cells, name_served=sees_endpoints(user)),
        verdicts=verdicts(cells),
        headlines=[_headline(cell) for cell in best],
        more=len(cells) - len(best),
        charts=result_charts(cells),
        reasons=_reason_groups(cells, withheld),
    )


def _flag(cell: CellResult) -> str | None:
    return COUNTED if cell.figures.quarantined_cases else None


def best_cells(cells: Sequence[CellResult]) -> list[CellResult]:
    """Return all *cells* in their order, or if they are too many, those with the best accuracy of each environment."""
    if len(cells) <= HEADLINES:
        return list(cells)
    groups: dict[int, list[CellResult]] = {}
    for cell in cells:
        groups.setdefault(cell.run_environment.pk, []).append(cell)
    each = max(1, HEADLINES // len(groups))
    best = [cell for group in groups.values() for cell in sorted(group, key=_rank, reverse=True)[:each]]
    return best[:HEADLINES]


def _rank(cell: CellResult) -> tuple[bool, float]:
    """Order by accuracy. An incomplete one is not final, so these come last."""
    return not cell.incomplete, -1.0 if cell.accuracy.value is None else cell.accuracy.value


def _headline(cell: CellResult) -> Headline:
    facts = [f"n = {counted(cell.accuracy.n, 'case')}"]
    if cell.known_cost_usd is not None:
        facts.append(f"cost {formats.money(cell.known_cost_usd)}")
    if cell.figures.latency_ms.p50 is not None:
        p50, p95 = cell.figures.latency_ms.p50, cell.figures.latency_ms.p95
        facts.append(f"median latency {formats.milliseconds(p50)} ms, 95 % within {formats.milliseconds(p95)} ms")
    return Headline(
        cell=cell,
        accuracy=formats.percent(cell.accuracy.value),
        interval=formats.interval(cell.accuracy.low, cell.accuracy.high),
        facts=", ".join(facts),
        first_failed=cell.figures.first_failed,
    )


def _reason_groups(cells: Sequence[CellResult], withheld: Collection[int]) -> list[ReasonGroup]:
    groups = []
    for cell in cells:
        if cell.run_environment.pk in withheld:
            continue
        for pattern, count in cell.figures.reasons.items():
            query = {"reason": pattern, "model": cell.model, "environment": cell.slug}
            if flag := _flag(cell):
                query["flag"] = flag
            groups.append(ReasonGroup(cell=cell, pattern=pattern, count=count, query=urlencode(query)))
    return sorted(groups, key=lambda group: -group.count)[:REASON_GROUPS]
