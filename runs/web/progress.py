"""Progress of a run: its stored, expected and missing responses, and those to quarantined cases."""

from collections import Counter
from typing import TypedDict

from django.db.models import Count

from runs.missing import count_missing, count_missing_by_status
from runs.models import ENDED, Response, Run
from runs.results.stored import count_responses, get_results
from runs.selectors import KNOWN_COST, UNKNOWN_COSTS, models_under_test, stop_reason
from runs.spending import cost_so_far
from runs.web.queries import list_quarantined


class CellProgress(TypedDict):
    """Progress of one model on one environment. `done` is the sum of the counts by status."""

    environment: str
    slug: str
    model: str
    done: int
    expected: int
    stopped: str
    passed: int
    failed: int
    errored: int
    unscored: int


class RunProgressData(TypedDict):
    """Progress of a run. `cost_usd` includes judges; it is None if a part of the cost is unknown."""

    done: int
    expected: int
    cost_usd: float | None
    cells: list[CellProgress]


def get_missing(run: Run) -> int:
    """Return the number of responses that *run* lacks. If it has ended, it is that of its stored results."""
    if run.status not in ENDED:
        return count_missing(run)
    return count_missing_by_status(run, count_responses([run])[run.pk])


def get_progress(run: Run) -> RunProgressData:
    """Return the number of stored and expected responses of *run*, in total and for each environment and model.

    If the run has ended, the numbers are those of its stored results.
    """
    environments = list(run.environments.select_related("version__environment").order_by("position"))
    models = models_under_test(run)
    if run.status in ENDED:
        counts, cost_usd = _stored_counts(run), run.cost_usd
    else:
        counts, of_responses = _counted_progress(run)
        cost_usd = cost_so_far(run, of_responses)
    cells: list[CellProgress] = []
    for environment in environments:
        for model in models:
            by_status = {status: counts.get((environment.pk, model.pk, status), 0) for status in Response.Status.values}
            cells.append(
                {
                    "environment": str(environment.version),
                    "slug": environment.version.environment.slug,
                    "model": model.label,
                    "done": sum(by_status.values()),
                    "expected": environment.case_count * run.attempts,
                    "stopped": stop_reason(model),
                    "passed": by_status[Response.Status.PASSED],
                    "failed": by_status[Response.Status.FAILED],
                    "errored": by_status[Response.Status.ERRORED],
                    "unscored": by_status[Response.Status.UNSCORED],
                }
            )
    return {
        "done": sum(cell["done"] for cell in cells),
        "expected": sum(cell["expected"] for cell in cells),
        "cost_usd": cost_usd,
        "cells": cells,
    }


def count_quarantined(run: Run) -> dict[tuple[str, str], Counter[str]]:
    """Return the number of responses of *run* to quarantined cases by status, for each environment and model.

    The keys are `environment` and `model` of CellProgress; cells without such responses are left out.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    for environment, cases in list_quarantined(run):
        rows = Response.objects.filter(run_environment=environment, case__in=cases).order_by()
        by_status = rows.values_list("run_model__label", "status").annotate(count=Count("id"))
        for model, status, count in by_status:
            counts.setdefault((str(environment.version), model), Counter())[status] = count
    return counts


# Number of responses by environment of the run, model of the run and status.
_CellCounts = dict[tuple[int, int, str], int]


def _stored_counts(run: Run) -> _CellCounts:
    return {
        (cell.run_environment.pk, cell.run_model.pk, status): count
        for cell in get_results(run)
        for status, count in cell.figures.stored.items()
    }


def _counted_progress(run: Run) -> tuple[_CellCounts, float | None]:
    """Return the counts, and the cost of the stored responses in USD; None if a part of it is unknown."""
    rows = (
        Response.objects.filter(run_environment__run=run)
        .order_by()
        .values("run_environment_id", "run_model_id", "status")
        .annotate(count=Count("id"), cost=KNOWN_COST, unknown=UNKNOWN_COSTS)
    )
    counts = {(row["run_environment_id"], row["run_model_id"], row["status"]): row["count"] for row in rows}
    return counts, None if any(row["unknown"] for row in rows) else sum(row["cost"] or 0.0 for row in rows)
