"""Messages between the product and the process that logs to MLflow: one line of JSON each. No Django here."""

from typing import Literal, NotRequired, TypedDict


class LoggedRun(TypedDict):
    """Run in MLflow. `artifacts` is the folder with its artifacts; times are milliseconds since the epoch.

    `undefined` names figures that have no value now but may have had one when the run was logged before.
    """

    name: str
    start_ms: int
    end_ms: int
    status: str
    params: dict[str, str]
    metrics: dict[str, float]
    undefined: list[str]
    tags: dict[str, str]
    artifacts: str


class LoggedCell(LoggedRun):
    """Nested run of one environment and model. `key` names it in the answer."""

    key: str


class TrackingJob(TypedDict):
    """Everything to log about a run. `traces` is the path of a .jsonl file with a LoggedTrace on each line, or None."""

    run: str
    experiment: str
    artifact_root: str | None
    parent: LoggedRun
    cells: list[LoggedCell]
    traces: str | None


class LoggedAssessment(TypedDict):
    """Fields of runs.tracking.additions.Assessment."""

    key: str
    name: str
    value: bool | float | str
    source_type: Literal["HUMAN", "LLM_JUDGE", "CODE"]
    source: str
    rationale: str
    overrides: str
    metadata: dict[str, str]


class LoggedTrace(TypedDict):
    """Trace of one response. `cell` is the key of its LoggedCell, `response` the id of the response."""

    cell: str
    response: str
    name: str
    inputs: object
    outputs: object
    status: Literal["OK", "ERROR"]
    start_ns: int
    end_ns: int
    attributes: dict[str, object]
    tags: dict[str, str]
    assessments: list[LoggedAssessment]


class TrackingAnswer(TypedDict):
    """Ids in MLflow after a job, or `error` alone."""

    experiment_id: str
    parent: str
    cells: dict[str, str]
    traces: int
    assessments: int
    error: NotRequired[str]
