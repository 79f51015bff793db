"""Context of an execution of a run: the stored run, its config, the sandbox, and its share of the work."""

import time
from dataclasses import dataclass, field

from runs.config.schema import RunConfig
from runs.execution.local_processes import LocalProcesses
from runs.execution.plan import EvaluatedEnvironment
from runs.models import Run, Shard
from runs.tracking.client import Tracker
from sandbox.client.pool import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of a run that this process executes.

    leads: it holds the lease of the run, and ends it. divided: the run has shards. reserved_for: as in Shard. taken: a
    shard that it holds already. helpers: local processes that it has started.
    """

    leads: bool = True
    divided: bool = False
    reserved_for: str = ""
    taken: Shard | None = None
    helpers: LocalProcesses | None = None


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run with everything that is open for its execution. owner: the name that holds its lease."""

    run: Run
    config: RunConfig
    environments: list[EvaluatedEnvironment]
    pool: Pool | None
    tracker: Tracker
    owner: str
    share: Share = field(default_factory=Share)
    earlier_seconds: float = field(init=False)
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        object.__setattr__(self, "earlier_seconds", self.run.seconds)

    def seconds(self) -> float:
        """Return the run's wall time until now, earlier executions included."""
        return self.earlier_seconds + time.monotonic() - self.started
