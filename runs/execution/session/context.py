"""Options and context of an execution of a run: the stored run, its config, the sandbox, its share of the work."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from runs.config.schema import RunConfig
from runs.execution.local_processes import LocalProcesses
from runs.execution.plan import EvaluatedEnvironment
from runs.models import Run, Shard
from runs.tracking.client import Tracker
from sandbox.client.pool import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """Options of one process that executes a run.

    use_cache     take replies from the cache
    signals       Ctrl-C, SIGTERM and the end of the terminal interrupt the run (main thread only)
    retry_for_s   how long this process itself retries after an infrastructure fault; None: the run returns to the queue
    slice_s       after this time the run makes way for a waiting run that goes before it, if there is one; None: never
    workers_help  other workers execute shards of a large run at the same time
    processes     number of local processes that execute a large run together, this one included
    stopping      is called several times a second; if it returns True, as in a worker that shuts down, the run returns
                  to the queue
    """

    use_cache: bool = True
    signals: bool = False
    retry_for_s: float | None = None
    slice_s: float | None = None
    workers_help: bool = False
    processes: int = 1
    stopping: Callable[[], bool] = field(default=lambda: False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of a run that this process executes.

    leads         it holds the lease of the run, and ends it
    divided       the run has shards
    reserved_for  as in Shard
    taken         a shard that it holds already
    helpers       local processes that it has started
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
