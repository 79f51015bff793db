"""Stages of a run: steps after its last response, in order. Higher apps add their stages to this registry.

An app registers a stage, or a package with one stage in each module, in AppConfig.ready(). `runs` knows only this
interface.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar, cast

from pydantic import ConfigDict

from hub.common.documents.validation import StrictNumbers
from hub.common.registry import Registry
from hub.protocols.calls import CallModel
from hub.protocols.messages import JSON
from runs.models import Run
from runs.providers.base import ModelSpec


class StageConfig(StrictNumbers):
    """Base class of the section of a stage in a run's config. Unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid")

    def role_models(self) -> Mapping[str, list[ModelSpec]]:
        """Return the models that the stage itself calls, by role."""
        return {}


ConfigT = TypeVar("ConfigT", bound=StageConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSize:
    """Size of a run, for estimates. cases: of all environments together."""

    cases: int
    models: int
    attempts: int

    @property
    def responses(self) -> int:
        return self.cases * self.models * self.attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEstimate:
    """Estimate of a stage: its calls of models, their cost (None if unknown), and a line of text for a dry run."""

    calls: int = 0
    cost_usd: float | None = 0.0
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageContext:
    """Resources of a stage during its execution.

    call_model: counts every call in the run's cost and budget. tracker: the Tracker of the run, if there is one.
    progress: to be called with the number of finished and of all items. stopping: returns True once the run is
    interrupted.
    """

    run: Run
    call_model: CallModel
    tracker: object = None
    concurrency: int = 8
    progress: Callable[[int, int], None] = field(default=lambda done, total: None)
    stopping: Callable[[], bool] = field(default=lambda: False)


class Stage(ABC, Generic[ConfigT]):
    """Step after the last response. Idempotent: a resumed run executes it again.

    key: its key in the config, and of its summary in `eval --json`. order: stages run from low to high; tracking, which
    logs the results of the others, comes last. implicit: runs even if the config does not have its section, with the
    defaults of Config.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    order: ClassVar[int]
    Config: ClassVar[type[StageConfig]]
    implicit: ClassVar[bool] = False

    def identity(self, config: ConfigT) -> JSON:
        """Return the part of *config* that can change a result, for the hash of the config; None if nothing can."""
        return None

    @abstractmethod
    def estimate(self, size: RunSize, config: ConfigT) -> StageEstimate:
        """Return what the stage would do in a run of this size, for `--dry-run`."""

    @abstractmethod
    async def execute(self, context: StageContext, config: ConfigT) -> dict[str, JSON]:
        """Execute the stage, and return the summary that is stored in Run.summaries[key].

        A failure of the stage belongs into its summary, under `error`. If the budget stops the stage, its summary has
        the reason under `stopped`: the run is then stopped, and a resumed run continues with this stage.
        """

    def is_configured(self, run: Run) -> bool:
        """Return whether the config of *run* asks for the stage. The page of the run lists only such stages."""
        return bool(run.config.get(self.key))

    def spent(self, run: Run) -> float | None:
        """Return the stored cost of the stage's calls in USD, earlier executions included; None if partly unknown."""
        return 0.0

    def describe_summary(self, summary: Mapping[str, JSON]) -> str:
        """Return *summary* as a sentence for a report; empty if the report shows it elsewhere."""
        return ""


STAGES: Registry[Stage[StageConfig]] = Registry("stage", Stage, attribute="key", create=True)


def register(stage: Stage[ConfigT]) -> None:
    """Add *stage* to the registry. Raises ValueError if its key is taken."""
    # Each stage is called only with the config that its own Config validated.
    STAGES.register(stage.key, cast("Stage[StageConfig]", stage))


def register_package(package: str) -> None:
    """Add the stages in the modules of *package*, such as `review.stages`. They are imported when they are needed."""
    STAGES.register_package(package)


def stages() -> Sequence[Stage[StageConfig]]:
    """Return all registered stages, in the order in which they run."""
    return sorted(STAGES.values(), key=lambda stage: (stage.order, stage.key))


def stage(key: str) -> Stage[StageConfig] | None:
    """Return the stage with this key in a config, or None."""
    return STAGES.get(key)
