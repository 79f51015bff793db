"""The process that talks to MLflow: `python -m runs.tracking_process`, spoken to by runs.tracking and by nothing else.

mlflow takes over a second to import and its store as long to create, so that this process starts with a run and does
both while the cases are played. It reads one job a line (JSON, see runs/tracking_job.py) from stdin and answers each
with one line: `{"experiment_id", "parent", "cells": {key: id}, "traces"}` or `{"error"}`. It knows neither Django nor
the database. The end of stdin ends it. The store's address and everything else it needs are in its environment.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import mlflow
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

_PARAMS_PER_CALL = 100  # MLflow's limits for one log_batch
_METRICS_PER_CALL = 1000
_KEY, _RUN_TAG, _CELL_TAG, _RESPONSE_TAG = 250, "llmeval.run", "llmeval.cell", "llmeval.response"


def main() -> None:
    answers = _take_stdout()
    try:
        with _store_lock():
            MlflowClient().search_experiments(max_results=1)  # creates a new local store
    except Exception as error:  # the store may be back when the job comes, which then says so or succeeds
        sys.stderr.write(f"not reachable yet: {error}\n")
    for line in sys.stdin:
        try:
            answer = _log(MlflowClient(), json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    # Everything is stored; mlflow's own leave-taking takes a second, in which somebody waits for a prompt.
    os._exit(0)


def _take_stdout() -> IO[str]:
    """The real stdout for answers; whatever a library prints goes to stderr from here on."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


@contextmanager
def _store_lock() -> Iterator[None]:
    """Two runs that begin at once must not both create a local SQLite store."""
    address = urlsplit(mlflow.get_tracking_uri())
    if address.scheme != "sqlite":
        yield
        return
    import fcntl  # of POSIX systems, which are the ones that run a local store

    path = Path(unquote(address.path).removeprefix("/") or "mlflow")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# ---- one job ---------------------------------------------------------------------------------------------------------


def _log(client: MlflowClient, job: dict[str, Any]) -> dict[str, Any]:
    """Log a run, its cells and its traces. What an earlier try left is found by its tags and completed."""
    experiment = _experiment(client, job["experiment"], job["artifact_root"])
    parent = _find_or_create(client, experiment, job["parent"], {_RUN_TAG: job["run"]})
    _fill(client, parent, job["parent"])
    cells = {}
    for cell in job["cells"]:
        tags = {_CELL_TAG: f"{job['run']} {cell['key']}", "mlflow.parentRunId": parent}
        cells[cell["key"]] = _find_or_create(client, experiment, cell, tags)
        _fill(client, cells[cell["key"]], cell)
    traces = _log_traces(client, experiment, cells, Path(job["traces"])) if job["traces"] else 0
    return {"experiment_id": experiment, "parent": parent, "cells": cells, "traces": traces}


def _experiment(client: MlflowClient, name: str, artifact_root: str | None) -> str:
    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, artifact_location=artifact_root))
        except MlflowException:  # another run created it in the meantime, or the error comes again below
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    if found.lifecycle_stage != "active":
        raise ValueError(f"The MLflow experiment {name!r} was deleted; restore it, or name another in `tracking`.")
    return str(found.experiment_id)


def _find_or_create(client: MlflowClient, experiment: str, item: dict[str, Any], tags: dict[str, str]) -> str:
    key = next(iter(tags))
    value = tags[key].replace("'", "")
    found = client.search_runs([experiment], f"tags.`{key}` = '{value}'", max_results=1)
    if found:
        return str(found[0].info.run_id)
    run = client.create_run(experiment, start_time=item["start_ms"], tags={**tags, key: value}, run_name=item["name"])
    return str(run.info.run_id)


def _fill(client: MlflowClient, run_id: str, item: dict[str, Any]) -> None:
    """Params, metrics, tags, artifacts and the end of one MLflow run. Params that are there already stay."""
    known = client.get_run(run_id).data.params
    params = [Param(key[:_KEY], value) for key, value in item["params"].items() if key[:_KEY] not in known]
    for start in range(0, len(params), _PARAMS_PER_CALL):
        client.log_batch(run_id, params=params[start : start + _PARAMS_PER_CALL])
    now = int(time.time() * 1000)  # of the values at one step MLflow shows the one with the latest time
    metrics = [Metric(key[:_KEY], value, now, 0) for key, value in item["metrics"].items()]
    for start in range(0, len(metrics), _METRICS_PER_CALL):
        client.log_batch(run_id, metrics=metrics[start : start + _METRICS_PER_CALL])
    client.log_batch(run_id, tags=[RunTag(key, value) for key, value in item["tags"].items()])
    client.log_artifacts(run_id, item["artifacts"])
    client.set_terminated(run_id, status=item["status"], end_time=item["end_ms"])


# ---- traces ----------------------------------------------------------------------------------------------------------


def _log_traces(client: MlflowClient, experiment: str, cells: dict[str, str], path: Path) -> int:
    """Log the responses in the .jsonl at *path* that are not there yet; the number that now are."""
    logged = {key: _logged_responses(client, experiment, run_id) for key, run_id in cells.items()}
    with path.open(encoding="utf-8") as file:
        for line in file:
            trace = json.loads(line)
            if trace["response"] not in logged[trace["cell"]]:
                _log_trace(client, experiment, cells[trace["cell"]], trace)
                logged[trace["cell"]].add(trace["response"])
    mlflow.flush_trace_async_logging()
    return sum(map(len, logged.values()))


def _log_trace(client: MlflowClient, experiment: str, run_id: str, trace: dict[str, Any]) -> None:
    span = client.start_trace(
        trace["name"],
        span_type="CHAT_MODEL",
        inputs={"messages": trace["inputs"]},
        attributes=trace["attributes"],
        tags={**trace["tags"], _RESPONSE_TAG: trace["response"]},
        experiment_id=experiment,
        start_time_ns=trace["start_ns"],
        run_id=run_id,
    )
    client.end_trace(
        span.trace_id, outputs={"messages": trace["outputs"]}, status=trace["status"], end_time_ns=trace["end_ns"]
    )


def _logged_responses(client: MlflowClient, experiment: str, run_id: str) -> set[str]:
    found: set[str] = set()
    token = None
    while True:
        page = client.search_traces(
            locations=[experiment], run_id=run_id, include_spans=False, max_results=500, page_token=token
        )
        found.update(trace.info.tags.get(_RESPONSE_TAG, "") for trace in page)
        token = page.token
        if not token:
            return found


if __name__ == "__main__":
    main()
