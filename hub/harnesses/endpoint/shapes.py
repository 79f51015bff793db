"""Requests and answers of the endpoint, its errors, and checks that both APIs share."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hub.protocols.calls import Reply, Usage
from hub.protocols.messages import JSON, Message, Tool, calls_of, plain_message, text_of

Body: TypeAlias = dict[str, JSON]
Event: TypeAlias = dict[str, JSON]

_PIECE = 64  # characters of a streamed piece, at least
_MAX_PIECES = 64


class InvalidRequest(Exception):
    """Request that is answered with an error in OpenAI's format. The message is for the program."""

    def __init__(self, message: str, param: str = "", *, status: int = 400, code: str = "") -> None:
        super().__init__(message)
        self.param = param
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a request asks of the model: the messages of its whole conversation, the tools, and `temperature` etc."""

    messages: list[Message]
    tools: list[Tool]
    parameters: dict[str, JSON]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response. `items` is what a later `previous_response_id` adds to the input of its request."""

    body: str
    status: int = 200
    stream: bool = False
    items: Sequence[JSON] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """What the model said in the format of an API: complete, and as the lines of events of a stream."""

    complete: Event
    events: Iterable[str]
    items: Sequence[JSON] = ()


class EndpointApi(ABC):
    """One API: it reads requests, and writes what the model said. `known`, `only` and `refused` name its fields."""

    known: Collection[str]
    only: Mapping[str, Sequence[JSON]]
    refused: Collection[str]

    def parse(self, body: Body, history: Sequence[JSON]) -> ModelCall:
        """Return the call that *body* asks for. Raises InvalidRequest."""
        _check_fields(body, self.known, self.only, self.refused)
        messages = self.read_messages(body, history)
        given = check_list(body.get("tools") or [], "tools", "functions")
        tools = [self._tool(tool, f"tools[{number}]") for number, tool in enumerate(given)]
        return ModelCall(messages, tools, self.read_parameters(body, tools))

    def answer(self, body: Body, number: int, message: Message, reply: Reply | None) -> Answer:
        """Return the answer to request *number*. `reply` has the usage, and is None if a trainer is the model."""
        written = self.write(body, number, shown_message(message, number), reply)
        if body.get("stream"):
            return Answer(body="".join(written.events), stream=True, items=written.items)
        return Answer(body=json.dumps(written.complete), items=written.items)

    @abstractmethod
    def read_messages(self, body: Body, history: Sequence[JSON]) -> list[Message]:
        """Return the messages of *body* and of the responses that it continues. Raises InvalidRequest."""

    @abstractmethod
    def read_tool(self, tool: Mapping[str, JSON], where: str) -> Tool:
        """Return a tool of the type function. Raises InvalidRequest."""

    @abstractmethod
    def read_parameters(self, body: Body, tools: Sequence[Tool]) -> dict[str, JSON]:
        """Return what influences the answer, as chat completions name it. Raises InvalidRequest."""

    @abstractmethod
    def write(self, body: Body, number: int, message: Message, reply: Reply | None) -> Written:
        """Return the answer with the *message* as the program reads it."""

    def _tool(self, tool: Mapping[str, JSON], where: str) -> Tool:
        kind = tool.get("type", "function")
        if kind != "function":
            text = f"{where}.type: {kind!r} is not supported; only functions are."
            raise InvalidRequest(text, f"{where}.type", code="unsupported_value")
        return self.read_tool(tool, where)


def error_answer(error: InvalidRequest) -> Answer:
    described = {
        "message": str(error),
        "type": "invalid_request_error",
        "param": error.param or None,
        "code": error.code or None,
    }
    return Answer(body=json.dumps({"error": described}), status=error.status)


def shown_message(message: Message, number: int) -> Message:
    """Return the *message* of the model as the program reads it: text, and calls that each have an id."""
    plain = plain_message(message)
    shown: Message = {"role": "assistant", "content": text_of(plain) or (None if calls_of(plain) else "")}
    if calls_of(plain):
        shown["tool_calls"] = [
            {
                "id": str(call["id"] or f"call_{number}_{place}"),
                "type": "function",
                "function": {
                    "name": str(call["function"]["name"] or ""),
                    "arguments": call["function"]["arguments"],
                },
            }
            for place, call in enumerate(plain["tool_calls"])
        ]
    return shown


def _check_fields(
    body: Body, known: Collection[str], only: Mapping[str, Sequence[JSON]], refused: Collection[str]
) -> None:
    """Check the names in *body*. Fields in *only* may have the listed values. Raises InvalidRequest."""
    given = [name for name, value in body.items() if value is not None]
    if unknown := [name for name in given if name not in known and name not in only and name not in refused]:
        raise InvalidRequest(f"Unknown parameter: {_named(unknown)}.", unknown[0], code="unknown_parameter")
    for name in given:
        if name in only and body[name] not in only[name]:
            allowed = " or ".join(f"`{json.dumps(value)}`" for value in only[name])
            raise InvalidRequest(f"Unsupported value: `{name}` must be {allowed} here.", name, code="unsupported_value")
    if found := [name for name in given if name in refused]:
        raise InvalidRequest(
            f"Unsupported parameter: {_named(found)} is not available to programs in a box.",
            found[0],
            code="unsupported_parameter",
        )
    if not isinstance(body.get("stream"), bool | None):
        raise InvalidRequest("`stream` must be true or false.", "stream")


def check_list(value: JSON, where: str, of: str, *, empty: bool = True) -> list[Mapping[str, JSON]]:
    """Return *value* if it is a list of objects. Raises InvalidRequest."""
    if not isinstance(value, list) or not (value or empty) or not all(isinstance(item, dict) for item in value):
        raise InvalidRequest(f"`{where}` must be a list {'' if empty else 'with at least one '}of {of}.", where)
    return value


def metered_usage(reply: Reply | None) -> Usage | None:
    """Return the usage that the model's endpoint reported; None if it reported none, or a trainer is the model."""
    return reply.usage if reply is not None and reply.metered else None


def model_name(body: Body) -> str:
    """Return the name that the program used for the model, which the run's config decides on."""
    name = body.get("model")
    return name[:200] if isinstance(name, str) and name else "model"


def names(text: str) -> frozenset[str]:
    """Return the names in *text*."""
    return frozenset(text.split())


def pieces(text: str) -> Iterator[str]:
    """Yield *text* in the pieces in which it is streamed."""
    size = max(_PIECE, math.ceil(len(text) / _MAX_PIECES))
    return (text[start : start + size] for start in range(0, len(text), size))


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"`{name[:100]}`" for name in names[:10])
