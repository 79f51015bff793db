"""Plan of an execution: the environments and models of a run, its limits, and one missing response."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hub.environments.compiled import CompiledEnvironment
from hub.models import Case
from runs.execution.connections import Connection
from runs.models import Response, RunEnvironment, RunModel


class Listener(Protocol):
    """Object that an execution informs of finished responses, stopped models and delays, for example to show them."""

    def response_finished(self, response: Response) -> None:
        """Called after each episode, before its response is stored."""

    def model_stopped(self, label: str, reason: str) -> None:
        """Called once for each model that is not called any more."""

    def run_delayed(self, reason: str, seconds: float) -> None:
        """Called if an infrastructure fault delays the run by *seconds*."""


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


@dataclass(slots=True, kw_only=True)
class Block:
    """Cases of an environment that one model answers: a shard, or all cases of a run that is not divided.

    fresh        none of its responses can be stored yet
    first, last  positions of cases; last is None for all
    unfinished   number of its episodes that have not ended, plus one while more can start
    incomplete   a response of it stays missing because the run or its model was stopped

    Responses that a stopped role model could not score stay missing, too, but do not make the block incomplete: another
    process would pay for them in vain. A resume makes its shard unfinished again.
    """

    environment: EvaluatedEnvironment
    fresh: bool
    first: int = 0
    last: int | None = None
    shard_id: int | None = None
    unfinished: int = 1
    incomplete: bool = False


class BlockSource(Protocol):
    """Yields the blocks of a model that this process executes."""

    def blocks(self, model: EvaluatedModel) -> AsyncIterator[Block]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingResponse:
    """Response that the run has yet to request."""

    block: Block
    model: EvaluatedModel
    case: Case
    attempt: int

    @property
    def environment(self) -> EvaluatedEnvironment:
        return self.block.environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run evaluates, and its limits.

    models_per_role: the number of models that fill each role.
    """

    environments: Sequence[EvaluatedEnvironment]
    models: Sequence[EvaluatedModel]
    attempts: int
    concurrency: int
    case_seconds: float
    max_turns: int
    seed: int
    models_per_role: Mapping[str, int] = field(default_factory=dict)
