"""Executing a run: sandbox, connections, executor and stages for one sitting, and the run's state at its end."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from django.conf import settings
from django.utils import timezone

from hub.common.digests import attempt_seed
from hub.common.leases import new_owner
from hub.protocols.calls import CallKey
from hub.selectors import compile_version
from runs.config.schema import RunConfig
from runs.execution.executor import EvaluatedEnvironment, EvaluatedModel, Executor, Listener, Plan
from runs.execution.model_client import Budget, Connection, ModelClient
from runs.execution.storage import DatabaseCache, Reader, Writer
from runs.leases import RENEW_EVERY_S, LeaseLost, release_lease, renew_lease, take_lease
from runs.models import Response, Run, RunModel
from runs.providers.base import ModelSpec, ProviderContext
from runs.providers.masking import mask
from runs.providers.registry import PROVIDERS
from runs.results.stored import store_results
from runs.selectors import KNOWN_COST, UNKNOWN_COSTS, models_under_test, role_models
from runs.services import KEPT
from runs.stages import StageContext, stages
from runs.tracking.client import Tracker
from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.client.settings import get_pool_options
from sandbox.errors import SandboxUnavailable

logger = logging.getLogger(__name__)

Status = Run.Status


def run_pool_options(config: RunConfig) -> PoolOptions:
    """The sandbox that *config* asks for. Tier C passes only for recordings, or where the operator allows more."""
    accept = set(config.sandbox.accept)
    live = any(PROVIDERS[spec.provider].live for spec in config.models)
    if live and not settings.SANDBOX_WEAK_ISOLATION_FOR_LIVE_MODELS:
        accept.discard("C")
    if not accept:
        raise SandboxUnavailable(
            "Tier C hardly contains what live models write, and the config accepts no other. Accept A and B "
            "(`sandbox: {accept: [A, B]}`), or have an operator set LLMEVAL_SANDBOX_WEAK_ISOLATION=1."
        )
    return get_pool_options(backend=config.sandbox.backend, accept=accept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How a run is to be executed here.

    `signals`: Ctrl-C and SIGTERM interrupt it (the main thread only). `stopping` is called every few seconds; once it
    returns true, because a worker shuts down, the run goes back into the queue.
    """

    use_cache: bool = True
    signals: bool = False
    stopping: Callable[[], bool] = field(default=lambda: False)


def execute_run(*, run: Run, config: RunConfig, listener: Listener, how: Execution, owner: str = "") -> Run:
    """Play what is missing of *run*, then its stages. Returns the run in its final state.

    *owner* holds the run's lease already; without it the lease is taken here. Raises RunBusy, LeaseLost, and
    SandboxUnavailable before anything is asked. Any other failure is stored in the run and raised.
    """
    if not owner:
        owner = new_owner()
        take_lease(run=run, owner=owner)
    try:
        parts = [
            EvaluatedEnvironment(row=row, compiled=compile_version(row.version))
            for row in run.environments.select_related("version__environment").order_by("position")
        ]
        needs_pool = any(part.compiled.needs_sandbox for part in parts)
        with ExitStack() as held:
            tracking = config.stage_configs.get("tracking")
            tracker = Tracker.start(tracking)
            held.callback(tracker.close)
            pool = held.enter_context(Pool.open(run_pool_options(config))) if needs_pool else None
            for part in parts:
                part.compiled.pool(pool)  # so that a missing package is reported before anything is asked
            context = RunContext(
                run=run,
                config=config,
                parts=parts,
                pool=pool,
                tracker=tracker,
                owner=owner,
                earlier_seconds=run.seconds,
            )
            _execute_and_store_status(context, listener, how)
    finally:
        release_lease(run=run, owner=owner)
    return run


