"""The `Ask` port as runs implement it: which model, its cache, its price, the run's budget, and when to stop asking."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hub.common import digests
from hub.common.masking import mask
from hub.protocols.calls import JSON, AskError, CallKey, Message, Reply, Tool, Usage, total_cost
from runs.providers.base import ModelSpec, Provider, Request


class CallCache(Protocol):
    """Answers kept by key. `get` returns None for a miss; `put` may return before the row is written."""

    async def get(self, key: str) -> Reply | None: ...

    async def put(self, key: str, call: CallKey, model: str, reply: Reply) -> None: ...


# Request ids and the like: a word of ten characters and more with a digit in it.
_IDENTIFIER = re.compile(r"\b(?=[\w-]*\d)[\w-]{10,}")


class TimeUp(Exception):
    """The episode has used up its time with replies that arrived."""


@dataclass(slots=True)
class Budget:
    """What a run may spend and has spent, in USD. Calls in flight are finished: it can be passed by their cost.

    `spent` is what is known. `unknown` says that there are calls whose cost is not known; `unmetered` is the model
    whose reply was the first such in this session, after which a run with a limit stops.
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
        """What the run has cost; None where that is not known."""
        return None if self.unknown else self.spent

    @property
    def exhausted(self) -> bool:
        return self.limit is not None and (self.unmetered != "" or self.spent >= self.limit)

    @property
    def reason(self) -> str:
        """Why nothing more is asked, once the budget is exhausted."""
        if self.unmetered:
            return (
                f"Stopped: a reply of {self.unmetered} carried no token counts (`usage`), so what it cost is unknown "
                f"and the budget of ${self.limit:,.2f} cannot be kept. Have the endpoint report usage and resume, or "
                "start a run without limits.budget_usd."
            )
        return f"Stopped: ${self.spent:,.4f} of the budget of ${self.limit:,.2f} is spent."


@dataclass(slots=True)
class Connection:
    """A model of the run with all that calls to it share. `stopped` is the error that ended its service, if one did.

    It is stopped by an error that every other call would meet too, and after `identical_errors` errors of the same kind
    and text in a row (0: never).
    """

    label: str
    spec: ModelSpec
    provider: Provider
    fingerprint: str
    slots: asyncio.Semaphore
    identical_errors: int = 0
    run_model_id: int = 0
    stopped: AskError | None = None
    _last: tuple[str, str] = ("", "")
    _in_row: int = 0

    def replied(self) -> None:
        """A reply arrived: the row of errors is broken."""
        self._last, self._in_row = ("", ""), 0

    def failed(self, error: AskError) -> AskError:
        """Count *error*; the one to raise, which tells how many there were where they stop the model."""
        same = (error.kind, _IDENTIFIER.sub("#", str(error)))
        self._in_row = self._in_row + 1 if same == self._last else 1
        self._last = same
        if self.stopped is not None:
            return error
        if error.fatal:
            self.stopped = error
        elif self.identical_errors and self._in_row >= self.identical_errors:
            times = f"{self._in_row} times in a row" if self._in_row > 1 else "once"
            self.stopped = AskError(
                error.kind,
                f"It met the same error {times}, as many as limits.identical_errors allows. Resume the run once the "
                f"cause is fixed. {error}",
                fatal=True,
            )
        return self.stopped or error


@dataclass(slots=True)
class Tally:
    """What the calls of one response came to. `seconds_left` is what remains of the episode's own time."""

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
        """Count the time of a step of the environment's own code."""
        self.seconds_left -= milliseconds / 1000


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
        timeout_s: float | None = None,
    ) -> Reply:
        """Ask, from the cache where it knows. Raises AskError. *timeout_s* bounds each try beside the model's own."""
        connection = self._connection(key)
        request = Request(
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
        seats = self.roles.get(key.role, ())
        if key.seat >= len(seats):
            raise AskError("configuration", f"No model fills the role {key.role!r} (seat {key.seat}); see `roles`.")
        return seats[key.seat]

    async def _complete(self, connection: Connection, request: Request) -> Reply:
        async with connection.slots:
            if connection.stopped is not None:
                raise connection.stopped
            if self.budget.exhausted:
                raise AskError("budget", self.budget.reason)
            # Everything that comes from an endpoint enters here, so keys that it echoes are masked here.
            try:
                reply = await connection.provider.complete(request)
            except AskError as error:
                masked = AskError(error.kind, mask(str(error)), fatal=error.fatal)
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


class SeedOf(Protocol):
    """The seed of the attempt that a call belongs to."""

    def __call__(self, key: CallKey) -> int: ...


@dataclass(frozen=True, slots=True)
class ResponseAsk:
    """The port for one response: every call is counted into its tally.

    Raises TimeUp once the replies that arrived, and the environment's own steps, have used up the episode's time.
    Waiting for a slot, retries and the time of role models are not the model's doing, and do not count. A first reply
    that does not arrive in that time raises AskError: nothing tells a slow model from an endpoint that hangs. Later
    replies may take as long as the model's `timeout_s` allows, so that what ends the episode is always a reply.
    """

    asker: Asker
    tally: Tally

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        tally = self.tally
        own = not key.role
        if own and tally.seconds_left <= 0:
            raise TimeUp
        first = own and tally.last is None
        reply = await self.asker.call(key, messages, tools, parameters, tally.seconds_left if first else None)
        tally.add(key, reply)
        if own and not first and tally.seconds_left < 0:
            raise TimeUp
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
