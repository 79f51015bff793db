"""Fixtures with a real MLflow store: the tracking process of the product, and a reader of the store."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runs.models import Run
from runs.tracking.client import Tracker
from runs.tracking.config import TrackingConfig
from runs.tracking.sync import track

# Reads the store with mlflow in a separate process: importing mlflow here would slow down every test.
READ = """
import json, sys
import mlflow
from mlflow import MlflowClient
from mlflow.entities import AssessmentSource
def run_fields(client, run):
    return {"id": run.info.run_id, "name": run.info.run_name, "status": run.info.status,
            "artifact_uri": run.info.artifact_uri, **run.data.to_dictionary(),
            "artifacts": sorted(f.path for f in client.list_artifacts(run.info.run_id))}
def assessments(found):
    names = {a.assessment_id: a.source.source_id for a in found}
    return [{"name": a.name, "value": a.value, "type": a.source.source_type, "by": a.source.source_id, "valid": a.valid,
             "rationale": a.rationale, "metadata": a.metadata, "overrides": names.get(a.overrides)} for a in found]
BY_HAND = AssessmentSource(source_type="HUMAN", source_id="visitor")
for line in sys.stdin:
    client = MlflowClient(sys.argv[1])  # only now: two processes must not create one store, unless they lock it
    mlflow.set_tracking_uri(sys.argv[1])
    name, trace, run, removed = (line.rstrip("\\n").split("\\t") + ["", "", ""])[:4]
    e = client.get_experiment_by_name(name).experiment_id
    if trace:
        mlflow.log_feedback(trace_id=trace, name="mine", value=True, source=BY_HAND)
    if run:
        client.end_trace(client.start_trace("by hand", experiment_id=e, run_id=run).trace_id)
        mlflow.flush_trace_async_logging()
    if removed:
        client.delete_run(removed)
    traces = [
        {"id": t.info.trace_id, "tags": t.info.tags, "usage": t.info.token_usage,
         "run": t.info.trace_metadata.get("mlflow.sourceRun"),
         "inputs": t.data.spans[0].inputs, "outputs": t.data.spans[0].outputs, "state": str(t.info.state),
         "assessments": assessments(t.info.assessments)}
        for t in client.search_traces(locations=[e])]
    runs = [run_fields(client, r) for r in client.search_runs([e])]
    judged = [run["id"] for run in runs if "judgments.json" in run["artifacts"]]
    table = client.load_table(e, "judgments.json", judged) if judged else None
    rows = json.loads(table.to_json(orient="records", date_format="iso")) if judged else []
    print(json.dumps({"runs": runs, "traces": traces, "judgments": rows}), flush=True)
    if line.startswith("deleted"):
        client.delete_experiment(e)
"""
# Returns the "runs", "traces" and "judgments" of an experiment. With a tab and the id of a trace after its name, the
# person `visitor` adds feedback to that trace first; with two tabs and the id of a run, a trace to that run;
# with three tabs and the id of a run, that run is deleted.
Reader = Callable[[str], dict[str, Any]]
Start = Callable[[], Tracker]


def tracked(run: Run, tracker: Tracker, config: TrackingConfig) -> dict[str, Any]:
    """Log *run* and return its links in MLflow with its state."""
    outcome = track(run, tracker, config)
    return {**run.tracking, **outcome}


@pytest.fixture(scope="module")
def new_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.sqlite3'}"


@pytest.fixture
def store(new_store: str, settings: Any, tmp_path: Path) -> str:
    """Return the address of a local store that the tests of a module share, each with an experiment of its own."""
    settings.MLFLOW_TRACKING_URI = new_store
    settings.MLFLOW_ARTIFACTS = str(tmp_path / "artifacts")
    return new_store


@pytest.fixture(scope="module")
def shared(new_store: str) -> Iterator[list[Tracker]]:
    started: list[Tracker] = []
    yield started
    for tracker in started:
        tracker.close()


@pytest.fixture
def tracker(store: str, shared: list[Tracker]) -> Tracker:
    """Return a tracking process that all tests of a module share. Tests that end the process use `start`."""
    if not shared:
        shared.append(Tracker.start(TrackingConfig()))
    return shared[0]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a tracking process for this test only."""
    started: list[Tracker] = []

    def start_tracker() -> Tracker:
        started.append(Tracker.start(TrackingConfig()))
        return started[-1]

    yield start_tracker
    for item in started:
        item.close()


@pytest.fixture(scope="module")
def in_mlflow(new_store: str) -> Iterator[Reader]:
    """Return a function that reads an experiment's runs, traces and judgments."""
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
    command = [sys.executable, "-c", READ, new_store]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def read(experiment: str) -> dict[str, Any]:
            stdin.write(f"{experiment}\n")
            stdin.flush()
            found: dict[str, Any] = json.loads(stdout.readline())
            return found

        yield read
