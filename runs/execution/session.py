"""One execution of a run in an event loop: connects to the models, runs the executor, keeps the lease, runs stages."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial

from django.utils import timezone

from hub.common.digests import attempt_seed
from hub.protocols.calls import CallKey
from runs.config.schema import RunConfig
from runs.execution.connections import Connection, close_all, connect
from runs.execution.executor import Executor
from runs.execution.model_client import Budget, ModelClient
from runs.execution.plan import EvaluatedEnvironment, EvaluatedModel, Listener, Plan
from runs.execution.storage import DatabaseCache, Reader, Writer
from runs.leases import RENEW_EVERY_S, LeaseLost, renew_lease
from runs.models import Response, Run, RunModel
from runs.providers.base import ModelSpec
from runs.providers.masking import mask
from runs.selectors import KNOWN_COST, UNKNOWN_COSTS, models_under_test, role_models
from runs.services import STORED_IS_KEPT
from runs.stages import StageContext, stages
from runs.tracking.client import Tracker
from sandbox.client.pool import Pool

logger = logging.getLogger(__name__)
Status = Run.Status


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run with everything that is open for its execution. owner: the name that holds its lease."""

    run: Run
    config: RunConfig
    environments: list[EvaluatedEnvironment]
    pool: Pool | None
    tracker: Tracker
    owner: str
    earlier_seconds: float = field(init=False)
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        object.__setattr__(self, "earlier_seconds", self.run.seconds)

    def seconds(self) -> float:
        """Return the run's wall time until now, earlier executions included."""
        return self.earlier_seconds + time.monotonic() - self.started


