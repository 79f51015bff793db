"""The two database threads of a run: one reads cases and cached calls, one writes results in batches.

No transaction is open during a call of a model or the sandbox, and the event loop never waits for a lock.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, TypeVarTuple, Unpack

import psycopg
from django.db import InterfaceError, OperationalError, connection, connections, transaction

from hub.common.storable import storable
from hub.protocols.calls import CallKey, Reply, Usage
from runs.leases import LeaseLost
from runs.models import ModelCall, Response, Run, RunModel, Score

logger = logging.getLogger(__name__)

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
_BATCH = 200  # rows; larger batches gain nothing on SQLite or PostgreSQL
_LINGER_S = 0.1  # how long the first row of a batch waits for others; what a kill -9 can lose
_QUEUE_LIMIT = 1000  # rows; episodes wait when the queue is full
_RECONNECT_FOR_S = 45.0  # a restart of the server takes less; the lease on the run lapses after 60 s
_RECONNECT_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class FinishedResponse:
    """Response ready to be stored, with its scores. Their `response` is set when they are written."""

    response: Response
    scores: list[Score] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _StoppedModel:
    run_model_id: int
    reason: str


def _close_connections() -> None:
    connections.close_all()


def retry_if_disconnected(function: Callable[[Unpack[Arguments]], T], *args: *Arguments) -> T:
    """Return `function(*args)`; if the connection to the database is lost, connect again and repeat.

    *function* must be safe to repeat. Its last error is raised if there is no connection within _RECONNECT_FOR_S.
    """
    deadline = time.monotonic() + _RECONNECT_FOR_S
    while True:
        try:
            return function(*args)
        except (OperationalError, InterfaceError) as error:
            if not _is_disconnect(error) or time.monotonic() > deadline:
                raise
            logger.warning("The connection to the database was lost (%s); connecting again.", error)
            connection.close()
            time.sleep(_RECONNECT_EVERY_S)


def _is_disconnect(error: OperationalError | InterfaceError) -> bool:
    """Return whether the connection was lost, in contrast to errors such as a full disk or a locked SQLite database."""
    cause = error.__cause__
    if not isinstance(cause, psycopg.Error):
        return False
    # Class 08 and 57P01 to 57P05 of PostgreSQL's error codes. The client's own errors have no code.
    return cause.sqlstate is None or cause.sqlstate.startswith(("08", "57P0"))


class _DatabaseThread:
    """Thread with a database connection of its own, closed with it. A connection that is lost is opened again."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, function: Callable[[Unpack[Arguments]], T], *args: *Arguments) -> T:
        call = partial(retry_if_disconnected, function, *args)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def close(self) -> None:
        await self.run(_close_connections)
        self._executor.shutdown()


class Reader(_DatabaseThread):
    """Thread that reads. Lookups in the cache are collected, so that many calls share one query."""

    def __init__(self) -> None:
        super().__init__("runs-reader")
        self._wanted: dict[str, asyncio.Future[Reply | None]] = {}
        self._lookup: asyncio.Task[None] | None = None

    async def cached(self, key: str) -> Reply | None:
        future = self._wanted.get(key)
        if future is None:
            future = self._wanted[key] = asyncio.get_running_loop().create_future()
        if self._lookup is None:
            self._lookup = asyncio.create_task(self._answer())
        return await asyncio.shield(future)

    async def _answer(self) -> None:
        while self._wanted:
            await asyncio.sleep(0)  # let everything that is ready in this turn of the loop join the query
            wanted, self._wanted = self._wanted, {}
            try:
                found = await self.run(_find_calls, list(wanted))
            except Exception as error:
                for future in wanted.values():
                    if not future.done():
                        future.set_exception(error)
                continue
            for key, future in wanted.items():
                if not future.done():
                    future.set_result(found.get(key))
        self._lookup = None


def _find_calls(keys: list[str]) -> dict[str, Reply]:
    found = {}
    for start in range(0, len(keys), 500):
        for row in ModelCall.objects.filter(pk__in=keys[start : start + 500]):
            found[row.key] = Reply(
                message=row.message,
                finish_reason=row.finish_reason,
                usage=Usage(**row.usage),
                latency_ms=row.latency_ms,
                cost_usd=row.cost_usd,
                cached=True,
            )
    return found


