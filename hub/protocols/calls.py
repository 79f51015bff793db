"""Calls to models: what a call is for, its reply, its errors, and the protocol that the app `runs` implements."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from hub.protocols.messages import JSON, Message, Tool

Purpose = Literal["answer", "user", "rubric", "pair"]
TOO_LONG = "too_long"  # kind of the error that the conversation is too long for the model or its endpoint
_QUOTE = " Response: "  # in the message of an error, before what the endpoint replied


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKey:
    """Purpose of one model call. It finds the reply in recordings.

    The cache uses only a part of it, see `call_digest` in runs/execution/model_client.py.

    model: label of the model under test. role: name of the role model that is called instead, empty for the model under
    test. seat: number of the judge model of a rubric, from 0. turn: number of the call among those with the same
    purpose in an episode, from 0. rule: name of the scoring rule. first, second: the responses of a pair, as
    `label#attempt`.
    """

    purpose: Purpose
    environment: str
    case: str
    attempt: int = 1
    model: str = ""
    role: str = ""
    seat: int = 0
    turn: int = 0
    rule: str = ""
    first: str = ""
    second: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls. `cached_input` is part of `input`, `reasoning` is part of `output`."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached_input + other.cached_input,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Reply of a model to one call.

    finish_reason: as in chat completions (stop, length, content_filter, tool_calls), or refusal if the message is one.
    latency_ms: time of the try that succeeded; None for cached and replayed replies. cost_usd: 0 for cached and
    replayed replies, None if unknown. metered: whether the endpoint reported token counts; without them, usage is 0.
    served_model: the name of the model that the endpoint reports; request_id: its number of the request, to ask its
    operator about it. Both are "" if it reports none.
    """

    message: Message
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    latency_ms: float | None = None
    cost_usd: float | None = 0.0
    cached: bool = False
    metered: bool = True
    served_model: str = field(default="", compare=False)
    request_id: str = field(default="", compare=False)


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum of *costs* in USD, or None if one of them is unknown."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


class ModelError(Exception):
    """Call without a reply, for a reason other than the model's answer: the response is errored, never wrong.

    kind: transport, timeout, http, too_long, auth, quota, forbidden, provider, not_json, malformed, empty,
    no_recording, budget or configuration. fatal: every further call to this model would fail in the same way (a wrong
    key, an unknown model, no credit left). usage: the tokens that the endpoint reported in spite of the error, and that
    may have been paid; None if it reported none. cost_usd: their cost, which the caller sets as that of a Reply.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        fatal: bool = False,
        usage: Usage | None = None,
        cost_usd: float | None = 0.0,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.fatal = fatal
        self.usage = usage
        self.cost_usd = cost_usd


def quoting(message: str, reply: str) -> str:
    """Return the *message* of an error with the *reply* of the endpoint at its end."""
    return f"{message}{_QUOTE}{reply}"


def split_quote(message: str) -> tuple[str, str]:
    """Return the *message* of an error without the reply that `quoting` has added, and the reply; "" without one."""
    own, _, reply = message.partition(_QUOTE)
    return own, reply


class CallModel(Protocol):
    """Call the model that *key* identifies and return its reply. Raises ModelError."""

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply: ...
