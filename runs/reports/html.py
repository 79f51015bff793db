"""The report as one HTML file: no script, no foreign address, all text of models escaped by the template.

It says first which model is better, then shows charts, tables, the models compared, slices and responses that did not
pass, and explains its figures at the end.
"""

import json
from dataclasses import dataclass
from itertools import groupby

from django.contrib.auth.models import AnonymousUser, User
from django.template import Context
from django.utils import timezone

from hub.common.output.foreign_text import clean
from hub.web.reading.transcripts import read_text
from runs.description import tags_of
from runs.models import Run, RunEnvironment
from runs.reports import formats
from runs.reports.columns import TABLE_COLUMNS, Column
from runs.reports.details import detail_lines
from runs.reports.document import file_engine, frequent_reasons, known_cost, stage_sentences
from runs.reports.result_charts import result_charts
from runs.reports.verdicts import verdicts
from runs.results.breakdown.slices import case_values, label_counts, slice_results
from runs.results.failed_responses import FailedResponse, failed_responses
from runs.results.figures import CellResult
from runs.results.outcomes import outcome_of
from runs.results.stored import get_results
from runs.results.warnings import warnings
from runs.selectors import (
    models_under_test,
    reason_without_target,
    sees_endpoints,
    shown_config,
    shown_summaries,
    withheld_environments,
)

FAILURES = 50  # listed for each environment and model
ANSWER = 4000  # characters of an answer
REASON = 500
SLICE_KEYS = 3  # for each environment
SLICES = 20  # values of one metadata key in a table of slices
# Two tables for each environment, so that the file also fits on paper.
_TABLES = (
    tuple(column for column in TABLE_COLUMNS if column.group != "spending"),
    tuple(column for column in TABLE_COLUMNS if column.group == "spending"),
)


def render_html(run: Run, cells: list[CellResult] | None = None, *, user: User | AnonymousUser | None = None) -> str:
    """Return the whole report of *run* as an HTML document. *cells* are `get_results(run)`, if the caller has them.

    It leaves out what *user* may not see: reasons on held-out environments, and endpoints. None: an operator.
    """
    hidden = set(withheld_environments(user, run).values_list("pk", flat=True)) if user else set()
    cells = get_results(run) if cells is None else cells
    summaries = shown_summaries(run, user)
    content = Context(
        {
            "run": run,
            "name": clean(run.name),
            "note": run.note,
            "tags": tags_of(run),
            "status": outcome_of(run).label,
            "duration": formats.duration(run.seconds),
            "cost": formats.money(known_cost(run)),
            "generated": timezone.now(),
            "verdicts": verdicts(cells),
            "charts": result_charts(cells),
            "environments": _environments(cells),
            "leads": _leads(cells),
            "slices": [
                table for item in _run_environments(cells) if item.pk not in hidden for table in _slices(run, item)
            ],
            "reasons": [group for cell in cells if cell.run_environment.pk not in hidden for group in _reasons(cell)],
            "sections": [section for cell in cells if (section := _section(cell, cell.run_environment.pk in hidden))],
            "warnings": [clean(note) for note in warnings(run, cells, name_served=sees_endpoints(user))],
            "stages": [clean(sentence) for sentence in stage_sentences(summaries)],
            "summaries": {key: _json(value) for key, value in summaries.items()},
            "config": clean(_json(shown_config(run, user)), lines=True),
            "host": _json(run.host),
        },
    )
    return file_engine().get_template("runs/report.html").render(content)


# ---- tables ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFigure:
    """Figure in a table of the HTML file. `note` and `bar` belong to an interval."""

    column: Column
    text: str
    note: str = ""
    bar: dict[str, str] | None = None


def _environments(cells: list[CellResult]) -> list[dict[str, object]]:
    environments: list[dict[str, object]] = []
    for name, cells_of_environment in groupby(cells, key=lambda cell: cell.environment):
        group = list(cells_of_environment)
        run_environment = group[0].run_environment
        environments.append(
            {
                "name": clean(name),
                "digest": run_environment.version.digest,
                "selection": _json(run_environment.selection) if run_environment.selection else "all cases",
                "tables": [
                    {"columns": columns, "rows": [_row(cell, columns) for cell in group]} for columns in _TABLES
                ],
                "details": [(clean(cell.model), lines) for cell in group if (lines := _details(cell))],
            }
        )
    return environments