def _execute_and_store_status(context: "RunContext", listener: Listener, how: Execution) -> None:
    """Execute, and store the state in which the run is left, whatever happens."""
    run = context.run
    resumed = run.started_at is not None
    run.status, run.started_at, run.evaluated_at = Status.RUNNING, run.started_at or timezone.now(), None
    run.save(update_fields=["status", "started_at", "evaluated_at"])
    try:
        asyncio.run(_RunExecution(context, listener, how, resumed).play())
    except LeaseLost:
        raise  # the run's state is its new owner's to write
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            run.status, run.message = Status.INTERRUPTED, KEPT
        else:
            run.status, run.message = Status.FAILED, str(error) or type(error).__name__
        _store_final_status(context)
        raise
    _store_final_status(context)


def _store_final_status(context: "RunContext") -> None:
    run = context.run
    run.seconds = context.seconds()
    run.finished_at = None if run.status == Status.QUEUED else timezone.now()
    run.save(update_fields=["status", "message", "seconds", "finished_at", "cost_usd", "summaries"])
    if run.finished_at is not None:
        store_results(run)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """One go at a run by one process: what is open for it, and the name that holds its lease."""

    run: Run
    config: RunConfig
    parts: list[EvaluatedEnvironment]
    pool: Pool | None
    tracker: Tracker
    owner: str
    earlier_seconds: float
    started: float = field(default_factory=time.monotonic)

    def seconds(self) -> float:
        """The run's wall time until now, its earlier sittings included."""
        return self.earlier_seconds + time.monotonic() - self.started


