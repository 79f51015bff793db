"""What the hub needs from above and is handed: a way to ask a model. Messages, tools and replies in the wire's shape.

A message is a chat-completions message as JSON: `{"role", "content"}`, for the assistant also `tool_calls`
(`[{"id", "type": "function", "function": {"name", "arguments": "<JSON text>"}}]`), for a tool `tool_call_id`.
A tool is `{"type": "function", "function": {"name", "description", "parameters": <JSON schema>}}`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

JSON = Any  # None, bool, int, float, str, list or dict of the same
Message = dict[str, Any]
Tool = dict[str, Any]
Purpose = Literal["answer", "user", "rubric", "pair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKey:
    """What one model call is for. Together with the request it names the call in the cache and in recordings.

    `model` is the label of the model whose answer is played or judged; `role` and `seat` say which of the run's
    role models answers instead (`seat` counts the judges of a rubric from 0); `turn` counts calls of one purpose
    within an episode from 0; `rule` is a scoring rule's name; `first` and `second` are `label#attempt` of a pair.
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
    """A model's answer to one call.

    `finish_reason` is the wire's: stop, length, content_filter, tool_calls, or refusal where the message is one.
    `latency_ms` is the time of the attempt that succeeded, None for cached and replayed answers; `cost_usd` is 0 for
    those, and None where it is not known. `metered` says whether the endpoint reported its token counts; `usage` is 0
    where it did not.
    """

    message: Message
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    latency_ms: float | None = None
    cost_usd: float | None = 0.0
    cached: bool = False
    metered: bool = True


def total_cost(costs: Iterable[float | None]) -> float | None:
    """The sum of *costs* in USD; None where one of them is not known."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


class ModelError(Exception):
    """A call that brought no answer, through no fault of the model: the response is errored, never wrong.

    `kind` is one word for tables: transport, timeout, http, auth, quota, forbidden, provider, not_json, malformed,
    empty, no_recording, budget, configuration. `fatal` says that every further call to this model would end the same
    way (a wrong key, an unknown model, no credit left).
    """

    def __init__(self, kind: str, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.fatal = fatal


class Ask(Protocol):
    """Ask the model that *key* calls for. Raises ModelError."""

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply: ...
