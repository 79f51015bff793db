"""The JSON document of `eval --json`, and functions that it shares with the other reports."""

from collections.abc import Mapping, Sequence
from functools import cache

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.template import Engine

from hub.protocols.messages import JSON
from runs.models import Run
from runs.reports.columns import result_json, rounded_cost
from runs.results.figures import CellResult
from runs.results.stored import get_results
from runs.results.warnings import warnings
from runs.selectors import may_see_log, sees_endpoints, shown_summaries
from runs.stages import stages

_REASONS = 5  # groups of equal reasons for each environment and model


def results_json(
    run: Run, cells: Sequence[CellResult] | None = None, *, user: User | AnonymousUser | None = None
) -> dict[str, object]:
    """Return the document of `eval --json`; summaries of stages are beside `results`, under their keys.

    *cells* are `get_results(run)`, if the caller has them already. It leaves out what *user* may not see of endpoints.
    None: an operator.
    """
    cells = get_results(run) if cells is None else cells
    return {
        "run": run.pk,
        "name": run.name,
        "status": run.status,
        "message": run.message,
        "config_hash": run.config_hash,
        "seconds": round(run.seconds, 3),
        "cost_usd": rounded_cost(run.cost_usd),
        "attempts": run.attempts,
        "results": [result_json(cell) for cell in cells],
        "warnings": warnings(run, cells, name_served=sees_endpoints(user)),
        **shown_summaries(run, user),
        "mlflow": mlflow_ids(run, user),
    }


def known_cost(run: Run) -> float | None:
    """Return the cost of *run* in USD; None if a part of it is not known, or none of its models has a price."""
    if run.cost_usd is not None and (run.cost_usd or run.models.filter(spec__price__isnull=False).exists()):
        return run.cost_usd
    return None


def mlflow_ids(run: Run, user: User | AnonymousUser | None = None) -> dict[str, object]:
    """Return the ids of the run in MLflow: the parent's first, then one for each environment and model.

    There are none for a *user* who may not see the log. None: an operator.
    """
    tracking = run.tracking if may_see_log(user, run) else {}
    ids = [tracking["parent"], *tracking.get("cells", {}).values()] if tracking.get("parent") else []
    return {"run_ids": ids, "state": run.tracking_state}


def stage_sentences(summaries: Mapping[str, dict[str, JSON]]) -> list[str]:
    """Return a sentence for each stage after the last response: its summary, or why it failed.

    summaries: those of `shown_summaries`, which leaves out errors that the reader may not see.
    """
    sentences = []
    for stage in stages():
        summary = summaries.get(stage.key)
        if summary is not None:
            failed = set(summary) == {"error"}
            sentences.append(f"{stage.title} failed: {summary['error']}" if failed else stage.describe_summary(summary))
    return [sentence for sentence in sentences if sentence]


def frequent_reasons(cell: CellResult) -> list[tuple[str, int]]:
    """Return the most frequent patterns of reasons of *cell* that occur more than once, with their counts."""
    return [(pattern, count) for pattern, count in list(cell.figures.reasons.items())[:_REASONS] if count > 1]


@cache
def file_engine() -> Engine:
    """Return a template engine for reports as files.

    The engine of the site imports the template tags of every app at its first use, which takes longer than the report.
    """
    return Engine(dirs=[str(settings.BASE_DIR / "templates")])