class RunSession:
    """One execution of a run by one process, within an event loop.

    signals: Ctrl-C and SIGTERM stop it. stopping: is called every few seconds; True returns the run to the queue.
    resumed: the run was executed before, so some responses may be stored.
    """

    def __init__(
        self,
        context: RunContext,
        listener: Listener,
        *,
        use_cache: bool,
        signals: bool,
        stopping: Callable[[], bool],
        resumed: bool,
    ) -> None:
        self._context = context
        self._run = run = context.run
        self._config = context.config
        self._listener = listener
        self._use_cache = use_cache
        self._signals = signals
        self._stopping = stopping
        self._resumed = resumed
        self._lease_error: Exception | None = None
        self._status_if_stopped = Status.INTERRUPTED
        self._models = models_under_test(run)
        self._roles = role_models(run)

    async def execute(self) -> tuple[Run.Status, str]:
        """Execute the run. Returns the status and message in which it ends; the caller stores them.

        Also sets `cost_usd` and `summaries` of the run, even if it fails. Raises LeaseLost.
        """
        models = {row.label: self._connect(row) for row in self._models}
        roles = {role: [self._connect(row) for row in rows] for role, rows in self._roles.items()}
        reader = Reader()
        writer = Writer(self._run.pk, self._context.owner, replaces=self._resumed)
        spent, unknown = await reader.run(_earlier_costs, self._run)
        budget = Budget(self._config.limits.budget_usd, spent=spent, unknown=unknown)
        model_client = ModelClient(
            models=models,
            roles=roles,
            cache=DatabaseCache(reader, writer) if self._use_cache else None,
            budget=budget,
            seed_of=partial(_attempt_seed, self._config.seed),
        )
        executor = Executor(
            self._plan(models),
            model_client=model_client,
            pool=self._context.pool,
            reader=reader,
            writer=writer,
            listener=self._listener,
        )
        heartbeat = asyncio.create_task(self._keep_lease(executor, reader))
        try:
            with _stop_on_signals(executor) if self._signals else nullcontext():
                await executor.execute()
                await writer.flush()
                status, message = self._status_after_evaluation(executor, budget)
                if status == Status.COMPLETED:
                    # Results can be shown from now on. Stages such as judging may take much longer.
                    await reader.run(self._store_evaluated_at)
                    status, message = await self._execute_stages(executor, model_client)
        finally:
            heartbeat.cancel()
            await asyncio.gather(heartbeat, return_exceptions=True)
            await writer.close()
            self._run.cost_usd = budget.total
            await reader.close()
            await close_all([*models.values(), *(item for items in roles.values() for item in items)])
        return status, message

    def _connect(self, row: RunModel) -> Connection:
        environments = self._context.environments
        return connect(
            ModelSpec.model_validate(row.spec),
            concurrency=self._config.concurrency,
            retries=self._config.limits.retries,
            identical_errors=self._config.limits.identical_errors,
            run_model_id=row.pk,
            only_environment=environments[0].compiled.slug if len(environments) == 1 else "",
        )

    def _plan(self, models: dict[str, Connection]) -> Plan:
        limits = self._config.limits
        return Plan(
            environments=self._context.environments,
            models=[EvaluatedModel(row=row, connection=models[row.label]) for row in self._models],
            attempts=self._config.attempts,
            concurrency=self._config.concurrency,
            case_seconds=limits.case_seconds,
            max_turns=limits.turns,
            seed=self._config.seed,
            resumed=self._resumed,
            models_per_role={role: len(rows) for role, rows in self._roles.items()},
        )

    async def _keep_lease(self, executor: Executor, reader: Reader) -> None:
        """Renew the lease, and stop if the run was cancelled or taken over, or this process shuts down.

        Also stops if the lease cannot be renewed: another process may take the run over once it lapses.
        """
        while True:
            await asyncio.sleep(RENEW_EVERY_S)
            try:
                cancelled = await reader.run(partial(renew_lease, run_id=self._run.pk, owner=self._context.owner))
            except Exception as error:
                if not isinstance(error, LeaseLost):
                    logger.exception("run %s: cannot renew the lease", self._run.pk, extra={"run_id": self._run.pk})
                self._lease_error = error
                executor.stop()
                return
            if cancelled or self._stopping():
                self._status_if_stopped = Status.CANCELLED if cancelled else Status.QUEUED
                executor.stop()
                return

    def _status_after_evaluation(self, executor: Executor, budget: Budget) -> tuple[Run.Status, str]:
        if self._lease_error is not None:
            raise self._lease_error
        if executor.stopping:
            status = self._status_if_stopped
            return status, "" if status == Status.QUEUED else STORED_IS_KEPT
        if budget.exhausted:
            return Status.STOPPED, budget.reason
        return Status.COMPLETED, ""

    def _store_evaluated_at(self) -> None:
        self._run.evaluated_at = timezone.now()
        rows = Run.objects.filter(pk=self._run.pk, lease_owner=self._context.owner)
        rows.update(evaluated_at=self._run.evaluated_at)

    async def _execute_stages(self, executor: Executor, model_client: ModelClient) -> tuple[Run.Status, str]:
        """Execute the stages of the config in order. The summary of a stage that fails has its error.

        A stage that is stopped by the budget stops the run: of the later stages only the implicit ones follow.
        """
        run, (status, message) = self._run, (Status.COMPLETED, "")
        for stage in stages():
            config = self._config.stage_configs.get(stage.key)
            if config is None or executor.stopping or (status == Status.STOPPED and not stage.implicit):
                continue
            context = StageContext(
                run=run,
                call_model=model_client,
                concurrency=self._config.concurrency,
                stopping=lambda: executor.stopping,
                tracker=self._context.tracker,
            )
            # A stage may use the run's figures and the status in which it ends, as tracking does.
            run.status, run.message = status, message
            run.seconds, run.cost_usd = self._context.seconds(), model_client.budget.total
            try:
                summary = await stage.execute(context, config)
            except Exception as error:
                logger.exception("stage %s of run %s", stage.key, run.pk, extra={"run_id": run.pk})
                summary = {"error": mask(f"{type(error).__name__}: {error}")}
            run.summaries = {**run.summaries, stage.key: summary}
            if summary.get("stopped"):
                status, message = Status.STOPPED, str(summary["stopped"])
        return status, message


def _earlier_costs(run: Run) -> tuple[float, bool]:
    """Return the known cost of earlier executions of *run* in USD, and whether some costs are unknown."""
    sums = Response.objects.filter(run_environment__run=run).aggregate(cost=KNOWN_COST, unknown=UNKNOWN_COSTS)
    of_stages = [stage.spent(run) for stage in stages()]
    known = (sums["cost"] or 0.0) + sum(cost for cost in of_stages if cost is not None)
    return max(run.cost_usd or 0.0, known), run.cost_usd is None or sums["unknown"] > 0 or None in of_stages


def _attempt_seed(seed: int, key: CallKey) -> int:
    return attempt_seed(seed, key.environment, key.case, key.attempt)


@contextmanager
def _stop_on_signals(executor: Executor) -> Iterator[None]:
    """Stop *executor* on Ctrl-C and SIGTERM. A second one ends the process as Python does by default."""
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        executor.stop()
        loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
