"""The `Ask` port as runs implement it: which model, its cache, its price, the run's budget, and when to stop asking."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hub.common import digests
from hub.environments.protocols import JSON, AskError, CallKey, Message, Reply, Tool, Usage
from runs.providers.base import ModelSpec, Provider, Request


class CallCache(Protocol):
    """Answers kept by key. `get` returns None for a miss; `put` may return before the row is written."""

    async def get(self, key: str) -> Reply | None: ...

    async def put(self, key: str, call: CallKey, model: str, reply: Reply) -> None: ...


class TimeUp(Exception):
    """The episode's time was over while its model was answering."""


@dataclass(slots=True)
class Budget:
    """What a run may spend and has spent, in USD. Calls in flight are finished: it can be passed by their cost."""

    limit: float | None = None
    spent: float = 0.0

    @property
    def exhausted(self) -> bool:
        return self.limit is not None and self.spent >= self.limit


@dataclass(slots=True)
class Connection:
    """A model of the run with all that calls to it share. `stopped` is the error that ended its service, if one did."""

    label: str
    spec: ModelSpec
    provider: Provider
    fingerprint: str
    slots: asyncio.Semaphore
    stopped: AskError | None = None


@dataclass(slots=True)
class Tally:
    """What the calls of one response came to. `seconds_left` is the episode's remaining time with its models."""

    seconds_left: float
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    role_cost_usd: float = 0.0
    latency_ms: float | None = None
    last: Reply | None = None

    def add(self, key: CallKey, reply: Reply) -> None:
        if key.role:
            self.role_cost_usd += reply.cost_usd
            return
        self.last = reply
        self.usage = self.usage + reply.usage
        self.cost_usd += reply.cost_usd
        if reply.latency_ms is not None:
            self.latency_ms = (self.latency_ms or 0.0) + reply.latency_ms


class Asker:
    """Asks the run's models. One for a run; `for_response` gives the port that an episode is handed."""

    def __init__(
        self,
        *,
        models: Mapping[str, Connection],
        roles: Mapping[str, Sequence[Connection]],
        cache: CallCache | None,
        budget: Budget,
        seed_of: "SeedOf",
    ) -> None:
        """*models* by label; *roles* by role, in seat order; *cache* None asks always anew."""
        self.models = models
        self.roles = roles
        self.budget = budget
        self._cache = cache
        self._seed_of = seed_of

    def for_response(self, tally: Tally) -> "ResponseAsk":
        return ResponseAsk(self, tally)

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        return await self.call(key, messages, tools, parameters)

    async def call(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
        tally: Tally | None = None,
    ) -> Reply:
        """Ask, from the cache where it knows. Raises AskError, and TimeUp where *tally* has no time left."""
        connection = self._connection(key)
        request = Request(
            key=key,
            messages=messages,
            tools=tools,
            parameters={**connection.spec.parameters, **(parameters or {})},
            seed=self._seed_of(key),
        )
        if self._cache is None or not connection.provider.live:
            return await self._complete(connection, request, tally)
        digest = call_digest(connection.fingerprint, request)
        cached = await self._cache.get(digest)
        if cached is not None:
            return replace(cached, cached=True, latency_ms=None, cost_usd=0.0)
        reply = await self._complete(connection, request, tally)
        await self._cache.put(digest, key, connection.label, reply)
        return reply

    def _connection(self, key: CallKey) -> Connection:
        if not key.role:
            return self.models[key.model]
        seats = self.roles.get(key.role, ())
        if key.seat >= len(seats):
            raise AskError("configuration", f"No model fills the role {key.role!r} (seat {key.seat}); see `roles`.")
        return seats[key.seat]

    async def _complete(self, connection: Connection, request: Request, tally: Tally | None) -> Reply:
        async with connection.slots:
            if connection.stopped is not None:
                raise connection.stopped
            if self.budget.exhausted:
                raise AskError("budget", f"The budget of ${self.budget.limit:,.2f} is spent.")
            try:
                reply = await _within(tally, connection.provider.complete(request))
            except AskError as error:
                if error.fatal and connection.stopped is None:
                    connection.stopped = error
                raise
        price = connection.spec.price
        if price is None or not connection.provider.live:
            return reply
        cost = price.cost(reply.usage)
        self.budget.spent += cost
        return replace(reply, cost_usd=cost)


async def _within(tally: Tally | None, call: Awaitable[Reply]) -> Reply:
    """Await *call*, and take its time from the tally's. Waiting for a free slot has not counted."""
    if tally is None:
        return await call
    loop = asyncio.get_running_loop()
    started = loop.time()
    try:
        async with asyncio.timeout(max(tally.seconds_left, 0)):
            return await call
    except TimeoutError:
        raise TimeUp from None
    finally:
        tally.seconds_left -= loop.time() - started


class SeedOf(Protocol):
    """The seed of the attempt that a call belongs to."""

    def __call__(self, key: CallKey) -> int: ...


@dataclass(frozen=True, slots=True)
class ResponseAsk:
    """The port for one response: every call is counted into its tally."""

    asker: Asker
    tally: Tally

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        reply = await self.asker.call(key, messages, tools, parameters, self.tally)
        self.tally.add(key, reply)
        return reply


def call_digest(fingerprint: str, request: Request) -> str:
    """The cache's key: model with parameters, purpose, attempt (through its seed) and everything the model is shown."""
    key = request.key
    return digests.digest(
        [
            fingerprint,
            key.purpose,
            key.rule,
            key.seat,
            key.first,
            key.second,
            request.seed,
            list(request.messages),
            list(request.tools),
            dict(request.parameters),
        ]
    )
