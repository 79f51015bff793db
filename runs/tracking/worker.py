"""Process that talks to MLflow, started as `python -m runs.tracking.worker` by `runs.tracking.launch`.

mlflow takes over a second to import and its store as long to create, so that this process starts with a run and does
both while the cases are played. It reads one line of JSON after the other from stdin: `{"open": address}`, on which it
opens the store, and jobs (see runs/tracking/job.py), each of which it answers with one line:
`{"experiment_id", "parent", "cells": {key: id}, "traces", "assessments"}` or `{"error"}`. It knows neither Django nor
the database. The end of stdin ends it.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

os.nice(5)  # the cases come first; their end is what somebody waits for
gc.disable()  # what start-up makes stays; `_open_store` ends this

# mlflow, or what it imports, loads these where it finds them; nothing here needs them.
for _name in ("numpy", "pandas", "pygments"):
    sys.modules[_name] = None  # type: ignore[assignment]

import mlflow
from mlflow import MlflowClient
from mlflow.entities import AssessmentSource, Feedback, Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException

_PER_CALL, _METRICS_PER_CALL = 100, 800  # MLflow's limit for one log_batch: 100 params, 100 tags, 1,000 in all
_KEY, _RUN_TAG, _CELL_TAG, _RESPONSE_TAG = 250, "llmeval.run", "llmeval.cell", "llmeval.response"
_ASSESSMENT_KEY = "llmeval.key"  # in the metadata of assessments that were logged here


def main() -> None:
    answers = _take_stdout()
    for line in sys.stdin:
        job = json.loads(line)
        if "open" in job:
            _open_store(job["open"])
            continue
        try:
            answer = _log(MlflowClient(), job)
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


def _open_store(address: str) -> None:
    """Create a new local store, or reach the one that is there."""
    mlflow.set_tracking_uri(address)
    try:
        with _store_lock():
            MlflowClient().search_experiments(max_results=1)
    except Exception as error:  # the store may be back when the job comes, which then says so or succeeds
        sys.stderr.write(f"not reachable yet: {error}\n")
    finally:
        gc.freeze()
        gc.enable()


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
    known = _find(client, experiment, _RUN_TAG, job["run"])
    parent = _complete(client, experiment, job["parent"], {_RUN_TAG: job["run"]}, known)
    cells = {}
    for cell in job["cells"]:
        tags = {_CELL_TAG: f"{job['run']} {cell['key']}", "mlflow.parentRunId": parent}
        there = _find(client, experiment, _CELL_TAG, tags[_CELL_TAG]) if known else None  # a new run has no cells
        cells[cell["key"]] = _complete(client, experiment, cell, tags, there)
    counts = {"traces": 0, "assessments": 0}
    if job["traces"]:
        counts = _log_traces(client, experiment, cells, Path(job["traces"]))
    return {"experiment_id": experiment, "parent": parent, "cells": cells, **counts}


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


def _find(client: MlflowClient, experiment: str, tag: str, value: str) -> Run | None:
    found = client.search_runs([experiment], f"tags.`{tag}` = '{_quotable(value)}'", max_results=1)
    return found[0] if found else None


def _quotable(value: str) -> str:
    return value.replace("'", "")


def _complete(
    client: MlflowClient, experiment: str, item: dict[str, Any], tags: dict[str, str], known: Run | None
) -> str:
    """Create one MLflow run with *tags*, or take the one that is *known*; the rest of *item* is put in; its id.

    Params that are there already stay.
    """
    run = known or client.create_run(
        experiment,
        start_time=item["start_ms"],
        tags={key: _quotable(value) for key, value in tags.items()},
        run_name=item["name"],
    )
    now = int(time.time() * 1000)  # of the values at one step MLflow shows the one with the latest time
    values = [Metric(key[:_KEY], float(value), now, 0) for key, value in item["metrics"].items()]
    new = [Param(key[:_KEY], value) for key, value in item["params"].items() if key[:_KEY] not in run.data.params]
    for metrics, params, more in zip_longest(
        _chunks(values, _METRICS_PER_CALL),
        _chunks(new),
        _chunks([RunTag(key, value) for key, value in item["tags"].items()]),
        fillvalue=(),
    ):
        client.log_batch(run.info.run_id, metrics=metrics, params=params, tags=more)
    client.log_artifacts(run.info.run_id, item["artifacts"])
    client.set_terminated(run.info.run_id, status=item["status"], end_time=item["end_ms"])
    return str(run.info.run_id)


def _chunks(items: list[Any], size: int = _PER_CALL) -> list[list[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


# ---- traces ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Logged:
    """A trace that is there, and those of its assessments that were logged here: key -> MLflow's id."""

    trace_id: str
    assessments: dict[str, str] = field(default_factory=dict)


def _log_traces(client: MlflowClient, experiment: str, cells: dict[str, str], path: Path) -> dict[str, int]:
    """Log the responses in the .jsonl at *path* that are not there yet, and what is said of each; the counts."""
    logged = {key: _logged_responses(client, experiment, run_id) for key, run_id in cells.items()}
    said = 0
    with path.open(encoding="utf-8") as file:
        for line in file:
            trace = json.loads(line)
            there = logged[trace["cell"]]
            if trace["response"] not in there:
                there[trace["response"]] = _Logged(_log_trace(client, experiment, cells[trace["cell"]], trace))
            _assess(there[trace["response"]], trace["assessments"])
            said += len(trace["assessments"])
    mlflow.flush_trace_async_logging()
    return {"traces": sum(map(len, logged.values())), "assessments": said}


def _log_trace(client: MlflowClient, experiment: str, run_id: str, trace: dict[str, Any]) -> str:
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
    return str(span.trace_id)


def _assess(trace: _Logged, wanted: list[dict[str, Any]]) -> None:
    """Make the assessments of *trace* those that are *wanted*. What people added in MLflow itself stays."""
    known = trace.assessments
    stale = known.keys() - {item["key"] for item in wanted}
    if stale:  # with an override MLflow takes back its mark on the other one, which a second override may still need
        stale |= known.keys() & {item["key"] for item in wanted if item["overrides"]}
    for key in stale:
        mlflow.delete_assessment(trace_id=trace.trace_id, assessment_id=known.pop(key))
    for item in wanted:
        if item["key"] not in known:
            feedback = Feedback(
                name=item["name"][:_KEY],
                value=item["value"],
                source=AssessmentSource(source_type=item["source_type"], source_id=item["source"][:_KEY]),
                rationale=item["rationale"] or None,
                metadata={**item["metadata"], _ASSESSMENT_KEY: item["key"]},
                overrides=known.get(item["overrides"]),  # MLflow marks the other one as no longer valid
            )
            known[item["key"]] = str(mlflow.log_assessment(trace.trace_id, feedback).assessment_id)


def _logged_responses(client: MlflowClient, experiment: str, run_id: str) -> dict[str, _Logged]:
    """Response id -> its trace, of those that the MLflow run *run_id* has."""
    found: dict[str, _Logged] = {}
    token = None
    while True:
        page = client.search_traces(
            locations=[experiment], run_id=run_id, include_spans=False, max_results=500, page_token=token
        )
        for trace in page:
            known = {(item.metadata or {}).get(_ASSESSMENT_KEY): item for item in trace.info.assessments}
            ids = {key: str(item.assessment_id) for key, item in known.items() if key}
            found[trace.info.tags.get(_RESPONSE_TAG, "")] = _Logged(trace.info.trace_id, ids)
        token = page.token
        if not token:
            return found


if __name__ == "__main__":
    main()