class Writer(_DatabaseThread):
    """Thread that writes. Rows come from the event loop and are stored in batches, one transaction each."""

    def __init__(self, run_id: int, owner: str, *, replaces: bool) -> None:
        """owner: holder of the run's lease; if it has lost it, `put` and `flush` raise LeaseLost and nothing is stored.

        replaces: responses that exist already (errored ones, on resume) are replaced.
        """
        super().__init__("runs-writer")
        self._run_id = run_id
        self._owner = owner
        self._queue: asyncio.Queue[FinishedResponse | ModelCall | _StoppedModel] = asyncio.Queue(_QUEUE_LIMIT)
        self._replaces = replaces
        self._task = asyncio.create_task(self._write())
        self._error: BaseException | None = None

    async def put(self, item: FinishedResponse | ModelCall | _StoppedModel) -> None:
        """Add *item*. Raises the error of an earlier write: a run stops if its results cannot be stored."""
        if self._error is not None:
            raise self._error
        await self._queue.put(item)

    async def put_stopped(self, run_model_id: int, reason: str) -> None:
        await self.put(_StoppedModel(run_model_id, reason))

    async def flush(self) -> None:
        """Wait until everything added so far is stored. Raises the error of a write."""
        await self._queue.join()
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        await self._queue.join()
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await super().close()

    async def _write(self) -> None:
        while True:
            batch = [await self._queue.get()]
            if self._queue.qsize() < _BATCH:
                await asyncio.sleep(_LINGER_S)
            while len(batch) < _BATCH and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            try:
                if self._error is None:
                    await self.run(self._store, batch)
            except Exception as error:
                self._error = error
            finally:
                for _ in batch:
                    self._queue.task_done()

    def _store(self, batch: Iterable[FinishedResponse | ModelCall | _StoppedModel]) -> None:
        replaces, self._replaces = self._replaces, True  # a repeated batch replaces what a lost connection had stored
        with transaction.atomic():
            # The lock keeps other processes from taking the lease before these rows are stored.
            held = Run.objects.select_for_update(of=("self",)).filter(pk=self._run_id, lease_owner=self._owner)
            if not held.values_list("pk", flat=True):
                raise LeaseLost(f"run {self._run_id} was taken over by another process.")
            _store(batch, replaces)
        self._replaces = replaces


def _store(batch: Iterable[FinishedResponse | ModelCall | _StoppedModel], replaces: bool) -> None:
    finished = [item for item in batch if isinstance(item, FinishedResponse)]
    calls = [item for item in batch if isinstance(item, ModelCall)]
    if calls:
        ModelCall.objects.bulk_create(calls, ignore_conflicts=True)
    if finished:
        if replaces:
            _delete_earlier([item.response for item in finished])
        responses = Response.objects.bulk_create([item.response for item in finished])
        scores = []
        for item, response in zip(finished, responses, strict=True):
            for score in item.scores:
                score.response_id = response.pk
                scores.append(score)
        Score.objects.bulk_create(scores)
    for stopped in batch:
        if isinstance(stopped, _StoppedModel):
            RunModel.objects.filter(pk=stopped.run_model_id).update(stopped=stopped.reason)


def _delete_earlier(responses: list[Response]) -> None:
    wanted = {(r.run_model_id, r.case_id, r.attempt) for r in responses}
    rows = Response.objects.filter(
        run_model_id__in={key[0] for key in wanted}, case_id__in={key[1] for key in wanted}
    ).values_list("pk", "run_model_id", "case_id", "attempt")
    Response.objects.filter(pk__in=[row[0] for row in rows if row[1:] in wanted]).delete()


class DatabaseCache:
    """Cache of model calls, stored through the run's reader and writer."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    async def get(self, key: str) -> Reply | None:
        return await self._reader.cached(key)

    async def put(self, key: str, call: CallKey, model: str, reply: Reply) -> None:
        usage = reply.usage
        await self._writer.put(
            ModelCall(
                key=key,
                purpose=call.purpose,
                model=model,
                message=storable(reply.message),
                finish_reason=reply.finish_reason,
                usage={
                    "input": usage.input,
                    "output": usage.output,
                    "cached_input": usage.cached_input,
                    "reasoning": usage.reasoning,
                },
                latency_ms=reply.latency_ms,
                cost_usd=reply.cost_usd,
            )
        )
