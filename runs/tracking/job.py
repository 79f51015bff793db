"""What is logged of a run: one JSON job with params, metrics and tags, beside a folder of artifacts. No mlflow here."""

import csv
import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import yaml
from django.utils import timezone

from hub.protocols.messages import JSON, opening, played
from runs.models import Response, Run
from runs.reports.columns import result_json
from runs.reports.document import results_json
from runs.reports.formats import clean, cut
from runs.reports.html import render_html
from runs.results.counting import attempts_of, cell_responses
from runs.results.figures import CellResult
from runs.results.stored import get_results
from runs.selectors import role_models
from runs.tracking.additions import Added, Assessment, added, assessments

Traces = Literal["none", "failures", "all"]
_VALUE = 5000  # characters; MLflow takes 6,000 of a param and 8,000 of a tag
_STATUS = {
    Run.Status.FAILED: "FAILED",
    Run.Status.INTERRUPTED: "KILLED",
    Run.Status.CANCELLED: "KILLED",
    Run.Status.STOPPED: "KILLED",
}
_COLUMNS = (
    "case__external_id",
    "attempt",
    "status",
    "score",
    "reason",
    "error_kind",
    "stop",
    "truncated",
    "refused",
    "turns",
    "input_tokens",
    "output_tokens",
    "latency_ms",
    "cost_usd",
    "execution_status",
    "execution_ms",
)


def build_job(run: Run, folder: Path, *, experiment: str, artifact_root: str | None, traces: Traces) -> dict[str, Any]:
    """The job for runs.tracking.worker; its artifacts and traces are written below *folder* first."""
    cells = get_results(run)
    start, end = _milliseconds(run.started_at or run.created_at), _milliseconds(run.finished_at or timezone.now())
    shared = {"start_ms": start, "end_ms": end, "status": _STATUS.get(Run.Status(run.status), "FINISHED")}
    more = added(run)
    return {
        "run": run_identity(run),
        "experiment": experiment,
        "artifact_root": artifact_root,
        "parent": {**shared, **_parent(run, cells, more, folder / "run")},
        "cells": [{**shared, **_cell(run, cell, more, folder / f"cell{i}")} for i, cell in enumerate(cells)],
        "traces": str(_write_traces(run, cells, folder / "traces.jsonl", traces)) if traces != "none" else None,
    }


def run_identity(run: Run) -> str:
    """Tells runs apart on an MLflow server that several databases log to: id, moment of creation, config hash."""
    return f"{run.pk} {run.created_at:%Y-%m-%dT%H:%M:%S.%f} {run.config_hash[:16]}"


def cell_key(cell: CellResult) -> str:
    return f"{cell.environment} / {cell.model}"


# ---- parent and cells ------------------------------------------------------------------------------------------------


