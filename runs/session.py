"""Executing a run: sandbox, connections, executor and stages for one sitting, and the run's state at its end."""

import asyncio
import logging
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from django.conf import settings
from django.db.models import F, Sum
from django.utils import timezone
from sandbox.pool import Pool, PoolOptions

from hub.canonical import attempt_seed
from hub.ports import CallKey
from hub.selectors import compile_version
from runs.asking import Asker, Budget, Connection
from runs.config import RunConfig
from runs.executor import Contender, Executor, Listener, Part, Plan
from runs.models import Response, Run, RunModel
from runs.providers.base import ModelSpec, ProviderContext
from runs.providers.registry import PROVIDERS
from runs.selectors import answering_models, role_models
from runs.stages import StageContext, stages
from runs.store import DatabaseCache, Reader, Writer
from runs.tracking import Tracker

logger = logging.getLogger(__name__)

Status = Run.Status


def pool_options(config: RunConfig) -> PoolOptions:
    """The sandbox that *config* asks for. Tier C passes only for recordings, or where the operator allows more."""
    accept = set(config.sandbox.accept)
    live = any(PROVIDERS[spec.provider].live for spec in config.models)
    if live and not settings.SANDBOX_WEAK_ISOLATION_FOR_LIVE_MODELS:
        accept.discard("C")
    return PoolOptions(
        backend=config.sandbox.backend, accept=frozenset(accept), workers=settings.SANDBOX_WORKERS or None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How a run is to be executed here. `signals`: Ctrl-C and SIGTERM interrupt it (the main thread only)."""

    use_cache: bool = True
    signals: bool = False


def run_execute(*, run: Run, config: RunConfig, listener: Listener, how: Execution) -> Run:
    """Play what is missing of *run*, then its stages. Returns the run in its final state.

    Raises SandboxUnavailable before anything is asked. Any other failure is stored in the run and raised.
    """
    parts = [
        Part(row=row, compiled=compile_version(row.version))
        for row in run.environments.select_related("version__environment").order_by("position")
    ]
    needs_pool = any(part.compiled.needs_sandbox for part in parts)
    pool = Pool.open(pool_options(config)) if needs_pool else None
    tracker = Tracker.start(config.stage_configs.get("tracking"))
    resumed = run.started_at is not None
    started = time.monotonic()
    run.status, run.started_at = Status.RUNNING, run.started_at or timezone.now()
    run.save(update_fields=["status", "started_at"])
    try:
        session = _Session(run, config, parts, pool, tracker, listener, how, resumed)
        with _closing_loop() as loop:
            loop.run_until_complete(session.play())
    except BaseException as error:
        run.status = Status.INTERRUPTED if isinstance(error, KeyboardInterrupt) else Status.FAILED
        run.message = str(error) or type(error).__name__
        raise
    finally:
        run.seconds = run.seconds + time.monotonic() - started
        run.finished_at = timezone.now()
        run.save()
        tracker.close()
        if pool is not None:
            pool.close()
    return run


@contextmanager
def _closing_loop() -> Iterator[asyncio.AbstractEventLoop]:
    with asyncio.Runner() as runner:
        yield runner.get_loop()


class _Session:
    """One sitting of a run: connections, executor and stages, all within one event loop."""

    def __init__(
        self,
        run: Run,
        config: RunConfig,
        parts: list[Part],
        pool: Pool | None,
        tracker: Tracker,
        listener: Listener,
        how: Execution,
        resumed: bool,
    ) -> None:
        self._run = run
        self._config = config
        self._parts = parts
        self._pool = pool
        self._tracker = tracker
        self._listener = listener
        self._how = how
        self._resumed = resumed
        self._contenders = [(row, ModelSpec.model_validate(row.spec)) for row in answering_models(run)]
        self._roles = {
            role: [(row, ModelSpec.model_validate(row.spec)) for row in rows] for role, rows in role_models(run).items()
        }

    async def play(self) -> None:
        models = {row.label: self._connect(row, spec) for row, spec in self._contenders}
        roles = {role: [self._connect(row, spec) for row, spec in seats] for role, seats in self._roles.items()}
        connections = [*models.values(), *(item for seats in roles.values() for item in seats)]
        reader, writer = Reader(), Writer(replaces=self._resumed)
        budget = Budget(self._config.limits.budget_usd, spent=await reader.run(_spent, self._run))
        asker = Asker(
            models=models,
            roles=roles,
            cache=DatabaseCache(reader, writer) if self._how.use_cache else None,
            budget=budget,
            seed_of=partial(_seed_of, self._config.seed),
        )
        executor = Executor(
            self._plan(models),
            asker=asker,
            pool=self._pool,
            reader=reader,
            writer=writer,
            listener=self._listener,
        )
        try:
            with _signals(executor, self._how.signals):
                await executor.execute()
                await writer.flush()
                self._settle(executor, budget)
                if self._run.status == Status.COMPLETED:
                    await self._stages(executor, asker, reader)
        finally:
            await writer.close()
            self._run.cost_usd = budget.spent
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
        )

    def _plan(self, models: dict[str, Connection]) -> Plan:
        limits = self._config.limits
        return Plan(
            parts=self._parts,
            contenders=[Contender(row=row, connection=models[row.label]) for row, _ in self._contenders],
            attempts=self._config.attempts,
            concurrency=self._config.concurrency,
            case_seconds=limits.case_seconds,
            max_turns=limits.turns,
            seed=self._config.seed,
            resumed=self._resumed,
            seats={role: len(seats) for role, seats in self._roles.items()},
        )

    def _settle(self, executor: Executor, budget: Budget) -> None:
        run = self._run
        if executor.stopping:
            run.status, run.message = Status.INTERRUPTED, "Interrupted; what was stored is kept."
        elif budget.exhausted:
            run.status = Status.STOPPED
            run.message = f"Stopped: ${budget.spent:,.4f} of the budget of ${budget.limit:,.2f} is spent."
        else:
            run.status, run.message = Status.COMPLETED, ""

    async def _stages(self, executor: Executor, asker: Asker, reader: Reader) -> None:
        """Every stage that the config names, in order; one that fails says so in its summary and ends nothing."""
        for stage in stages():
            part = self._config.stage_configs.get(stage.key)
            if part is None or executor.stopping:
                continue
            context = StageContext(
                run=self._run,
                ask=asker,
                concurrency=self._config.concurrency,
                stopping=lambda: executor.stopping,
                tracker=self._tracker,
            )
            try:
                summary = await stage.execute(context, part)
            except Exception as error:
                logger.exception("stage %s of run %s", stage.key, self._run.pk)
                summary = {"error": f"{type(error).__name__}: {error}"}
            self._run.summaries = {**self._run.summaries, stage.key: summary}


def _spent(run: Run) -> float:
    """What earlier sittings of *run* cost, in USD."""
    sums = Response.objects.filter(run_environment__run=run).aggregate(cost=Sum(F("cost_usd") + F("role_cost_usd")))
    return max(run.cost_usd, sums["cost"] or 0.0)


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