class _RunExecution:
    """The event loop's side of a sitting: connections, executor, heartbeat and stages."""

    def __init__(self, context: RunContext, listener: Listener, how: Execution, resumed: bool) -> None:
        self._context = context
        self._run = run = context.run
        self._config = context.config
        self._parts = context.parts
        self._pool = context.pool
        self._tracker = context.tracker
        self._owner = context.owner
        self._listener = listener
        self._how = how
        self._resumed = resumed
        self._lost: LeaseLost | None = None
        self._left = Status.INTERRUPTED  # the state of a run that is stopped from outside
        self._contenders = [(row, ModelSpec.model_validate(row.spec)) for row in models_under_test(run)]
        self._roles = {
            role: [(row, ModelSpec.model_validate(row.spec)) for row in rows] for role, rows in role_models(run).items()
        }

    async def play(self) -> None:
        models = {row.label: self._connect(row, spec) for row, spec in self._contenders}
        roles = {role: [self._connect(row, spec) for row, spec in seats] for role, seats in self._roles.items()}
        connections = [*models.values(), *(item for seats in roles.values() for item in seats)]
        reader, writer = Reader(), Writer(replaces=self._resumed)
        spent, unknown = await reader.run(_spent, self._run)
        budget = Budget(self._config.limits.budget_usd, spent=spent, unknown=unknown)
        model_client = ModelClient(
            models=models,
            roles=roles,
            cache=DatabaseCache(reader, writer) if self._how.use_cache else None,
            budget=budget,
            seed_of=partial(_seed_of, self._config.seed),
        )
        executor = Executor(
            self._plan(models),
            model_client=model_client,
            pool=self._pool,
            reader=reader,
            writer=writer,
            listener=self._listener,
        )
        heartbeat = asyncio.create_task(self._keep_lease(executor, reader))
        try:
            with _signals(executor, self._how.signals):
                await executor.execute()
                await writer.flush()
                self._set_final_status(executor, budget)
                if self._run.status == Status.COMPLETED:
                    # Results can be shown from now on; judging and tracking may take much longer.
                    self._run.evaluated_at = timezone.now()
                    await reader.run(_store_evaluated_at, self._run)
                    await self._stages(executor, model_client)
        finally:
            heartbeat.cancel()
            await asyncio.gather(heartbeat, return_exceptions=True)
            await writer.close()
            self._run.cost_usd = budget.total
            await reader.close()
            await asyncio.gather(*(item.provider.aclose() for item in connections), return_exceptions=True)

    def _connect(self, row: RunModel, spec: ModelSpec) -> Connection:
        provider = PROVIDERS[spec.provider]
        options = provider.Options.model_validate(spec.options)
        key_name = getattr(options, "api_key_env", None)
        context = ProviderContext(
            retries=self._config.limits.retries,
            concurrency=self._config.concurrency,
            api_key=settings.ENV.lookup(key_name) if key_name else None,
            only_environment=self._parts[0].compiled.slug if len(self._parts) == 1 else "",
        )
        return Connection(
            label=row.label,
            spec=spec,
            provider=provider(spec, options, context),
            fingerprint=row.fingerprint,
            slots=asyncio.Semaphore(self._config.concurrency),
            identical_errors=self._config.limits.identical_errors,
            run_model_id=row.pk,
        )

    def _plan(self, models: dict[str, Connection]) -> Plan:
        limits = self._config.limits
        return Plan(
            parts=self._parts,
            evaluated_models=[EvaluatedModel(row=row, connection=models[row.label]) for row, _ in self._contenders],
            attempts=self._config.attempts,
            concurrency=self._config.concurrency,
            case_seconds=limits.case_seconds,
            max_turns=limits.turns,
            seed=self._config.seed,
            resumed=self._resumed,
            seats={role: len(seats) for role, seats in self._roles.items()},
        )

    async def _keep_lease(self, executor: Executor, reader: Reader) -> None:
        """Renew the lease, and stop where the run was cancelled or taken over, or this process is to end."""
        while True:
            await asyncio.sleep(RENEW_EVERY_S)
            try:
                cancelled = await reader.run(partial(renew_lease, run_id=self._run.pk, owner=self._owner))
            except LeaseLost as error:
                self._lost = error
                executor.stop()
                return
            if cancelled or self._how.stopping():
                self._left = Status.CANCELLED if cancelled else Status.QUEUED
                executor.stop()
                return

    def _set_final_status(self, executor: Executor, budget: Budget) -> None:
        run = self._run
        if self._lost is not None:
            raise self._lost
        if executor.stopping:
            run.status, run.message = self._left, "" if self._left == Status.QUEUED else KEPT
        elif budget.exhausted:
            run.status = Status.STOPPED
            run.message = budget.reason
        else:
            run.status, run.message = Status.COMPLETED, ""

    async def _stages(self, executor: Executor, model_client: ModelClient) -> None:
        """Every stage that the config names, in order; one that fails says so in its summary and ends nothing.

        One that is stopped by the budget stops the run: of the later ones only those that every run has follow.
        """
        for stage in stages():
            part = self._config.stage_configs.get(stage.key)
            if part is None or executor.stopping or (self._run.status == Status.STOPPED and not stage.implicit):
                continue
            context = StageContext(
                run=self._run,
                call_model=model_client,
                concurrency=self._config.concurrency,
                stopping=lambda: executor.stopping,
                tracker=self._tracker,
            )
            # A stage may report the run's figures, as tracking does.
            self._run.seconds, self._run.cost_usd = self._context.seconds(), model_client.budget.total
            try:
                summary = await stage.execute(context, part)
            except Exception as error:
                logger.exception("stage %s of run %s", stage.key, self._run.pk)
                summary = {"error": mask(f"{type(error).__name__}: {error}")}
            self._run.summaries = {**self._run.summaries, stage.key: summary}
            if summary.get("stopped"):
                self._run.status, self._run.message = Status.STOPPED, str(summary["stopped"])


def _store_evaluated_at(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(evaluated_at=run.evaluated_at)


def _spent(run: Run) -> tuple[float, bool]:
    """What is known of the cost of earlier sittings of *run* in USD, and whether a part of it is unknown."""
    sums = Response.objects.filter(run_environment__run=run).aggregate(cost=KNOWN_COST, unknown=UNKNOWN_COSTS)
    of_stages = [stage.spent(run) for stage in stages()]
    known = (sums["cost"] or 0.0) + sum(cost for cost in of_stages if cost is not None)
    return max(run.cost_usd or 0.0, known), run.cost_usd is None or sums["unknown"] > 0 or None in of_stages


def _seed_of(seed: int, key: CallKey) -> int:
    return attempt_seed(seed, key.environment, key.case, key.attempt)


@contextmanager
def _signals(executor: Executor, wanted: bool) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop *executor*; a second one ends the process as Python does by default."""
    if not wanted:
        yield
        return
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
