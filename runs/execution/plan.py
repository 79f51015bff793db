"""Plan of an execution: the environments and models of a run, its limits, and one missing response."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hub.environments.compiled import CompiledEnvironment
from hub.models import Case
from runs.execution.connections import Connection
from runs.models import Response, RunEnvironment, RunModel


class Listener(Protocol):
    """Receives every finished response and every model that is stopped, for example to show progress."""

    def response_finished(self, response: Response) -> None: ...

    def model_stopped(self, label: str, reason: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedEnvironment:
    """Environment of the run, compiled."""

    row: RunEnvironment
    compiled: CompiledEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedModel:
    """Model under test, with its connection."""

    row: RunModel
    connection: Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingResponse:
    """Response that the run has yet to request."""

    environment: EvaluatedEnvironment
    model: EvaluatedModel
    case: Case
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run evaluates, and its limits.

    resumed: some responses may be stored already. models_per_role: the number of models that fill each role.
    """

    environments: Sequence[EvaluatedEnvironment]
    models: Sequence[EvaluatedModel]
    attempts: int
    concurrency: int
    case_seconds: float
    max_turns: int
    seed: int
    resumed: bool
    models_per_role: Mapping[str, int] = field(default_factory=dict)
