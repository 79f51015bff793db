"""The job that logs a run: params, metrics and tags as JSON, beside a folder of artifacts. mlflow is not imported."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from django.utils import timezone

from runs.models import Response, Run
from runs.reports.columns import result_json
from runs.reports.document import results_json
from runs.reports.formats import cut
from runs.reports.html import render_html
from runs.results.figures import CellResult
from runs.results.stored import get_results
from runs.tracking.additions import LogAddition, combined_addition
from runs.tracking.artifacts import flatten, write_config, write_json, write_responses, write_results, write_tables
from runs.tracking.config import Traces
from runs.tracking.messages import LoggedCell, LoggedRun, TrackingJob
from runs.tracking.traces import write_traces

_VALUE = 5000  # characters; MLflow accepts 6,000 of a param and 8,000 of a tag
_STATUS = {
    Run.Status.FAILED: "FAILED",
    Run.Status.INTERRUPTED: "KILLED",
    Run.Status.CANCELLED: "KILLED",
    Run.Status.STOPPED: "KILLED",
}


def build_job(run: Run, folder: Path, *, experiment: str, artifact_root: str | None, traces: Traces) -> TrackingJob:
    """Return the job for runs.tracking.mlflow_process, after writing its artifacts and traces below *folder*."""
    cells = get_results(run)
    addition = combined_addition(run)
    path = write_traces(run, cells, folder / "traces.jsonl", traces) if traces != "none" else None
    return {
        "run": run_identity(run),
        "experiment": experiment,
        "artifact_root": artifact_root,
        "parent": _parent(run, cells, addition, folder / "run"),
        "cells": [_cell(run, cell, addition, folder / f"cell{i}") for i, cell in enumerate(cells)],
        "traces": None if path is None else str(path),
    }


def run_identity(run: Run) -> str:
    """Return a name for *run* that is unique on an MLflow server to which several databases are logged."""
    return f"{run.pk} {run.created_at:%Y-%m-%dT%H:%M:%S.%f} {run.config_hash[:16]}"


def cell_key(cell: CellResult) -> str:
    """Return the name of a cell in the answer of the process that logs."""
    return f"{cell.environment} / {cell.model}"


def _parent(run: Run, cells: list[CellResult], addition: LogAddition, folder: Path) -> LoggedRun:
    folder.mkdir(parents=True)
    write_json(folder / "results.json", results_json(run, cells))
    write_results(folder / "results.csv", cells)
    (folder / "report.html").write_text(render_html(run, cells), encoding="utf-8")
    write_config(folder / "config.yaml", run)
    tags = write_tables(folder, addition.tables)
    settings = {key: value for key, value in run.config.items() if key not in ("models", "environments")}
    start_ms, end_ms = _times(run)
    return {
        "name": run.name,
        "start_ms": start_ms,
        "end_ms": end_ms,
        "status": _status(run),
        "artifacts": str(folder),
        "params": _params({"config": settings}),
        "metrics": {
            "seconds": run.seconds,
            **({} if run.cost_usd is None else {"cost_usd": run.cost_usd}),  # an unknown cost has no metric
            "responses": sum(cell.responses for cell in cells),
            **{status: sum(cell.statuses[status] for cell in cells) for status in map(str, Response.Status.values)},
            **_metrics(run.summaries),
            **addition.metrics,
        },
        "undefined": ["cost_usd"] if run.cost_usd is None else [],
        "tags": {**_tags(run), "llmeval.status": run.status, **tags},
    }


def _cell(run: Run, cell: CellResult, addition: LogAddition, folder: Path) -> LoggedCell:
    folder.mkdir(parents=True)
    result = result_json(cell)
    write_json(folder / "result.json", result)
    write_responses(folder / "responses.csv", cell)
    digest = cell.run_environment.version.digest
    spec = {key: value for key, value in cell.run_model.spec.items() if key != "api_key_env"}
    figures = {**result, **{key: _named_bounds(result[key]) for key in ("ci95", "mean_score_ci95")}}
    start_ms, end_ms = _times(run)
    return {
        "key": cell_key(cell),
        "name": cell_key(cell),
        "start_ms": start_ms,
        "end_ms": end_ms,
        "status": _status(run),
        "artifacts": str(folder),
        "params": _params(
            {
                "environment": cell.environment,
                "digest": digest,
                "selection": cell.run_environment.selection or "all",
                "attempts": run.attempts,
                "model": spec,
            }
        ),
        "metrics": {
            **_metrics(figures),
            **addition.cells.get((cell.run_environment.pk, cell.run_model.pk), {}),
        },
        "undefined": [name for name, value in _paths(figures) if value is None],
        "tags": {
            **_tags(run),
            "llmeval.environment": cell.environment,
            "llmeval.digest": digest,
            "llmeval.model": cell.model,
            "llmeval.model_fingerprint": cell.run_model.fingerprint,
            "llmeval.recorded": str(cell.recorded).lower(),
            "llmeval.incomplete": str(cell.incomplete).lower(),
        },
    }


def _status(run: Run) -> str:
    return _STATUS.get(Run.Status(run.status), "FINISHED")


def _times(run: Run) -> tuple[int, int]:
    """Return when the run started and ended, in milliseconds since the epoch."""
    return _milliseconds(run.started_at or run.created_at), _milliseconds(run.finished_at or timezone.now())


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _tags(run: Run) -> dict[str, str]:
    return {
        "llmeval.run_id": str(run.pk),
        "llmeval.config_hash": run.config_hash,
        "mlflow.source.name": "llm-eval",
        "mlflow.source.type": "JOB",
    }


def _params(values: Mapping[str, object]) -> dict[str, str]:
    """Return nested values as flat params such as `model.parameters.temperature`."""
    return {name: cut(value if isinstance(value, str) else json.dumps(value), _VALUE) for name, value in _paths(values)}


def _metrics(values: Mapping[str, object]) -> dict[str, float]:
    """Return all numbers in nested values by their path: `accuracy`, `latency_ms.p50`, `pass_at.1`."""
    return {
        name: float(value)
        for name, value in _paths(values)
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _named_bounds(interval: object) -> dict[str, float | None]:
    """Return the bounds of an interval of `eval --json` by name; both are None if it has none."""
    return dict(zip(("low", "high"), interval if isinstance(interval, list) else (None, None), strict=True))


def _paths(values: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield nested values by their path, in the characters that MLflow accepts."""
    for path, value in flatten(values):
        yield "".join(c if c.isascii() and (c.isalnum() or c in "_-/. ") else "_" for c in path), value
