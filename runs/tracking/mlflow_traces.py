"""Logging traces and assessments to MLflow. Imports mlflow, so only the tracking process uses it."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import mlflow
from mlflow import MlflowClient
from mlflow.entities import AssessmentSource, Feedback

from runs.tracking.messages import LoggedAssessment, LoggedTrace

_NAME = 250  # characters
_RESPONSE_TAG = "llmeval.response"
_ASSESSMENT_KEY = "llmeval.key"  # in the metadata of assessments that were logged here


@dataclass(slots=True)
class KnownTrace:
    """Trace that is logged already, with the assessments that were logged here: key -> MLflow's id."""

    trace_id: str
    assessments: dict[str, str] = field(default_factory=dict)


def log_traces(client: MlflowClient, experiment: str, cells: dict[str, str], path: Path) -> tuple[int, int]:
    """Log the responses in the .jsonl file at *path* that have no trace yet, and the assessments of all.

    Traces of responses that are not in the file are deleted: a resumed run has replaced these. Return the number of
    traces and of assessments.
    """
    known = {key: _known_traces(client, experiment, run_id) for key, run_id in cells.items()}
    replaced = {response: trace.trace_id for traces in known.values() for response, trace in traces.items()}
    assessments = 0
    with path.open(encoding="utf-8") as file:
        for line in file:
            trace: LoggedTrace = json.loads(line)
            replaced.pop(trace["response"], None)
            traces = known[trace["cell"]]
            if trace["response"] not in traces:
                trace_id = _log_trace(client, experiment, cells[trace["cell"]], trace)
                traces[trace["response"]] = KnownTrace(trace_id)
            _update_assessments(traces[trace["response"]], trace["assessments"])
            assessments += len(trace["assessments"])
    mlflow.flush_trace_async_logging()
    if replaced:
        client.delete_traces(experiment, trace_ids=list(replaced.values()))
    return sum(map(len, known.values())) - len(replaced), assessments


def _log_trace(client: MlflowClient, experiment: str, run_id: str, trace: LoggedTrace) -> str:
    span = client.start_trace(
        trace["name"],
        span_type="CHAT_MODEL",
        inputs={"messages": trace["inputs"]},
        attributes=trace["attributes"],  # type: ignore[arg-type]  # MLflow takes any JSON value, despite its annotation
        tags={**trace["tags"], _RESPONSE_TAG: trace["response"]},
        experiment_id=experiment,
        start_time_ns=trace["start_ns"],
        run_id=run_id,
    )
    client.end_trace(
        span.trace_id, outputs={"messages": trace["outputs"]}, status=trace["status"], end_time_ns=trace["end_ns"]
    )
    return str(span.trace_id)


def _update_assessments(trace: KnownTrace, wanted: list[LoggedAssessment]) -> None:
    """Make the assessments of *trace* equal to *wanted*. Assessments that people added in MLflow itself stay."""
    known = trace.assessments
    outdated = known.keys() - {item["key"] for item in wanted}
    if outdated:
        # Deleting an override removes MLflow's mark on the overridden assessment, which another override may need.
        outdated |= known.keys() & {item["key"] for item in wanted if item["overrides"]}
    for key in outdated:
        mlflow.delete_assessment(trace_id=trace.trace_id, assessment_id=known.pop(key))
    for item in wanted:
        if item["key"] not in known:
            feedback = Feedback(
                name=item["name"][:_NAME],
                value=item["value"],
                source=AssessmentSource(source_type=item["source_type"], source_id=item["source"][:_NAME]),
                rationale=item["rationale"] or None,
                metadata={**item["metadata"], _ASSESSMENT_KEY: item["key"]},
                overrides=known.get(item["overrides"]),  # MLflow marks the overridden one as no longer valid
            )
            known[item["key"]] = str(mlflow.log_assessment(trace.trace_id, feedback).assessment_id)


def _known_traces(client: MlflowClient, experiment: str, run_id: str) -> dict[str, KnownTrace]:
    """Return response id -> trace, for the traces of the MLflow run *run_id* that were logged here."""
    found: dict[str, KnownTrace] = {}
    token = None
    while True:
        page = client.search_traces(
            locations=[experiment], run_id=run_id, include_spans=False, max_results=500, page_token=token
        )
        for trace in page:
            response = trace.info.tags.get(_RESPONSE_TAG)
            if response is None:
                continue
            known = {(item.metadata or {}).get(_ASSESSMENT_KEY): item for item in trace.info.assessments}
            ids = {key: str(item.assessment_id) for key, item in known.items() if key}
            found[response] = KnownTrace(trace.info.trace_id, ids)
        token = page.token
        if not token:
            return found
