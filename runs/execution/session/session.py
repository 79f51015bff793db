"""One execution of a run in an event loop: connects to the models, runs the executor and keeps the lease."""

import asyncio
import logging
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, nullcontext
from functools import partial

from django.utils import timezone

from hub.common.digests import attempt_seed
from hub.common.garbage_collection import collect_seldom
from hub.common.leases import lease_clock
from hub.common.termination import termination_signals
from hub.common.tracing import span
from hub.protocols.calls import CallKey, ModelError
from runs.execution.connections import Connection, close_all, connect
from runs.execution.executor import FINISH_TURN_WITHIN_S, FINISH_WITHIN_S, Executor
from runs.execution.faults import InfrastructureFault, find_fault
from runs.execution.model_client import ModelClient
from runs.execution.plan import BlockSource, EvaluatedModel, Listener, Plan
from runs.execution.session.context import ExecutionOptions, RunContext
from runs.execution.session.run_budget import open_budget, restart_budget, return_grants
from runs.execution.session.stage_runner import StageRunner
from runs.execution.shards import (
    ShardSource,
    WholeRun,
    held_by_others,
    release_shards,
    renew_shards,
    should_leave,
)
from runs.execution.storage import DatabaseCache, Reader, Writer
from runs.leases import LEASE, RENEW_EVERY_S, LeaseLost, renew_lease
from runs.limits.budget import Budget
from runs.missing import count_missing
from runs.models import ACTIVE, Run, RunModel
from runs.providers.base import ModelSpec
from runs.queue import should_make_way
from runs.selectors import models_under_test, role_models
from runs.services import STORED_IS_KEPT
from runs.spending import earlier_costs

logger = logging.getLogger(__name__)
Status = Run.Status
_LOOK_EVERY_S = 0.2  # how soon a shutdown of the process is noticed
_STOPPED_TOO_LONG = "The process that executed the run was stopped for longer than its lease on shards lives."
_OTHERS_LEAVE_WITHIN_S = 10.0  # when the run is stopped: other processes look every RENEW_EVERY_S


