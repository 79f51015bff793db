"""Limits of the requests to one model at one endpoint: in flight, per minute, and tokens per minute."""

import asyncio
import logging
import os
import platform
import random
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from django.conf import settings

from runs.limits.file_shares import FileShares
from runs.limits.headers import pause_of
from runs.limits.shares import HOLDER_LIVES_S, Grant, LocalShares, Report, Shares, SharesUnavailable

logger = logging.getLogger(__name__)

_RENEW_EVERY_S = 0.5  # without contention: how long a new holder waits for its share
_CONTENDED_EVERY_S = 0.25
_WAITING_EVERY_S = 0.05
_REDIS_AGAIN_S = 1.0  # several tries before the slots of this holder lapse in a Redis that others reach
_WAIT_FOR_REDIS_S = 30.0

IN_PROCESS = LocalShares(time.monotonic)
_shared_files: list[str] = []


def shared_back_end() -> Shares:
    """Return the back end of this installation: Redis if it is the broker, otherwise this process.

    Local processes of one command share a file instead (share_limits_in_file).
    """
    url = settings.CELERY_BROKER_URL
    if url.startswith(("redis://", "rediss://")):
        from runs.limits.redis_shares import RedisShares  # slow to import, and needed only by workers

        return RedisShares(url)
    return FileShares(_shared_files[-1]) if _shared_files else IN_PROCESS


def share_limits_in_file(path: str) -> None:
    """Share limits with the processes that use the same file, unless Redis shares them already."""
    _shared_files.append(path)


def stop_sharing_in_file(path: str) -> None:
    """Undo `share_limits_in_file`."""
    _shared_files.remove(path)


@dataclass(slots=True)
class Request:
    """A request that may be sent. Set `tokens` to the tokens that it used.

    reserved: tokens that are counted for it from its start until `tokens` are known.
    """

    estimated: float = 0.0
    reserved: float = 0.0
    tokens: float | None = None


@dataclass(slots=True)
class _Demand:
    """Most requests in flight and waiting at the same time, in this period and the one before."""

    current: int = 0
    previous: int = 0

    def count(self, wanted: int) -> None:
        self.current = max(self.current, wanted)

    def peak(self, wanted: int) -> int:
        """Return the peak, and start the next period."""
        peak = max(self.current, self.previous, wanted)
        self.previous, self.current = self.current, wanted
        return peak


@dataclass(slots=True)
class _SinceReport:
    """Replies, tokens and rejections since the last report."""

    replies: int = 0
    throttled: bool = False
    pause_s: float = 0.0
    tokens: float = 0.0


