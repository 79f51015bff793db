"""Calls models for a run: chooses the model, uses the cache, counts costs, and keeps budget and time limits."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from hub.common import digests
from hub.common.masking import mask
from hub.common.tracing import span
from hub.harnesses.steps.user_turns import simulated_text
from hub.protocols.calls import CallKey, ModelError, Reply, Usage, total_cost
from hub.protocols.messages import JSON, Message, Tool, text_of
from runs.execution.connections import Connection
from runs.limits.budget import Budget
from runs.providers.base import ModelRequest

# Names of one parameter: an endpoint refuses a request that has both.
_EQUAL_PARAMETERS = ({"max_tokens", "max_completion_tokens"}, {"seed", "send_seed"})
_LOOK_EVERY_S = 0.2  # how often a waiting call checks whether this process holds the lease again


class CallCache(Protocol):
    """Cache of replies by key.

    `get` returns None for a miss. A reply is returned with its cost if the RunModel *run_model_id* paid for it for the
    same attempt at a case, and with a cost of zero otherwise. `put` may return before the row is written.
    """

    async def get(self, key: str, call: CallKey, run_model_id: int) -> Reply | None:
        """Return the stored reply, or None."""

    async def put(self, key: str, call: CallKey, model: str, run_model_id: int, reply: Reply) -> None:
        """Store *reply*, which the RunModel *run_model_id* paid for."""


class CallsStopped(Exception):
    """The run makes no more calls for now. What was answered is in the cache, so the next execution continues there."""


class CaseTimeExceeded(Exception):
    """Replies that arrived have used up the time of the episode."""


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
        """Count the tokens, cost and time of a reply."""
        if key.role:
            self.role_cost_usd = total_cost([self.role_cost_usd, reply.cost_usd])
            return
        self.last = reply
        self.usage = self.usage + reply.usage
        self.cost_usd = total_cost([self.cost_usd, reply.cost_usd])
        if reply.latency_ms is not None:
            self.latency_ms = (self.latency_ms or 0.0) + reply.latency_ms
            self.seconds_left -= reply.latency_ms / 1000

    def add_failed(self, key: CallKey, error: ModelError) -> None:
        """Count the tokens and cost that the endpoint reported for a call without a reply, if it did."""
        if error.usage is None:
            return
        if key.role:
            self.role_cost_usd = total_cost([self.role_cost_usd, error.cost_usd])
        else:
            self.usage = self.usage + error.usage
            self.cost_usd = total_cost([self.cost_usd, error.cost_usd])

    def took(self, milliseconds: float) -> None:
        """Subtract the time that the environment's own code took from the time that is left."""
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
        holds_lease: Callable[[], bool] = lambda: True,
    ) -> None:
        """models: by label. roles: by role, in the order of the config. cache: None to call the model every time.

        holds_lease: returns False if the leases of this process may have lapsed. Calls wait until they are renewed.
        """
        self.models = models
        self.roles = roles
        self.budget = budget
        self._cache = cache
        self._seed_of = seed_of
        self._holds_lease = holds_lease
        self._calls_stopped = False
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def stop_calling(self) -> None:
        """Start no more calls of live models: they raise CallsStopped. Calls in flight are completed and cached."""
        self._calls_stopped = True

    async def finish_calls(self, within_s: float) -> None:
        """Wait until the replies of calls in flight are cached, for at most this time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), within_s)

    def for_response(self, totals: ResponseTotals) -> "ResponseModelClient":
        """Return the callable that calls models for one response, and counts its calls in *totals*."""
        return ResponseModelClient(self, totals)

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        """Call a model for a stage. A reply from the cache costs nothing: stages keep the costs of all their calls."""
        reply = await self.call(key, messages, tools, parameters)
        return replace(reply, cost_usd=0.0) if reply.cached else reply

    async def call(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
        timeout_s: float | None = None,
        requested: Mapping[str, JSON] | None = None,
    ) -> Reply:
        """Return a reply, from the cache if it has one. Raises ModelError.

        parameters: have precedence over those of the model in the config, which have it over *requested*. timeout_s
        bounds each try further.
        """
        connection = self._connection(key)
        request = ModelRequest(
            key=key,
            messages=messages,
            tools=tools,
            parameters={**with_config(requested or {}, connection.spec.parameters), **(parameters or {})},
            seed=self._seed_of(key),
            timeout_s=timeout_s,
        )
        if self._cache is None or not connection.provider.live:
            return await self._complete(connection, request)
        digest = call_digest(connection.fingerprint, request)
        cached = await self._cache.get(digest, key, connection.run_model_id)
        if cached is not None:
            # If it has a cost, an earlier process paid for this reply, and ended before it stored this response. The
            # cost counts in the response; `open_budget` has counted it in the budget already.
            return replace(cached, cached=True, latency_ms=None)
        self._in_flight += 1
        self._idle.clear()
        try:
            reply = await self._complete(connection, request)
            if _can_be_cached(key, reply):
                await self._cache.put(digest, key, connection.label, connection.run_model_id, reply)
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()
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
        async with connection.limiter.request(_estimate_tokens(connection, request)) as sent:
            while not self._holds_lease() and not self._calls_stopped:  # noqa: ASYNC110  # it depends on the time
                await asyncio.sleep(_LOOK_EVERY_S)
            if connection.stopped is not None:
                raise connection.stopped
            if not await self.budget.may_spend():
                raise ModelError("budget", self.budget.reason)
            if self._calls_stopped and connection.provider.live:
                raise CallsStopped
            # Everything that comes from an endpoint enters here, so keys that it echoes are masked here.
            try:
                reply = await _traced_reply(connection, request)
            except ModelError as error:
                masked = ModelError(error.kind, mask(str(error)), fatal=error.fatal, usage=error.usage)
                if not connection.provider.live:
                    raise masked from None  # a missing recording is an error of its case only; the model is not stopped
                if masked.usage is not None:
                    sent.tokens = masked.usage.input + masked.usage.output
                    masked.cost_usd = _cost(connection, masked.usage, metered=True)
                    self.budget.add(connection.label, masked.cost_usd)
                raise connection.failed(masked) from None
            sent.tokens = reply.usage.input + reply.usage.output
        connection.replied()
        cost = reply.cost_usd
        if connection.provider.live:
            cost = _cost(connection, reply.usage, metered=reply.metered)
            self.budget.add(connection.label, cost)
        return replace(reply, message=mask(reply.message), finish_reason=mask(reply.finish_reason), cost_usd=cost)


def _can_be_cached(key: CallKey, reply: Reply) -> bool:
    """Return whether *reply* can be used. A simulated user that says nothing is an error, so a retry asks it again."""
    return key.purpose != "user" or simulated_text(reply.message) != ""


def _cost(connection: Connection, usage: Usage, *, metered: bool) -> float | None:
    """Return the cost of a call in USD, None if it is unknown."""
    price = connection.spec.price
    return price.cost(usage) if price is not None and (metered or price.free) else None


async def _traced_reply(connection: Connection, request: ModelRequest) -> Reply:
    name = connection.spec.name
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": name, "llmeval.role": request.key.role}
    with span(f"chat {name}", attributes) as call:
        reply = await connection.provider.complete(request)
        usage = {"gen_ai.usage.input_tokens": reply.usage.input, "gen_ai.usage.output_tokens": reply.usage.output}
        call.set(usage)
    return reply


def _estimate_tokens(connection: Connection, request: ModelRequest) -> float:
    """Return a rough number of tokens, used until replies report theirs; 0 without a limit of tokens."""
    if connection.spec.tokens_per_minute is None:
        return 0.0
    longest = request.parameters.get("max_completion_tokens") or request.parameters.get("max_tokens") or 0
    characters = sum(len(text_of(message)) for message in request.messages)
    return characters / 4 + (longest if isinstance(longest, int | float) else 0)


class AttemptSeed(Protocol):
    """Returns the seed of the attempt that a call belongs to."""

    def __call__(self, key: CallKey) -> int: ...


@dataclass(frozen=True, slots=True)
class ResponseModelClient:
    """Calls models for one response and counts every call in its totals.

    Raises CaseTimeExceeded when the replies that arrived and the environment's own code have used up the episode's
    time. Waiting for a slot, retries and role models do not count. If the first reply does not arrive in that time,
    the call raises ModelError, since a slow model cannot be distinguished from an endpoint that hangs. Later replies
    may take as long as the model's `timeout_s` allows, so an episode is always ended by a reply.
    """

    model_client: ModelClient
    totals: ResponseTotals

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
        requested: Mapping[str, JSON] | None = None,
    ) -> Reply:
        totals = self.totals
        own = not key.role
        if own and totals.seconds_left <= 0:
            raise CaseTimeExceeded
        first = own and totals.last is None
        seconds = totals.seconds_left if first else None
        try:
            reply = await self.model_client.call(key, messages, tools, parameters, seconds, requested)
        except ModelError as error:
            totals.add_failed(key, error)
            raise
        totals.add(key, reply)
        if own and not first and totals.seconds_left < 0:
            raise CaseTimeExceeded
        return reply


def with_config(requested: Mapping[str, JSON], config: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the parameters that an agent program requested, and those of the config in the place of equal ones."""
    replaced = {name for equal in _EQUAL_PARAMETERS if equal & config.keys() for name in equal}
    return {**{name: value for name, value in requested.items() if name not in replaced}, **config}


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
