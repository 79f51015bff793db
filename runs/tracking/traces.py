"""Traces of responses with their assessments, written as lines of JSON for the process that logs to MLflow."""

import json
from pathlib import Path

from runs.models import Response, Run
from runs.reports.formats import cut
from runs.results.counting import cell_responses
from runs.results.figures import CellResult
from runs.selectors import role_models
from runs.tracking.additions import Assessment, all_assessments
from runs.tracking.config import Traces
from runs.tracking.messages import LoggedAssessment, LoggedTrace

_RATIONALE = 5000  # characters


def write_traces(run: Run, cells: list[CellResult], path: Path, traces: Traces) -> Path:
    """Write a line for each response: for all of them, or for those that did not pass."""
    assessments = all_assessments(run)
    judges = ", ".join(model.label for model in role_models(run).get("rubric", []))
    with path.open("w", encoding="utf-8", errors="replace") as file:
        for cell in cells:
            responses = cell_responses(cell.run_environment, cell.run_model).select_related("case")
            if traces == "failures":
                responses = responses.exclude(status=Response.Status.PASSED)
            for response in responses.prefetch_related("scores").iterator(chunk_size=200):
                items = [*_score_assessments(response, judges), *assessments.get(response.pk, [])]
                file.write(json.dumps(_trace(run, cell, response, items)) + "\n")
    return path


def _score_assessments(response: Response, judges: str) -> list[Assessment]:
    """Return the verdict of each rule. Its source is the judge models for a rubric, else code."""
    return [
        Assessment(
            key=f"score {score.pk}",
            name=score.rule,
            value=score.value,
            source_type="LLM_JUDGE" if score.type == "judge" else "CODE",
            source=judges or score.type if score.type == "judge" else score.type,
            rationale=cut(score.reason, _RATIONALE),
        )
        for score in response.scores.all()
        if score.value is not None
    ]


def _trace(run: Run, cell: CellResult, response: Response, assessments: list[Assessment]) -> LoggedTrace:
    end_ns = int(response.created_at.timestamp() * 1e9)
    return {
        "cell": f"{cell.environment} / {cell.model}",
        "response": str(response.pk),
        "name": f"{cell.slug} {response.case.external_id}",
        "inputs": response.prompt,
        "outputs": response.answer,
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
        "assessments": [_logged_assessment(item) for item in assessments],
    }


def _logged_assessment(item: Assessment) -> LoggedAssessment:
    return {
        "key": item.key,
        "name": item.name,
        "value": item.value,
        "source_type": item.source_type,
        "source": item.source,
        "rationale": item.rationale,
        "overrides": item.overrides,
        "metadata": item.metadata,
    }
