"""The loop over models and cases: runs episodes concurrently and passes finished responses to the writer."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import product
from typing import Literal

from hub.protocols.calls import ModelError
from runs.execution.checkpoints import Checkpoints
from runs.execution.connections import Connection
from runs.execution.episode_runner import EpisodeRunner
from runs.execution.model_client import CallsStopped, ModelClient
from runs.execution.plan import (
    Block,
    BlockSource,
    EvaluatedEnvironment,
    EvaluatedModel,
    Listener,
    MissingResponse,
    Plan,
)
from runs.execution.storage import FinishedShard, Reader, Writer
from runs.leases import LeaseLost
from runs.missing import missing_attempts
from runs.selectors import case_chunk
from sandbox.client.pool import Pool
from sandbox.errors import SandboxUnreachable

_CHUNK = 200  # cases read at a time
FINISH_WITHIN_S = 5.0  # for calls in flight when a worker shuts down or the infrastructure fails
FINISH_TURN_WITHIN_S = 30.0  # for calls in flight when the run makes way for another one, which can wait


class Executor:
    """Executes a plan until it is complete or stopped. Every finished response is passed to the writer."""

    def __init__(
        self,
        plan: Plan,
        *,
        source: BlockSource,
        model_client: ModelClient,
        pool: Pool | None,
        reader: Reader,
        writer: Writer,
        listener: Listener,
    ) -> None:
        self._plan = plan
        self._source = source
        self._model_client = model_client
        self._pool = pool
        self._reader = reader
        self._writer = writer
        self._checkpoints = Checkpoints(reader, writer)
        self._listener = listener
        self._stopping = asyncio.Event()
        self._finish_within_s = 0.0
        self._fault: SandboxUnreachable | None = None
        self._sandbox_check = asyncio.Lock()
        self._reported_as_stopped: set[int] = set()  # ids of the RunModels that are reported as stopped
        # Twice the requests in flight: while half of the episodes wait for a model, the others are scored or stored.
        self._window = 2 * plan.concurrency

    def stop(self, finish_within_s: float = 0.0) -> None:
        """Start nothing new, and cancel what is in flight. Safe to call from a signal handler of the loop.

        finish_within_s: seconds that calls in flight may still take, so that their replies are stored.
        """
        self._finish_within_s = finish_within_s
        self._model_client.stop_calling()
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        """Whether the execution starts nothing new."""
        return self._stopping.is_set()

    async def execute(self) -> None:
        """Execute the plan. Raises LeaseLost, errors of the database, and SandboxUnreachable if the sandbox fails.

        Errors of models and cases become responses.
        """
        feeders = [asyncio.create_task(self._feed(model)) for model in self._plan.models]
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            pending = {*feeders}
            while pending and not self.stopping:
                done, rest = await asyncio.wait({*pending, stopped}, return_when=asyncio.FIRST_COMPLETED)
                pending = {task for task in pending if task in rest}
                for task in done - {stopped}:
                    _check(task)
            if pending and self._finish_within_s:
                done, _ = await asyncio.wait(pending, timeout=self._finish_within_s)
                for task in done:
                    _check(task)
            if self._fault is not None:
                raise self._fault
        finally:
            for task in [*feeders, stopped]:
                task.cancel()
            await asyncio.gather(*feeders, stopped, return_exceptions=True)

    async def _feed(self, model: EvaluatedModel) -> None:
        """Start an episode for each response that *model* lacks, as many at a time as the window allows."""
        window = asyncio.Semaphore(self._window)
        async with asyncio.TaskGroup() as group:
            async for block in self._source.blocks(model):
                async for missing in self._missing_responses(model, block):
                    await window.acquire()
                    if self._is_stopped(model):
                        return
                    if any(role_model.stopped for role_model in self._role_models(missing.environment)):
                        window.release()
                        continue  # do not pay for a response that cannot be scored
                    block.unfinished += 1
                    task = group.create_task(self._finish(missing))
                    task.add_done_callback(lambda _: window.release())
                await self._leave(block)

    def _is_stopped(self, model: EvaluatedModel) -> bool:
        return self.stopping or model.connection.stopped is not None or self._model_client.budget.exhausted

    async def _missing_responses(self, model: EvaluatedModel, block: Block) -> AsyncIterator[MissingResponse]:
        """Yield the responses of *block* that are missing, in order of cases, reading cases in chunks."""
        attempts = self._plan.attempts
        after = block.first - 1
        while cases := await self._reader.run(case_chunk, block.environment.row, after, _CHUNK):
            after = cases[-1].position
            if block.last is not None:
                cases = [case for case in cases if case.position <= block.last]
            if block.fresh:
                missing = list(product(cases, range(1, attempts + 1)))
            else:
                missing = await self._reader.run(missing_attempts, model.row, cases, attempts)
            for case, attempt in missing:
                yield MissingResponse(block=block, model=model, case=case, attempt=attempt)
            if block.last is not None and after >= block.last:
                return

    async def _finish(self, missing: MissingResponse) -> None:
        block = missing.block
        if not await self._evaluate(missing):
            block.incomplete = True
        await self._leave(block)

    async def _leave(self, block: Block) -> None:
        """Count an episode of *block* as finished. A shard is done when all of its episodes are."""
        block.unfinished -= 1
        if not block.unfinished and block.shard_id is not None and not block.incomplete:
            await self._writer.put(FinishedShard(block.shard_id))

    async def _evaluate(self, missing: MissingResponse) -> bool:
        """Run one episode and store its response. Return False if the run or its model is stopped first."""
        episode_runner = EpisodeRunner(missing, self._plan, self._model_client, self._pool, self._checkpoints)
        try:
            finished = await episode_runner.run()
        except CallsStopped:
            return False
        except ModelError as error:
            own = missing.model.connection
            if error.kind == "budget":
                return False
            if own.stopped is not None and (
                own.run_model_id in self._reported_as_stopped or not own.is_stopped_by(error)
            ):
                return False  # one response has the reason; the other cases of the model stay missing for a resume
            finished = episode_runner.errored(error.kind, str(error))
        if finished.response.error_kind == "sandbox" and not await self._is_sandbox_working():
            return False
        await self._report_stopped(missing)
        self._listener.response_finished(finished.response)
        await self._writer.put(replace(finished, shard_id=missing.block.shard_id, replaces=not missing.block.fresh))
        return True

    async def _is_sandbox_working(self) -> bool:
        """Return whether the sandbox works, so that a failure concerns one response; stop the run if it does not."""
        if self._pool is None:
            return True
        async with self._sandbox_check:
            if self._fault is None:
                try:
                    await asyncio.to_thread(self._pool.check)
                except SandboxUnreachable as error:
                    self._fault = error
                    self.stop(FINISH_WITHIN_S)
        return self._fault is None

    async def _report_stopped(self, missing: MissingResponse) -> None:
        """Store and show, once, why the model or a role model of its environment was stopped."""
        for connection in (missing.model.connection, *self._role_models(missing.environment)):
            if connection.stopped is None or connection.run_model_id in self._reported_as_stopped:
                continue
            self._reported_as_stopped.add(connection.run_model_id)
            await self._writer.put_stopped(connection.run_model_id, str(connection.stopped))
            self._listener.model_stopped(connection.label, str(connection.stopped))

    def _role_models(self, environment: EvaluatedEnvironment) -> list[Connection]:
        """Return the models that fill the roles of *environment*."""
        roles = self._model_client.roles
        return [connection for role in environment.compiled.roles for connection in roles.get(role, ())]


def _check(task: asyncio.Task[Literal[True] | None]) -> None:
    """Raise the error of *task*. If its episodes noticed that a lease is lost, that alone is raised."""
    try:
        task.result()
    except BaseExceptionGroup as errors:
        raise _lost_lease(errors) or errors from None


def _lost_lease(error: BaseException) -> LeaseLost | None:
    if isinstance(error, BaseExceptionGroup):
        return next((lost for inner in error.exceptions if (lost := _lost_lease(inner))), None)
    return error if isinstance(error, LeaseLost) else None