def _parent(run: Run, cells: list[CellResult], more: Added, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    results = results_json(run, cells)
    _write_json(folder / "results.json", results)
    _write_results_table(folder / "results.csv", [result_json(cell) for cell in cells])
    (folder / "report.html").write_text(render_html(run, cells), encoding="utf-8")
    (folder / "config.yaml").write_text(yaml.safe_dump(run.config, sort_keys=False, allow_unicode=True), "utf-8")
    tables = _write_tables(folder, more)
    return {
        "name": run.name,
        "artifacts": str(folder),
        "params": _texts({"config": {k: v for k, v in run.config.items() if k not in ("models", "environments")}}),
        "metrics": {
            "seconds": run.seconds,
            **({} if run.cost_usd is None else {"cost_usd": run.cost_usd}),  # unknown is no metric, least of all 0
            "responses": sum(cell.responses for cell in cells),
            **{status: sum(cell.statuses[status] for cell in cells) for status in map(str, Response.Status.values)},
            **_numbers(run.summaries),
            **more.metrics,
        },
        "tags": {**_tags(run), "llmeval.status": run.status, **tables},
    }


def _cell(run: Run, cell: CellResult, more: Added, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    result = result_json(cell)
    _write_json(folder / "result.json", result)
    _write_responses(folder / "responses.csv", cell)
    digest = cell.run_environment.version.digest
    spec = {key: value for key, value in cell.run_model.spec.items() if key != "api_key_env"}
    return {
        "key": cell_key(cell),
        "name": cell_key(cell),
        "artifacts": str(folder),
        "params": _texts(
            {
                "environment": cell.environment,
                "digest": digest,
                "selection": cell.run_environment.selection or "all",
                "attempts": attempts_of(run),
                "model": spec,
            }
        ),
        "metrics": {**_metrics(result), **more.cells.get((cell.run_environment.pk, cell.run_model.pk), {})},
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


def _tags(run: Run) -> dict[str, str]:
    return {
        "llmeval.run_id": str(run.pk),
        "llmeval.config_hash": run.config_hash,
        "mlflow.source.name": "llm-eval",
        "mlflow.source.type": "JOB",
    }


def _texts(values: dict[str, Any]) -> dict[str, str]:
    """Nested values as flat params: `model.parameters.temperature`."""
    return {name: cut(value if isinstance(value, str) else json.dumps(value), _VALUE) for name, value in _flat(values)}


def _metrics(result: dict[str, JSON]) -> dict[str, float]:
    """Every number of a result by its path: `accuracy`, `latency_ms.p50`, `pass_at.1`."""
    interval = result["ci95"]
    low, high = interval if isinstance(interval, list) else (None, None)
    return _numbers({**result, "ci95": {"low": low, "high": high}})


def _numbers(values: dict[str, JSON]) -> dict[str, float]:
    """The numbers at any depth of *values*, by path: a stage's summary as metrics, such as `judge.suggested`."""
    return {
        name: float(value)
        for name, value in _flat(values)
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{_name(key)}.")
        else:
            yield prefix + _name(key), value


def _name(key: str) -> str:
    """A key in the characters that MLflow takes."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-/ ") else "_" for c in key)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


# ---- artifacts -------------------------------------------------------------------------------------------------------


def _write_json(path: Path, value: JSON) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), "utf-8", errors="replace")


def _write_results_table(path: Path, results: list[dict[str, JSON]]) -> None:
    rows = [dict(_flat(result)) for result in results]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows([_field(row.get(name)) for name in columns] for row in rows)


def _write_tables(folder: Path, more: Added) -> dict[str, str]:
    """Tables as MLflow's own `log_table` writes them, and the tag by which its pages and `load_table` know them."""
    logged = []
    for name, rows in more.tables.items():
        columns = list(rows[0]) if rows else []
        _write_json(folder / f"{name}.json", {"columns": columns, "data": [list(row.values()) for row in rows]})
        logged.append({"path": f"{name}.json", "type": "table"})
    return {"mlflow.loggedArtifacts": json.dumps(logged)} if logged else {}


def _write_responses(path: Path, cell: CellResult) -> None:
    """One line a response, streamed."""
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        table = csv.writer(file)
        table.writerow(["case", *_COLUMNS[1:]])
        rows = cell_responses(cell.run_environment, cell.run_model).values_list(*_COLUMNS)
        table.writerows([_field(value) for value in row] for row in rows.iterator(chunk_size=2000))


def _field(value: Any) -> Any:
    """A spreadsheet would calculate a text that begins like a formula, and a model may have written it."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        text = clean(value)
        return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
    return value


# ---- traces ----------------------------------------------------------------------------------------------------------


def _write_traces(run: Run, cells: list[CellResult], path: Path, traces: Traces) -> Path:
    """One line a response: all of them, or those that did not pass."""
    said = assessments(run)
    judges = ", ".join(model.label for model in role_models(run).get("rubric", []))
    with path.open("w", encoding="utf-8", errors="replace") as file:
        for cell in cells:
            responses = cell_responses(cell.run_environment, cell.run_model).select_related("case")
            if traces == "failures":
                responses = responses.exclude(status=Response.Status.PASSED)
            for response in responses.prefetch_related("scores").iterator(chunk_size=200):
                items = [*_scored(response, judges), *said.get(response.pk, [])]
                trace = {**_trace(run, cell, response), "assessments": [asdict(item) for item in items]}
                file.write(json.dumps(trace) + "\n")
    return path


def _scored(response: Response, judges: str) -> list[Assessment]:
    """What each rule said: a model, where the rule is a judge by rubric, else code."""
    return [
        Assessment(
            key=f"score {score.pk}",
            name=score.rule,
            value=score.value,
            source_type="LLM_JUDGE" if score.type == "judge" else "CODE",
            source=judges or score.type if score.type == "judge" else score.type,
            rationale=cut(score.reason, _VALUE),
        )
        for score in response.scores.all()
        if score.value is not None
    ]


def _trace(run: Run, cell: CellResult, response: Response) -> dict[str, Any]:
    end_ns = int(response.created_at.timestamp() * 1e9)
    return {
        "cell": cell_key(cell),
        "response": str(response.pk),
        "name": f"{cell.run_environment.version.environment.slug} {response.case.external_id}",
        "inputs": opening(response.messages),
        "outputs": played(response.messages),
        "status": "ERROR" if response.status == Response.Status.ERRORED else "OK",
        "start_ns": end_ns - int((response.latency_ms or 0) * 1e6),
        "end_ns": end_ns,
        "attributes": {
            "mlflow.chat.tokenUsage": {
                "input_tokens": response.input_tokens,
                "output_tokens": response.output_tokens,
                "total_tokens": response.input_tokens + response.output_tokens,
            },
            "mlflow.llm.model": cell.run_model.spec.get("model", cell.model),
            "score": response.score,
            "reason": response.reason,
        },
        "tags": {
            "llmeval.run_id": str(run.pk),
            "llmeval.case": response.case.external_id,
            "llmeval.attempt": str(response.attempt),
            "llmeval.model": cell.model,
            "llmeval.status": response.status,
        },
    }
