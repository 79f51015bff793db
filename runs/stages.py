"""What happens after a run's last response: a registry of stages, walked in order by commands, tasks and reports.

A stage of an upper app registers itself from its AppConfig.ready(). `runs` knows only this interface.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from hub.common.registry import Registry
from hub.protocols.calls import CallModel
from hub.protocols.messages import JSON
from runs.models import Run


class StageConfig(BaseModel):
    """A stage's part of a run's config; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")

    def role_models(self) -> dict[str, list[Any]]:
        """Models of its own that the stage asks: role -> model specs, seated in that order."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEstimate:
    """What a stage would do: `calls` to models, `cost_usd` where prices are known, and one line for a person."""

    calls: int = 0
    cost_usd: float | None = 0.0
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageContext:
    """What a stage may use while it executes. `call_model` counts every call into the run's cost and budget.

    `progress(done, total)` shows how far it is; `stopping()` is true once the run was interrupted.
    """

    run: Run
    call_model: CallModel
    tracker: Any = None  # the run's runs.tracking.stage.Tracker
    concurrency: int = 8
    progress: Callable[[int, int], None] = field(default=lambda done, total: None)
    stopping: Callable[[], bool] = field(default=lambda: False)


class Stage(ABC):
    """Something done once all responses are stored. Idempotent: a resumed run executes it again."""

    key: ClassVar[str]  # the config's key, and the key of its summary in `eval --json`
    title: ClassVar[str]
    order: ClassVar[int]  # stages run from low to high; tracking, which logs what the others found, comes last
    Config: ClassVar[type[StageConfig]]
    implicit: ClassVar[bool] = False  # runs even where the config does not name it, with the defaults of Config

    def identity(self, config: Any) -> JSON:
        """The part of *config* that can change a result and so belongs into the config's hash; None where none does."""
        return None

    @abstractmethod
    def estimate(self, run_config: Any, config: Any, responses: int) -> StageEstimate:
        """For `--dry-run`. *run_config* is the RunConfig, *responses* how many the run will have."""

    @abstractmethod
    async def execute(self, context: StageContext, config: Any) -> dict[str, JSON]:
        """Do it, and return the summary that is stored in Run.summaries[key].

        A failure that concerns the stage alone is part of its summary; raising would leave the run unfinished. A
        summary with the key `stopped`, a sentence, says that the budget ended the stage: the run is stopped, and goes
        on with this stage when it is resumed.
        """

    def spent(self, run: Run) -> float | None:
        """What the stage's calls of all sessions cost in USD, as stored; None where a part is not known."""
        return 0.0

    def describe_summary(self, summary: dict[str, Any]) -> str:
        """*summary* as a sentence of a report; empty where a report says it elsewhere."""
        return ""


STAGES: Registry[Stage] = Registry("stage")


def register(stage: Stage) -> None:
    """Add *stage*; the same key twice is a programming error."""
    STAGES.register(stage.key, stage)


def stages() -> list[Stage]:
    """All registered stages, in the order in which they run."""
    return sorted(STAGES.values(), key=lambda stage: (stage.order, stage.key))


def stage(key: str) -> Stage | None:
    return STAGES.get(key)