@dataclass(slots=True)
class EndpointLimiter:
    """Limits requests to the endpoint *key*, together with every other holder of the same key.

    Requests start without a round trip while the last grant suffices. A task renews the grant while requests are in
    flight or wait. If Redis cannot be reached, the last share is kept and applied in this process alone. A holder that
    has no share then waits, because others may use all slots; after _WAIT_FOR_REDIS_S it takes half of them.

    limit: of requests in flight. Create it in any place; use it in one event loop.
    """

    shares: Shares
    key: str
    limit: int
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    _holder: str = field(default_factory=lambda: f"{platform.node()[:40]}:{os.getpid()}:{uuid.uuid4().hex[:12]}")
    _waiting: deque[tuple[asyncio.Future[None], Request]] = field(default_factory=deque)
    _retrying: deque[asyncio.Future[None]] = field(default_factory=deque)
    _in_flight: int = 0
    _slots: int = 0
    _target: int = 0
    _granted_until: float = 0.0
    _permits: int = 0
    _tokens_left: float = 0.0
    _mean_tokens: float = 0.0
    _paused_until: float = 0.0
    _contended: bool = False
    _since_report: _SinceReport = field(default_factory=_SinceReport)
    _demand: _Demand = field(default_factory=_Demand)
    _task: asyncio.Task[None] | None = None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _share: int = 0
    _redis_lost_at: float | None = None
    _without_redis_until: float = 0.0

    @asynccontextmanager
    async def request(self, estimated_tokens: float = 0.0) -> AsyncIterator[Request]:
        """Wait until a request may be sent, and hold its slot until the block ends."""
        request = Request(estimated=estimated_tokens)
        await self._acquire(request)
        try:
            yield request
        finally:
            self._count_tokens((request.tokens or 0.0) - request.reserved)
            if request.tokens is not None:
                self._mean_tokens += (request.tokens - self._mean_tokens) * (0.1 if self._mean_tokens else 1.0)
                self._since_report.replies += 1
            self._release()

    async def wait_for_retry(self) -> None:
        """Wait until a request that holds a slot may be sent again. It counts in the requests per minute once more."""
        if not self._retrying and self._may_send():
            self._use_permit()
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._retrying.append(future)
        if self._lacks_rate():
            self._wake.set()
        await future  # if it is cancelled, _start_waiting leaves it out

    def observe(self, status: int, headers: Mapping[str, str]) -> None:
        """Adapt to a response of the endpoint, retried ones included."""
        throttled = status == 429
        pause_s = pause_of(status, headers)
        self._since_report.throttled |= throttled
        if pause_s:
            self._since_report.pause_s = max(self._since_report.pause_s, pause_s)
            self._paused_until = max(self._paused_until, time.monotonic() + pause_s)
        if throttled:
            self._wake.set()

    async def aclose(self) -> None:
        """Give all slots back."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with suppress(SharesUnavailable):
                await self.shares.renew(self.key, replace(self._report(), held=0, wanted=0))
        await self.shares.aclose()

    async def _acquire(self, request: Request) -> None:
        self._demand.count(self._in_flight + len(self._waiting) + 1)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_renewing())
        if not self._waiting and self._may_start():
            self._start(request)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((future, request))
        if len(self._waiting) == 1 and (self._slots < self.limit or self._lacks_rate()):
            self._wake.set()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._count_tokens(-request.reserved)
                self._release()
            else:
                with suppress(ValueError):
                    self._waiting.remove((future, request))
            raise

    def _may_start(self) -> bool:
        return (
            self._in_flight < self._slots
            and time.monotonic() < self._granted_until
            and (self.tokens_per_minute is None or self._tokens_left > 0)
            and self._may_send()
        )

    def _may_send(self) -> bool:
        return (self.requests_per_minute is None or self._permits > 0) and (
            not self._paused_until or time.monotonic() >= self._paused_until
        )

    def _use_permit(self) -> None:
        if self.requests_per_minute is not None:
            self._permits -= 1

    def _start(self, request: Request) -> None:
        self._in_flight += 1
        self._use_permit()
        request.reserved = self._mean_tokens or request.estimated
        self._count_tokens(request.reserved)

    def _start_waiting(self) -> None:
        while self._retrying and self._may_send():  # first: they hold slots
            retry = self._retrying.popleft()
            if not retry.done():
                self._use_permit()
                retry.set_result(None)
        while self._waiting and self._may_start():
            future, request = self._waiting.popleft()
            if not future.done():
                self._start(request)
                future.set_result(None)

    def _release(self) -> None:
        self._in_flight -= 1
        if self._slots > self._target:
            self._slots = max(self._target, self._in_flight)
            self._wake.set()  # another holder waits for this slot
        self._start_waiting()

    def _count_tokens(self, tokens: float) -> None:
        if self.tokens_per_minute is not None:
            self._since_report.tokens += tokens
            self._tokens_left -= tokens

    # ---- grants -----------------------------------------------------------------------------------------------------

    async def _keep_renewing(self) -> None:
        """Renew the grant until nothing is held and nobody waits. The next request starts another task."""
        while True:
            self._wake.clear()
            report = await self._renew()
            self._start_waiting()
            if not (report.held or report.wanted or self._in_flight or self._waiting):
                return
            if self._slots >= report.held:  # otherwise report at once which slots are free now
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), self._pause_between_reports())

    def _pause_between_reports(self) -> float:
        seconds = _RENEW_EVERY_S
        if self._contended or (self._waiting and self._slots < self.limit):
            seconds = _CONTENDED_EVERY_S
        if self._waiting and (not self._slots or (self._contended and self._slots < self.limit)):
            seconds = _WAITING_EVERY_S
        if (self._waiting or self._retrying) and self._lacks_rate():
            seconds = _WAITING_EVERY_S
        return seconds * random.uniform(0.8, 1.2)  # noqa: S311  # so that holders do not report at the same moment

    def _lacks_rate(self) -> bool:
        return (self.requests_per_minute is not None and self._permits <= 0) or (
            self.tokens_per_minute is not None and self._tokens_left <= 0
        )

    def _report(self) -> Report:
        peak = self._demand.peak(self._in_flight + len(self._waiting))
        since = self._since_report
        # A process that was stopped for a while has lost its slots: other holders may use them.
        held = self._slots if time.monotonic() < self._granted_until else self._in_flight
        return Report(
            holder=self._holder,
            limit=self.limit,
            held=held,
            wanted=self.limit if self._waiting else min(peak, self.limit),
            replies=since.replies,
            throttled=since.throttled,
            pause_s=since.pause_s,
            wants_requests=max(0, len(self._waiting) + len(self._retrying) - self._permits),
            requests_per_minute=self.requests_per_minute,
            tokens=since.tokens,
            tokens_per_minute=self.tokens_per_minute,
        )

    async def _renew(self) -> Report:
        report, self._since_report = self._report(), _SinceReport()
        granted_until = time.monotonic() + HOLDER_LIVES_S
        granted = await self._ask(report)
        self._granted_until = granted_until
        self._target = granted.slots
        self._slots = max(granted.slots, self._in_flight)
        self._permits += granted.requests
        self._tokens_left = granted.tokens - self._since_report.tokens
        self._contended = granted.contended
        pause_s = max(granted.pause_s, self._since_report.pause_s)
        self._paused_until = time.monotonic() + pause_s if pause_s else 0.0
        return report

    async def _ask(self, report: Report) -> Grant:
        if time.monotonic() >= self._without_redis_until:
            try:
                granted = await self.shares.renew(self.key, report)
                self._share, self._redis_lost_at = granted.slots, None
                return granted
            except Exception as error:  # if the shared state is broken in any way, requests must still be sent
                self._note_loss(error)
        share = self._share_without_redis()
        if not share:
            return Grant(slots=0)
        local = replace(
            report,
            limit=share,
            requests_per_minute=_part(self.requests_per_minute, share / self.limit),
            tokens_per_minute=_part(self.tokens_per_minute, share / self.limit),
        )
        return await IN_PROCESS.renew(f"{self.key}:{self._holder}", local)

    def _note_loss(self, error: Exception) -> None:
        now = time.monotonic()
        self._without_redis_until = now + _REDIS_AGAIN_S
        if self._redis_lost_at is not None:
            return
        self._redis_lost_at = now
        if now >= self._granted_until:
            self._share = 0  # other holders may use its slots
        keeps = "keeps its share of the limits" if self._share else f"waits up to {_WAIT_FOR_REDIS_S:.0f} s for a share"
        logger.warning("Redis does not answer (%s); this worker %s.", error, keeps)

    def _share_without_redis(self) -> int:
        if not self._share and self._redis_lost_at is not None:
            waited = time.monotonic() - self._redis_lost_at
            return max(1, self.limit // 2) if waited >= _WAIT_FOR_REDIS_S else 0
        return self._share


def _part(rate: int | None, part: float) -> int | None:
    return None if rate is None else max(1, int(rate * part))
