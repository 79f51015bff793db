"""Calls models for a run: chooses the model, uses the cache, counts costs, and keeps budget and time limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hub.common import digests
from hub.protocols.calls import CallKey, ModelError, Reply, Usage, total_cost
from hub.protocols.messages import JSON, Message, Tool
from runs.execution.connections import Connection
from runs.providers.base import ModelRequest
from runs.providers.masking import mask


class CallCache(Protocol):
    """Cache of replies by key. `get` returns None for a miss; `put` may return before the row is written."""

    async def get(self, key: str) -> Reply | None: ...

    async def put(self, key: str, call: CallKey, model: str, reply: Reply) -> None: ...


class CaseTimeExceeded(Exception):
    """Replies that arrived have used up the time of the episode."""


@dataclass(slots=True)
class Budget:
    """Limit and spending of a run, in USD. Calls in flight are completed, so their cost may exceed the limit.

    spent: the known costs. unknown: some calls have an unknown cost. unmetered: label of the model whose reply was the
    first without token counts; a run with a limit stops after it.
    """

    limit: float | None = None
    spent: float = 0.0
    unknown: bool = False
    unmetered: str = ""

    def add(self, label: str, cost: float | None) -> None:
        """Count a call of the model *label*."""
        if cost is None:
            self.unknown = True
            self.unmetered = self.unmetered or label
        else:
            self.spent += cost

    @property
    def total(self) -> float | None:
        """Return the cost of the run in USD, or None if it is unknown."""
        return None if self.unknown else self.spent

    @property
    def exhausted(self) -> bool:
        return self.limit is not None and (self.unmetered != "" or self.spent >= self.limit)

    @property
    def reason(self) -> str:
        """Return the reason why the budget stopped the run."""
        if self.unmetered:
            return (
                f"Stopped: a reply of {self.unmetered} carried no token counts (`usage`), so what it cost is unknown "
                f"and the budget of ${self.limit:,.2f} cannot be kept. Have the endpoint report usage and resume, or "
                "start a run without limits.budget_usd."
            )
        return f"Stopped: ${self.spent:,.4f} of the budget of ${self.limit:,.2f} is spent."


@dataclass(slots=True)
class ResponseTotals:
    """Tokens, costs and time of the calls of one response. `seconds_left`: remaining time of the episode."""

    seconds_left: float
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    role_cost_usd: float | None = 0.0
    latency_ms: float | None = None
    last: Reply | None = None

    def add(self, key: CallKey, reply: Reply) -> None:
        if key.role:
            self.role_cost_usd = total_cost([self.role_cost_usd, reply.cost_usd])
            return
        self.last = reply
        self.usage = self.usage + reply.usage
        self.cost_usd = total_cost([self.cost_usd, reply.cost_usd])
        if reply.latency_ms is not None:
            self.latency_ms = (self.latency_ms or 0.0) + reply.latency_ms
            self.seconds_left -= reply.latency_ms / 1000

    def took(self, milliseconds: float) -> None:
        """Count the time that the environment's own code took."""
        self.seconds_left -= milliseconds / 1000


class ModelClient:
    """Calls the run's models. One per run; `for_response` returns the callable that an episode receives."""

    def __init__(
        self,
        *,
        models: Mapping[str, Connection],
        roles: Mapping[str, Sequence[Connection]],
        cache: CallCache | None,
        budget: Budget,
        seed_of: "AttemptSeed",
    ) -> None:
        """models: by label. roles: by role, in the order of the config. cache: None to call the model every time."""
        self.models = models
        self.roles = roles
        self.budget = budget
        self._cache = cache
        self._seed_of = seed_of

    def for_response(self, totals: ResponseTotals) -> "ResponseModelClient":
        return ResponseModelClient(self, totals)

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
        timeout_s: float | None = None,
    ) -> Reply:
        """Return a reply, from the cache if it has one. Raises ModelError. timeout_s bounds each try further."""
        connection = self._connection(key)
        request = ModelRequest(
            key=key,
            messages=messages,
            tools=tools,
            parameters={**connection.spec.parameters, **(parameters or {})},
            seed=self._seed_of(key),
            timeout_s=timeout_s,
        )
        if self._cache is None or not connection.provider.live:
            return await self._complete(connection, request)
        digest = call_digest(connection.fingerprint, request)
        cached = await self._cache.get(digest)
        if cached is not None:
            return replace(cached, cached=True, latency_ms=None, cost_usd=0.0)
        reply = await self._complete(connection, request)
        await self._cache.put(digest, key, connection.label, reply)
        return reply

    def _connection(self, key: CallKey) -> Connection:
        if not key.role:
            return self.models[key.model]
        connections = self.roles.get(key.role, ())
        if key.seat >= len(connections):
            number = f" (number {key.seat + 1})" if connections else ""
            raise ModelError("configuration", f"No model fills the role {key.role!r}{number}; add one under `roles`.")
        return connections[key.seat]

    async def _complete(self, connection: Connection, request: ModelRequest) -> Reply:
        async with connection.slots:
            if connection.stopped is not None:
                raise connection.stopped
            if self.budget.exhausted:
                raise ModelError("budget", self.budget.reason)
            # Everything that comes from an endpoint enters here, so keys that it echoes are masked here.
            try:
                reply = await connection.provider.complete(request)
            except ModelError as error:
                masked = ModelError(error.kind, mask(str(error)), fatal=error.fatal)
                if not connection.provider.live:
                    raise masked from None  # a recording that is missing concerns its case alone
                raise connection.failed(masked) from None
        reply = replace(reply, message=mask(reply.message), finish_reason=mask(reply.finish_reason))
        connection.replied()
        if not connection.provider.live:
            return reply
        price = connection.spec.price
        cost = price.cost(reply.usage) if price is not None and (reply.metered or price.free) else None
        self.budget.add(connection.label, cost)
        return replace(reply, cost_usd=cost)


class AttemptSeed(Protocol):
    """Returns the seed of the attempt that a call belongs to."""

    def __call__(self, key: CallKey) -> int: ...


@dataclass(frozen=True, slots=True)
class ResponseModelClient:
    """Calls models for one response and counts every call in its totals.

    Raises CaseTimeExceeded when the replies that arrived and the environment's own code have used up the episode's
    time. Waiting for a slot, retries and role models do not count. If the first reply does not arrive in that time,
    the call raises ModelError, since a slow model cannot be told from an endpoint that hangs. Later replies may take
    as long as the model's `timeout_s` allows, so an episode is always ended by a reply.
    """

    model_client: ModelClient
    totals: ResponseTotals

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        totals = self.totals
        own = not key.role
        if own and totals.seconds_left <= 0:
            raise CaseTimeExceeded
        first = own and totals.last is None
        reply = await self.model_client.call(key, messages, tools, parameters, totals.seconds_left if first else None)
        totals.add(key, reply)
        if own and not first and totals.seconds_left < 0:
            raise CaseTimeExceeded
        return reply


def call_digest(fingerprint: str, request: ModelRequest) -> str:
    """Return the cache key: model and parameters, purpose, seed of the attempt, and everything the model is shown."""
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
