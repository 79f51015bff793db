"""The loop over models and cases: runs episodes concurrently and passes finished responses to the writer."""

import asyncio
from collections.abc import AsyncIterator
from itertools import product

from hub.protocols.calls import ModelError
from runs.execution.connections import Connection
from runs.execution.episode_runner import EpisodeRunner
from runs.execution.model_client import ModelClient
from runs.execution.plan import EvaluatedEnvironment, EvaluatedModel, Listener, MissingResponse, Plan
from runs.execution.storage import Reader, Writer
from runs.missing import missing_attempts
from runs.selectors import case_chunk
from sandbox.client.pool import Pool

_CHUNK = 200  # cases read at a time


class Executor:
    """Executes a plan until it is complete or stopped. Every finished response is passed to the writer."""

    def __init__(
        self,
        plan: Plan,
        *,
        model_client: ModelClient,
        pool: Pool | None,
        reader: Reader,
        writer: Writer,
        listener: Listener,
    ) -> None:
        self._plan = plan
        self._model_client = model_client
        self._pool = pool
        self._reader = reader
        self._writer = writer
        self._listener = listener
        self._stopping = asyncio.Event()
        self._reported_as_stopped: set[int] = set()  # RunModel ids of the models that are reported as stopped
        # Twice the requests in flight: while half of the episodes wait for a model, the others are scored or stored.
        self._window = 2 * plan.concurrency

    def stop(self) -> None:
        """Start nothing new and cancel what is in flight. Safe to call from a signal handler of the loop."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    async def execute(self) -> None:
        """Execute the plan. Raises errors of the writer; those of models, cases and the sandbox become responses."""
        feeders = [asyncio.create_task(self._feed(model)) for model in self._plan.models]
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            pending = {*feeders}
            while pending and not self.stopping:
                done, rest = await asyncio.wait({*pending, stopped}, return_when=asyncio.FIRST_COMPLETED)
                pending = {task for task in pending if task in rest}
                for task in done - {stopped}:
                    task.result()
        finally:
            for task in [*feeders, stopped]:
                task.cancel()
            await asyncio.gather(*feeders, stopped, return_exceptions=True)

    async def _feed(self, model: EvaluatedModel) -> None:
        """Start an episode for each response that *model* lacks, as many at a time as the window allows."""
        window = asyncio.Semaphore(self._window)
        async with asyncio.TaskGroup() as group:
            async for missing in self._missing_responses(model):
                await window.acquire()
                if model.connection.stopped is not None or self._model_client.budget.exhausted:
                    break
                if any(role_model.stopped for role_model in self._role_models(missing.environment)):
                    window.release()
                    continue  # do not pay for a response that cannot be scored
                task = group.create_task(self._evaluate(missing))
                task.add_done_callback(lambda _: window.release())

    async def _missing_responses(self, model: EvaluatedModel) -> AsyncIterator[MissingResponse]:
        """Yield the responses that *model* still lacks, in order of cases, reading cases in chunks."""
        attempts = self._plan.attempts
        for environment in self._plan.environments:
            after = -1
            while cases := await self._reader.run(case_chunk, environment.row, after, _CHUNK):
                after = cases[-1].position
                if self._plan.resumed:
                    missing = await self._reader.run(missing_attempts, model.row, cases, attempts)
                else:
                    missing = list(product(cases, range(1, attempts + 1)))
                for case, attempt in missing:
                    yield MissingResponse(environment=environment, model=model, case=case, attempt=attempt)

    async def _evaluate(self, missing: MissingResponse) -> None:
        """Run one episode and store its response, unless the run or its model is stopped first."""
        episode_runner = EpisodeRunner(missing, self._plan, self._model_client, self._pool)
        try:
            finished = await episode_runner.run()
        except ModelError as error:
            own = missing.model.connection
            if error.kind == "budget":
                return
            if own.stopped is not None and (error is not own.stopped or own.run_model_id in self._reported_as_stopped):
                return  # one response has the reason; the other cases of the model stay missing for a resume
            finished = episode_runner.errored(error.kind, str(error))
        await self._report_stopped(missing)
        self._listener.response_finished(finished.response)
        await self._writer.put(finished)

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
