"""Opening MLflow's store and logging one run. Imports mlflow, so only the tracking process uses it."""

import fcntl
import math
import sys
import time
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import mlflow
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException

from runs.tracking.messages import LoggedRun, TrackingAnswer, TrackingJob
from runs.tracking.mlflow_traces import log_traces

# MLflow's limits for one log_batch: 100 params, 100 tags, 1,000 entries in all; 250 characters of a key.
_PER_CALL, _METRICS_PER_CALL, _KEY = 100, 800, 250
_RUN_TAG, _CELL_TAG = "llmeval.run", "llmeval.cell"
_COUNTS = ("errors.", "limits.", "execution.failures.")  # metrics of what occurred only
Entry = TypeVar("Entry")


def open_store() -> None:
    """Create a new local store, or connect to the existing one."""
    try:
        _create_local_store()
        MlflowClient().search_experiments(max_results=1)
    except Exception as error:  # a job that comes later succeeds, or answers with the error
        sys.stderr.write(f"not reachable yet: {error}\n")


def _create_local_store() -> None:
    """Create the SQLite store of the tracking address if it does not exist; two runs may start at the same time.

    It gets its name once it is complete: MLflow cannot continue the creation of its tables, for example after the disk
    was full.
    """
    address, question, options = mlflow.get_tracking_uri().partition("?")
    if urlsplit(address).scheme != "sqlite":
        return
    path = Path(unquote(urlsplit(address).path).removeprefix("/") or "mlflow")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if path.is_file() and path.stat().st_size:
            return
        draft = path.with_name(f"{path.name}.new")
        draft.unlink(missing_ok=True)  # of a process that was killed
        try:
            MlflowClient(f"{address}.new{question}{options}").search_experiments(max_results=1)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


# ---- runs ------------------------------------------------------------------------------------------------------------


def log_run(job: TrackingJob) -> TrackingAnswer:
    """Log a run with its cells and traces. What an earlier attempt logged is found by its tags and completed."""
    _create_local_store()  # if that failed when the process started
    client = MlflowClient()
    experiment = _experiment(client, job["experiment"], job["artifact_root"])
    run = _without_quotes(job["run"])
    known = _find(client, experiment, _RUN_TAG, f"= '{run}'")
    known_cells = _find(client, experiment, _CELL_TAG, f"LIKE '{run} %'")
    parent = _log(client, experiment, job["parent"], {_RUN_TAG: run}, known.get(run))
    cells = {}
    for cell in job["cells"]:
        tags = {_CELL_TAG: _without_quotes(f"{job['run']} {cell['key']}"), "mlflow.parentRunId": parent}
        cells[cell["key"]] = _log(client, experiment, cell, tags, known_cells.get(tags[_CELL_TAG]))
    traces = assessments = 0
    if job["traces"]:
        traces, assessments = log_traces(client, experiment, cells, Path(job["traces"]))
    return {
        "experiment_id": experiment,
        "parent": parent,
        "cells": cells,
        "traces": traces,
        "assessments": assessments,
    }


def _experiment(client: MlflowClient, name: str, artifact_root: str | None) -> str:
    """Return the id of the experiment, which is created if it does not exist."""
    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, artifact_location=artifact_root))
        except MlflowException:  # another run has created it in the meantime, or the error is raised below
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    if found.lifecycle_stage != "active":
        restore = f"mlflow experiments restore --experiment-id {found.experiment_id}"
        raise ValueError(
            f"The MLflow experiment {name!r} was deleted. Restore it ({restore}); the config of a new run can name "
            "another in `tracking.experiment`."
        )
    return str(found.experiment_id)


def _find(client: MlflowClient, experiment: str, tag: str, condition: str) -> dict[str, Run]:
    """Return the MLflow runs whose *tag* meets *condition* by the value of the tag; of several, the latest one."""
    found: dict[str, Run] = {}
    page: str | None = None
    while True:
        runs = client.search_runs([experiment], f"tags.`{tag}` {condition}", page_token=page)  # the latest first
        for run in runs:
            found.setdefault(run.data.tags[tag], run)
        page = runs.token
        if not page:
            return found


def _without_quotes(value: str) -> str:
    return value.replace("'", "")


def _log(client: MlflowClient, experiment: str, item: LoggedRun, tags: dict[str, str], known: Run | None) -> str:
    """Log *item* as a new MLflow run with *tags*, or into the *known* one, and return its id.

    Params that are logged already stay as they are. MLflow cannot delete a metric: a count that is not in *item* any
    more becomes 0, and a figure that is no longer defined NaN.
    """
    run = known or client.create_run(
        experiment,
        start_time=item["start_ms"],
        tags=tags,
        run_name=item["name"],
    )
    now = int(time.time() * 1000)  # of several values at one step MLflow shows the one with the latest time
    values = {key[:_KEY]: value for key, value in item["metrics"].items()}
    values |= {key: 0.0 for key in run.data.metrics if key.startswith(_COUNTS) and key not in values}
    values |= {key: math.nan for key in item["undefined"] if key in run.data.metrics}
    all_metrics = [Metric(key, float(value), now, 0) for key, value in values.items()]
    all_params = [
        Param(key[:_KEY], value) for key, value in item["params"].items() if key[:_KEY] not in run.data.params
    ]
    all_tags = [RunTag(key, value) for key, value in {**tags, **item["tags"]}.items()]
    for metrics, params, run_tags in zip_longest(
        _chunks(all_metrics, _METRICS_PER_CALL),
        _chunks(all_params, _PER_CALL),
        _chunks(all_tags, _PER_CALL),
        fillvalue=(),
    ):
        client.log_batch(run.info.run_id, metrics=metrics, params=params, tags=run_tags)
    client.log_artifacts(run.info.run_id, item["artifacts"])
    client.set_terminated(run.info.run_id, status=item["status"], end_time=item["end_ms"])
    return str(run.info.run_id)


def _chunks(items: Sequence[Entry], size: int) -> list[Sequence[Entry]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