def _row(cell: CellResult, columns: tuple[Column, ...]) -> dict[str, object]:
    return {
        "model": clean(cell.model),
        "recorded": cell.recorded,
        "incomplete": cell.incomplete,
        "figures": [_figure(column, cell) for column in columns],
    }


def _figure(column: Column, cell: CellResult) -> ReportFigure:
    if column.kind != "interval":
        return ReportFigure(column=column, text=column.text(cell))
    note = cell.accuracy.note or formats.method(cell.accuracy.method)
    return ReportFigure(column=column, text=column.text(cell), note=note, bar=_bar(cell))


def _bar(cell: CellResult) -> dict[str, str] | None:
    """Return where point and interval are on a line from 0 to 1000.

    As integers in text, since a template would write decimals in the reader's language.
    """
    accuracy = cell.accuracy
    if accuracy.value is None or accuracy.low is None or accuracy.high is None:
        return None
    low, high = round(1000 * accuracy.low), round(1000 * accuracy.high)
    return {"low": str(low), "width": str(max(high - low, 1)), "point": str(round(1000 * accuracy.value))}


def _details(cell: CellResult) -> list[str]:
    return [clean(line) for line in detail_lines(cell)]


# ---- comparison of the models, and slices ----------------------------------------------------------------------------


def _leads(cells: list[CellResult]) -> list[dict[str, str]]:
    """Return a row for each model that was compared with the most accurate one of its environment."""
    return [
        {
            "environment": clean(cell.slug),
            "best": clean(cell.model),
            "over": clean(lead.over),
            "cases": f"{lead.cases:,}",
            "difference": formats.points(lead.difference),
            "interval": formats.interval(lead.low, lead.high),
            "p": formats.p_value(lead.p_adjusted),
        }
        for cell in cells
        for lead in cell.figures.leads
    ]


def _run_environments(cells: list[CellResult]) -> list[RunEnvironment]:
    return list({cell.run_environment.pk: cell.run_environment for cell in cells}.values())


def _slices(run: Run, run_environment: RunEnvironment) -> list[dict[str, object]]:
    """Return tables of accuracies by the metadata keys with the fewest values."""
    values = case_values(run_environment)
    models = models_under_test(run)
    return [
        {
            "environment": clean(run_environment.version.environment.slug),
            "key": clean(key),
            "models": [clean(model.label) for model in models],
            "rows": [
                {
                    "value": clean(item.value),
                    "cases": f"{item.cases:,}",
                    "figures": [
                        f"{formats.percent(found.value)} {formats.interval(found.low, found.high)}"
                        for found in item.estimates
                    ],
                }
                for item in slice_results(run, run_environment, models, values[key])
            ],
        }
        for key in [key for key, count in label_counts(values).items() if count <= SLICES][:SLICE_KEYS]
    ]


def _reasons(cell: CellResult) -> list[dict[str, str]]:
    model, slug = clean(cell.model), clean(cell.slug)
    return [
        {"model": model, "environment": slug, "count": f"{count:,}", "pattern": clean(pattern)}
        for pattern, count in frequent_reasons(cell)
    ]


# ---- responses that did not pass -------------------------------------------------------------------------------------


def _section(cell: CellResult, withheld: bool) -> dict[str, object] | None:
    """Return the responses of one cell that did not pass, or None if all did."""
    found = failed_responses(cell, statuses=["failed", "errored", "unscored"], limit=FAILURES)
    total = cell.responses - cell.statuses["passed"]
    if not found:
        return None
    return {
        "model": clean(cell.model),
        "environment": clean(cell.environment),
        "total": f"{total:,}",
        "shown": f"{len(found):,}",
        "capped": total > len(found),
        "items": [_item(item, cell.figures.attempts, withheld) for item in found],
    }


def _item(item: FailedResponse, attempts: int, withheld: bool) -> dict[str, object]:
    answer = read_text(item.text[:ANSWER])
    reason = reason_without_target(item.reason, item.status, item.error_kind) if withheld else item.reason
    return {
        "case": clean(item.case),
        "attempt": item.attempt if attempts > 1 else None,
        "status": item.status,
        "flags": item.flags,
        "reason": formats.cut(clean(reason), REASON) or "no reason was given",
        "answer": answer.html if item.text else "",
        "size": f"{len(item.text):,}",
        "cut": len(item.text) > ANSWER,
        "cut_at": f"{ANSWER:,}",
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False, default=str)
