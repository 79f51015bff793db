"""The two database threads of a run: one reads cases and cached calls, one writes results in batches.

No transaction is open during a call of a model or the sandbox, and the event loop never waits for a lock.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TypeVar

from django.db import transaction
from django.db.models import Q, QuerySet

from hub.common.digests import digest
from hub.common.fields import ContentUnavailable, ContentUnreachable, unused_files_deleted
from hub.common.storable import storable
from hub.protocols.calls import CallKey, Reply, Usage
from runs.execution.database_threads import DatabaseThread
from runs.leases import LeaseLost
from runs.models import EpisodeCheckpoint, ModelCall, Response, Run, RunModel, Score, Shard
from sandbox.workspaces.snapshots import remove_snapshots

logger = logging.getLogger(__name__)

_Attempt = TypeVar("_Attempt", Response, EpisodeCheckpoint)
_BATCH = 200  # rows; larger batches gain nothing on SQLite or PostgreSQL
_LOOKUP = 500  # keys of cached calls in a query
_LINGER_S = 0.1  # how long the first row of a batch waits for others; what a kill -9 can lose
_QUEUE_LIMIT = 1000  # rows; episodes wait when the queue is full
_STORE_FOR_S = 600.0  # results wait this long for the database; the lease protects them from being stored twice


@dataclass(frozen=True, slots=True)
class FinishedResponse:
    """Response ready to be stored, with its scores. Their `response` is set when they are written.

    shard_id: of the shard that it belongs to, if the run is divided. replaces: an errored response may be stored.
    snapshots: the folder of its episode, which is removed with the checkpoint; "" if the episode has neither.
    """

    response: Response
    scores: list[Score] = field(default_factory=list)
    shard_id: int | None = None
    replaces: bool = False
    snapshots: str = ""


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """State of an episode after a turn, which replaces the one before."""

    row: EpisodeCheckpoint
    shard_id: int | None = None


@dataclass(frozen=True, slots=True)
class FinishedShard:
    """Shard whose responses were all put before."""

    shard_id: int


@dataclass(frozen=True, slots=True)
class _StoppedModel:
    run_model_id: int
    reason: str


_Item = FinishedResponse | StoredTurn | FinishedShard | ModelCall | _StoppedModel


@dataclass(frozen=True, slots=True)
class StoredCall:
    """Reply in the cache. paid_by: primary key of the RunModel that paid for it, if it still exists.

    paid_for: digest of the attempt at a case that it was paid for; "" if it was not stored.
    """

    reply: Reply
    paid_by: int | None
    paid_for: str


class Reader(DatabaseThread):
    """Thread that reads. Lookups in the cache are collected, so that many calls share one query."""

    def __init__(self) -> None:
        super().__init__("runs-reader")
        self._wanted: dict[str, asyncio.Future[StoredCall | None]] = {}
        self._lookup: asyncio.Task[None] | None = None

    async def cached(self, key: str) -> StoredCall | None:
        """Return the cached call with this key, or None."""
        future = self._wanted.get(key)
        if future is None:
            future = self._wanted[key] = asyncio.get_running_loop().create_future()
        if self._lookup is None:
            self._lookup = asyncio.create_task(self._answer())
        return await asyncio.shield(future)

    async def _answer(self) -> None:
        while self._wanted:
            await asyncio.sleep(0)  # all calls that are ready in this turn of the event loop share one query
            wanted, self._wanted = self._wanted, {}
            found: Mapping[str, StoredCall | Exception]
            try:
                found = await self.run(_find_calls, list(wanted))
            except Exception as error:
                found = dict.fromkeys(wanted, error)
            for key, future in wanted.items():
                if not future.done():
                    _answer_lookup(future, found.get(key))
        self._lookup = None


def _answer_lookup(future: asyncio.Future[StoredCall | None], found: StoredCall | Exception | None) -> None:
    if isinstance(found, Exception):
        future.set_exception(found)
        future.exception()  # asyncio would log the error if all callers were cancelled
    else:
        future.set_result(found)


def _find_calls(keys: Sequence[str]) -> dict[str, StoredCall | Exception]:
    """Return the stored calls by key, in the place of one whose file is missing or damaged the error."""
    found: dict[str, StoredCall | Exception] = {}
    for start in range(0, len(keys), _LOOKUP):
        part = keys[start : start + _LOOKUP]
        try:
            found.update((row.key, _stored_call(row)) for row in ModelCall.objects.filter(pk__in=part))
        except ContentUnreachable:
            raise  # of the storage, so it concerns all calls
        except ContentUnavailable as error:
            if len(part) == 1:
                found[part[0]] = error
            else:
                for key in part:
                    found.update(_find_calls([key]))
    return found


def _stored_call(row: ModelCall) -> StoredCall:
    reply = Reply(
        message=row.message,
        finish_reason=row.finish_reason,
        usage=Usage(**row.usage),
        served_model=row.served_model,
        request_id=row.request_id,
        latency_ms=row.latency_ms,
        cost_usd=row.cost_usd,
        cached=True,
    )
    return StoredCall(reply, row.paid_by_id, row.paid_for)


class Writer(DatabaseThread):
    """Thread that writes. Rows come from the event loop and are stored in batches, one transaction each."""

    def __init__(self, run_id: int, owner: str, *, divided: bool) -> None:
        """owner: holder of the leases; if it has lost one, `put` and `flush` raise LeaseLost and nothing is stored.

        divided: the leases are those of the shards, otherwise that of the run.
        """
        super().__init__("runs-writer", _STORE_FOR_S)
        self._run_id = run_id
        self._owner = owner
        self._queue: asyncio.Queue[_Item] = asyncio.Queue(_QUEUE_LIMIT)
        self._divided = divided
        self._repeats = False
        self._flushing = asyncio.Event()
        self._task = asyncio.create_task(self._write())
        self._error: BaseException | None = None

    async def put(self, item: _Item) -> None:
        """Add *item*. Raises the error of an earlier write: a run stops if its results cannot be stored."""
        if self._error is not None:
            raise self._error
        await self._queue.put(item)

    async def put_stopped(self, run_model_id: int, reason: str) -> None:
        """Store why a model of the run is not called any more."""
        await self.put(_StoppedModel(run_model_id, reason))

    async def flush(self) -> None:
        """Wait until everything added so far is stored. Raises the error of a write."""
        self._flushing.set()
        await self._queue.join()
        self._flushing.clear()
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        """Store everything added so far, then end the thread."""
        self._flushing.set()
        await self._queue.join()
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await super().close()

    async def _write(self) -> None:
        """Store the added items in batches until the task is cancelled."""
        while True:
            batch = [await self._queue.get()]
            if self._queue.qsize() < _BATCH:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._flushing.wait(), _LINGER_S)
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

    def _store(self, batch: Sequence[_Item]) -> None:
        # A repeated batch replaces what a lost connection had stored.
        replaces = self._repeats or any(isinstance(item, FinishedResponse) and item.replaces for item in batch)
        self._repeats = True
        with transaction.atomic():
            if not self._hold_leases(batch):
                raise LeaseLost(f"run {self._run_id} was taken over by another process.")
            _store(batch, replaces)
        self._repeats = False
        for item in batch:
            if isinstance(item, FinishedResponse) and item.snapshots:
                _remove_snapshots(item.snapshots)

    def _hold_leases(self, batch: Sequence[_Item]) -> bool:
        """Lock the leases that *batch* needs, so that nobody takes them before it is stored; False if one is lost."""
        if not self._divided:
            run = Run.objects.select_for_update(of=("self",)).filter(pk=self._run_id, lease_owner=self._owner)
            return bool(run.values_list("pk", flat=True))
        wanted = {
            item.shard_id
            for item in batch
            if isinstance(item, FinishedResponse | StoredTurn | FinishedShard) and item.shard_id is not None
        }
        shards = Shard.objects.select_for_update(of=("self",)).filter(pk__in=wanted, lease_owner=self._owner)
        return len(shards.order_by("pk").values_list("pk", flat=True)) == len(wanted)


def _remove_snapshots(folder: str) -> None:
    try:
        remove_snapshots(folder)
    except Exception as error:  # of the storage; a periodic task tries again
        logger.warning("the snapshots in %s cannot be removed: %s", folder, error)


def _store_turns(rows: Sequence[EpisodeCheckpoint]) -> None:
    """Store the latest of the *rows* of each episode."""
    latest = {(row.run_model_id, row.case_id, row.attempt): row for row in rows}
    with unused_files_deleted(_rows_of(EpisodeCheckpoint, rows)):
        EpisodeCheckpoint.objects.bulk_create(
            latest.values(),
            update_conflicts=True,
            unique_fields=["run_model", "case", "attempt"],
            update_fields=["state", "totals", "updated_at"],
        )


def _store(batch: Sequence[_Item], replaces: bool) -> None:
    if turns := [item.row for item in batch if isinstance(item, StoredTurn)]:
        _store_turns(turns)
    finished = [item for item in batch if isinstance(item, FinishedResponse)]
    calls = [item for item in batch if isinstance(item, ModelCall)]
    if calls:
        # In one order, so that two runs of the same calls cannot wait for each other.
        ModelCall.objects.bulk_create(sorted(calls, key=attrgetter("key")), ignore_conflicts=True)
    if finished:
        _store_responses(finished, replaces)
    if shards := [item.shard_id for item in batch if isinstance(item, FinishedShard)]:
        Shard.objects.filter(pk__in=shards).update(done=True)
    for stopped in batch:
        if isinstance(stopped, _StoppedModel):
            RunModel.objects.filter(pk=stopped.run_model_id).update(stopped=stopped.reason)


def _store_responses(finished: Sequence[FinishedResponse], replaces: bool) -> None:
    responses = [item.response for item in finished]
    with ExitStack() as replaced:
        if replaces:
            earlier = _rows_of(Response, responses)
            scored = list(earlier.values_list("pk", flat=True))
            replaced.enter_context(unused_files_deleted(earlier, Score.objects.filter(response__in=scored)))
            earlier.only("pk").delete()
        stored = Response.objects.bulk_create(responses)
    scores = []
    for item, response in zip(finished, stored, strict=True):
        for score in item.scores:
            score.response_id = response.pk
            scores.append(score)
    Score.objects.bulk_create(scores)
    if continued := [item.response for item in finished if item.snapshots]:
        checkpoints = _rows_of(EpisodeCheckpoint, continued)
        with unused_files_deleted(checkpoints):
            checkpoints.only("pk").delete()


def _rows_of(model: type[_Attempt], wanted: Sequence[Response | EpisodeCheckpoint]) -> QuerySet[_Attempt]:
    """Return the stored rows of *model* for the same attempts as *wanted*."""
    found = Q(pk__in=[])
    for run_model, case, attempt in {(row.run_model_id, row.case_id, row.attempt) for row in wanted}:
        found |= Q(run_model=run_model, case=case, attempt=attempt)
    return model._default_manager.filter(found)


class DatabaseCache:
    """Cache of model calls, stored through the run's reader and writer."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    async def get(self, key: str, call: CallKey, run_model_id: int) -> Reply | None:
        stored = await self._reader.cached(key)
        if stored is None:
            return None
        paid = stored.paid_by == run_model_id and stored.paid_for in ("", _attempt_digest(call))
        return stored.reply if paid else replace(stored.reply, cost_usd=0.0)

    async def put(self, key: str, call: CallKey, model: str, run_model_id: int, reply: Reply) -> None:
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
                served_model=reply.served_model,
                request_id=reply.request_id,
                latency_ms=reply.latency_ms,
                cost_usd=reply.cost_usd,
                paid_by_id=run_model_id,
                paid_for=_attempt_digest(call),
            )
        )


def _attempt_digest(call: CallKey) -> str:
    """Return a digest of the attempt at a case that *call* is for: the same for all calls of one response."""
    return digest([call.environment, call.case, call.attempt, call.model])[:16]