class RunSession:
    """One execution of a run by one process, within an event loop.

    resumed: the run was executed before, so some responses may be stored.
    """

    def __init__(self, context: RunContext, listener: Listener, options: ExecutionOptions, *, resumed: bool) -> None:
        self._context = context
        self._run = run = context.run
        self._config = context.config
        self._listener = listener
        self._options = options
        self._resumed = resumed
        self._lease_error: Exception | None = None
        self._leased_until = lease_clock() + LEASE.total_seconds()
        self._ended = False
        self._stages = StageRunner(context)
        self._status_if_stopped = Status.INTERRUPTED
        self._models = models_under_test(run)
        self._roles = role_models(run)

    async def execute(self) -> tuple[Run.Status, str]:
        """Execute the run. Returns the status and message in which it ends; the caller stores them.

        Also sets `cost_usd` and `summaries` of the run, even if it fails. Raises LeaseLost.
        """
        with span("run", {"llmeval.run": self._run.pk, "llmeval.run_name": self._run.name}) as trace:
            status, message = await self._execute()
            trace.set({"llmeval.status": str(status)})
        return status, message

    async def _execute(self) -> tuple[Run.Status, str]:
        models = {row.label: self._connect(row) for row in self._models}
        roles = {role: [self._connect(row) for row in rows] for role, rows in self._roles.items()}
        collect_seldom()  # the packages of the providers are loaded now
        share = self._context.share
        async with AsyncExitStack() as stack:  # closes everything that was opened, also if closing a part of it fails
            connections = [*models.values(), *(item for items in roles.values() for item in items)]
            stack.push_async_callback(close_all, connections)
            reader = Reader()
            stack.push_async_callback(reader.close)
            budget = await open_budget(self._context, reader)
            stack.push_async_callback(self._store_spent, reader, budget)
            writer = Writer(self._run.pk, self._context.owner, divided=share.divided)
            stack.push_async_callback(writer.close)
            model_client = ModelClient(
                models=models,
                roles=roles,
                cache=DatabaseCache(reader, writer) if self._options.use_cache else None,
                budget=budget,
                seed_of=partial(_attempt_seed, self._config.seed),
                holds_lease=self._holds_lease,
            )
            executor = Executor(
                self._plan(models),
                source=self._source(reader, budget),
                model_client=model_client,
                pool=self._context.pool,
                reader=reader,
                writer=writer,
                listener=self._listener,
            )
            heartbeat = asyncio.create_task(self._keep_lease(executor, reader, models, budget))
            stack.push_async_callback(_cancel, heartbeat)
            with _stop_on_signals(executor) if self._options.signals else nullcontext():
                while True:
                    await self._execute_plan(executor, writer, reader)
                    if share.divided and share.leads:
                        await self._wait_for_others(executor, reader, budget)
                    if executor.stopping or not await restart_budget(self._context, reader, budget):
                        break
                missing = await reader.run(count_missing, self._run) if budget.exhausted else 0
                status, message = self._status_after_evaluation(executor, budget, missing)
                if status == Status.COMPLETED and share.leads:
                    # Results can be shown from now on. Stages such as judging may take much longer.
                    await reader.run(self._store_evaluated_at)
                    ended = await self._stages.execute(model_client, reader, lambda: executor.stopping)
                    status, message = self._status_if_stopping(executor) or ended
        return status, message

    async def _store_spent(self, reader: Reader, budget: Budget) -> None:
        self._run.cost_usd = budget.total
        await reader.run(self._leave, budget)

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
            models_per_role={role: len(rows) for role, rows in self._roles.items()},
        )

    async def _execute_plan(self, executor: Executor, writer: Writer, reader: Reader) -> None:
        try:
            await executor.execute()
            await writer.flush()
        except LeaseLost:
            if not (self._context.share.divided and self._context.share.leads):
                raise
            # Only the lease of a shard is lost, unless renewing that of the run raises LeaseLost as well.
            await reader.run(self._renew_run)
            raise InfrastructureFault(_STOPPED_TOO_LONG) from None

    def _source(self, reader: Reader, budget: Budget) -> BlockSource:
        context, share = self._context, self._context.share
        if not share.divided:
            return WholeRun(context.environments, self._resumed)
        return ShardSource(
            run_id=self._run.pk,
            environments=context.environments,
            reader=reader,
            owner=context.owner,
            reserved_for=share.reserved_for,
            waits=share.leads,
            ended=lambda model: self._ended or model.connection.stopped is not None or budget.exhausted,
            taken=share.taken,
        )

    async def _wait_for_others(self, executor: Executor, reader: Reader, budget: Budget) -> None:
        """Wait until the other processes have stored what they have in flight, and count what they have spent.

        A run that only returns to the queue does not wait: they continue.
        """
        helpers = self._context.share.helpers
        if helpers is not None:
            helpers.stop()
        elif executor.stopping and self._status_if_stopped == Status.QUEUED:
            return
        await reader.run(release_shards, self._run.pk, self._context.owner)
        deadline = time.monotonic() + _OTHERS_LEAVE_WITHIN_S
        while await reader.run(held_by_others, self._run.pk, self._context.owner) and self._lease_error is None:
            if executor.stopping and time.monotonic() > deadline:
                break
            await asyncio.sleep(_LOOK_EVERY_S)
        spent, unknown = await reader.run(earlier_costs, self._run)
        budget.spent, budget.unknown = max(budget.spent, spent), budget.unknown or unknown

    def _leave(self, budget: Budget) -> None:
        return_grants(self._run, budget, holds_lease=self._holds_lease())
        if self._context.share.divided:
            release_shards(self._run.pk, self._context.owner)

    def _holds_lease(self) -> bool:
        """Return whether no other process can have taken over what this one has leased."""
        return lease_clock() < self._leased_until

    def _renew(self, budget: Budget) -> tuple[bool, dict[int, str]]:
        """Renew all leases. Return whether the run is to stop, and why models were stopped by another process."""
        run_id, owner, share = self._run.pk, self._context.owner, self._context.share
        now = lease_clock()
        if share.leads:
            stops = self._renew_run()
            self._stages.store_progress()
            self._store_cost(budget)
        else:
            stops = not Run.objects.filter(pk=run_id, status__in=ACTIVE, cancel_requested=False).exists()
        if share.divided and now > self._leased_until:  # others may have taken some of the shards
            raise InfrastructureFault(_STOPPED_TOO_LONG) if share.leads else LeaseLost(_STOPPED_TOO_LONG)
        self._leased_until = now + LEASE.total_seconds()
        if not share.divided:
            return stops, {}
        renew_shards(run_id, owner)
        stopped = RunModel.objects.filter(run_id=run_id).exclude(stopped="")
        return stops, dict(stopped.values_list("pk", "stopped"))

    def _store_cost(self, budget: Budget) -> None:
        """Store the cost so far: stored responses do not have that of errored ones that this execution has replaced."""
        rows = Run.objects.filter(pk=self._run.pk, lease_owner=self._context.owner)
        rows.exclude(cost_usd=budget.total).update(cost_usd=budget.total)

    def _renew_run(self) -> bool:
        return renew_lease(run_id=self._run.pk, owner=self._context.owner)

    async def _keep_lease(
        self, executor: Executor, reader: Reader, models: Mapping[str, Connection], budget: Budget
    ) -> None:
        """Renew the lease, and stop if the run was cancelled or taken over, or this process shuts down.

        Also stops if the lease cannot be renewed: another process may take the run over once it lapses.
        """
        while True:
            if await self._wait_for_shutdown(RENEW_EVERY_S):
                self._status_if_stopped, self._ended = Status.QUEUED, True
                executor.stop(FINISH_WITHIN_S)
                return
            try:
                cancelled, stopped = await reader.run(self._renew, budget)
                for model in models.values():
                    if model.stopped is None and model.run_model_id in stopped:
                        model.stopped = ModelError("stopped", stopped[model.run_model_id], fatal=True)
                makes_way = not cancelled and await self._is_turn_over(reader)
            except Exception as error:
                if not isinstance(error, LeaseLost) and find_fault(error) is None:
                    logger.exception("run %s: cannot renew the lease", self._run.pk, extra={"run_id": self._run.pk})
                self._lease_error, self._ended = error, True
                executor.stop(FINISH_WITHIN_S if find_fault(error) else 0.0)
                return
            if cancelled:
                self._status_if_stopped, self._ended = Status.CANCELLED, True
                executor.stop()
                return
            if makes_way:
                self._status_if_stopped, self._ended = Status.QUEUED, True
                executor.stop(FINISH_TURN_WITHIN_S)
                return

    async def _is_turn_over(self, reader: Reader) -> bool:
        """Return whether the run has had its time slice, and a waiting run or one that needs help goes before it."""
        slice_s = self._options.slice_s
        if slice_s is None or time.monotonic() - self._context.started < slice_s:
            return False
        share = self._context.share
        if share.leads and share.divided and await reader.run(held_by_others, self._run.pk, self._context.owner):
            return False  # they make way, and the run keeps the process that leads it
        if await reader.run(should_make_way, self._run):
            return True
        return not share.leads and await reader.run(should_leave, self._run)

    async def _wait_for_shutdown(self, seconds: float) -> bool:
        """Wait for this time; return early, with True, if the process shuts down."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._options.stopping():
                return True
            await asyncio.sleep(_LOOK_EVERY_S)
        return self._options.stopping()

    def _status_if_stopping(self, executor: Executor) -> tuple[Run.Status, str] | None:
        """Return the status and message of a run that was stopped, None if it was not. Raises errors of the lease."""
        if self._lease_error is not None:
            raise self._lease_error
        if not executor.stopping:
            return None
        return self._status_if_stopped, "" if self._status_if_stopped == Status.QUEUED else STORED_IS_KEPT

    def _status_after_evaluation(self, executor: Executor, budget: Budget, missing: int) -> tuple[Run.Status, str]:
        """Return the status and message before the stages. missing: responses, if the budget is exhausted."""
        if stopped := self._status_if_stopping(executor):
            return stopped
        if budget.exhausted and missing:
            return Status.STOPPED, budget.reason
        return Status.COMPLETED, ""

    def _store_evaluated_at(self) -> None:
        self._run.evaluated_at = timezone.now()
        rows = Run.objects.filter(pk=self._run.pk, lease_owner=self._context.owner)
        rows.update(evaluated_at=self._run.evaluated_at)


def _attempt_seed(seed: int, key: CallKey) -> int:
    return attempt_seed(seed, key.environment, key.case, key.attempt)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@contextmanager
def _stop_on_signals(executor: Executor) -> Iterator[None]:
    """Stop *executor* on Ctrl-C and other signals to end. A second one ends the process as Python does by default."""
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, *termination_signals()]

    def stop(number: signal.Signals) -> None:
        executor.stop()
        loop.remove_signal_handler(number)

    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
