"""The responses API: items to messages, and a message to the items and events of a response."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from hub.harnesses.endpoint.content import text_content, user_content
from hub.harnesses.endpoint.parameters import response_parameters
from hub.harnesses.endpoint.shapes import (
    Body,
    EndpointApi,
    Event,
    InvalidRequest,
    Written,
    check_list,
    metered_usage,
    model_name,
    names,
    pieces,
)
from hub.protocols.calls import Reply
from hub.protocols.messages import JSON, Message, Tool, ToolCall

_ROLES = ("system", "developer", "user", "assistant")
_PARTS = ("input_text", "output_text", "text", "refusal")
# What is read neither here nor in `parameters` does not influence the answer, or has no meaning for functions alone.
_KNOWN = names(
    "input instructions tools previous_response_id stream stream_options model store metadata user text reasoning "
    "temperature top_p max_output_tokens max_tool_calls tool_choice parallel_tool_calls truncation service_tier "
    "safety_identifier prompt_cache_key prompt_cache_options prompt_cache_retention"
)
_ONLY: dict[str, Sequence[JSON]] = {
    "background": [False],
    "top_logprobs": [0],
    "include": [[], ["reasoning.encrypted_content"]],  # no reply has reasoning items, so nothing is missing
}
_REFUSED = ("conversation", "prompt", "context_management", "image", "moderation", "access_programs")


class Responses(EndpointApi):
    """The responses API. Earlier responses are kept by the relay, which sends their items as the history."""

    known, only, refused = _KNOWN, _ONLY, _REFUSED

    def read_messages(self, body: Body, history: Sequence[JSON]) -> list[Message]:
        instructions = body.get("instructions")
        if not isinstance(instructions, str | None):
            raise InvalidRequest("`instructions` must be text.", "instructions")
        messages: list[Message] = [{"role": "system", "content": instructions}] if instructions else []
        _add_items(messages, list(history), "previous_response_id")
        _add_items(messages, _input_items(body), "input")
        if not messages:
            raise InvalidRequest("`input` must be text, or a list with at least one item.", "input")
        return messages

    def read_tool(self, tool: Mapping[str, JSON], where: str) -> Tool:
        function: dict[str, JSON] = {
            "name": _text(tool, "name", where),
            "description": str(tool.get("description") or ""),
            "parameters": tool.get("parameters") or {"type": "object", "properties": {}},
        }
        if tool.get("strict") is not None:
            function["strict"] = tool["strict"]
        return cast(Tool, {"type": "function", "function": function})

    def read_parameters(self, body: Body, tools: Sequence[Tool]) -> dict[str, JSON]:
        return response_parameters(body, tools)

    def write(self, body: Body, number: int, message: Message, reply: Reply | None) -> Written:
        output = _output(message, number)
        response = _response(body, number, output, reply)
        events = (
            f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': place})}\n\n"
            for place, event in enumerate(_events(response, output))
        )
        return Written(complete=response, events=events, items=[*_input_items(body), *output])


# ---- requests --------------------------------------------------------------------------------------------------------


def _input_items(body: Body) -> list[Mapping[str, JSON]]:
    given = body.get("input")
    if given is None:
        return []
    return [{"role": "user", "content": given}] if isinstance(given, str) else check_list(given, "input", "items")


def _add_items(messages: list[Message], items: Sequence[JSON], name: str) -> None:
    """Add the messages of *items*. Calls belong to the assistant's message before them."""
    for number, item in enumerate(items):
        where = f"{name}[{number}]"
        kind = item.get("type", "message") if isinstance(item, dict) else None
        if not isinstance(item, dict) or kind not in ("message", "function_call", "function_call_output"):
            raise InvalidRequest(
                f"{where}.type: {kind!r} is not supported; message, function_call and function_call_output are.",
                f"{where}.type",
                code="unsupported_value",
            )
        if kind == "message":
            messages.append(_message(item, where))
        elif kind == "function_call":
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(_call(item, where))
        else:
            output = text_content(_field(item, "output", where), _PARTS, f"{where}.output")
            messages.append({"role": "tool", "tool_call_id": _text(item, "call_id", where), "content": output})


def _message(item: Mapping[str, JSON], where: str) -> Message:
    role = item.get("role")
    if role not in _ROLES:
        raise InvalidRequest(f"{where}.role must be one of {', '.join(_ROLES)}.", f"{where}.role")
    content, at = _field(item, "content", where), f"{where}.content"
    read = user_content(content, _PARTS, "input_image", at) if role == "user" else text_content(content, _PARTS, at)
    return cast(Message, {"role": role, "content": read})


def _call(item: Mapping[str, JSON], where: str) -> ToolCall:
    name, arguments = _text(item, "name", where), _text(item, "arguments", where)
    return {
        "id": _text(item, "call_id", where),
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _field(item: Mapping[str, JSON], name: str, where: str) -> JSON:
    if item.get(name) is None:
        raise InvalidRequest(f"Missing required parameter: {where}.{name}.", f"{where}.{name}")
    return item[name]


def _text(item: Mapping[str, JSON], name: str, where: str) -> str:
    value = _field(item, name, where)
    if not isinstance(value, str):
        raise InvalidRequest(f"{where}.{name} must be text.", f"{where}.{name}")
    return value


# ---- replies ---------------------------------------------------------------------------------------------------------


def _output(message: Message, number: int) -> list[Event]:
    """Return the items of a response: a message if there is text or no call, and the calls."""
    calls = message.get("tool_calls", [])
    output: list[Event] = []
    if message.get("content") or not calls:
        part = {"type": "output_text", "text": message.get("content") or "", "annotations": [], "logprobs": []}
        output.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [part]})
    output += [
        {"type": "function_call", "id": f"fc_{number}_{place}", "call_id": call["id"], **dict(call["function"])}
        for place, call in enumerate(calls)
    ]
    return [{**item, "status": "completed"} for item in output]


def _response(body: Body, number: int, output: Sequence[Event], reply: Reply | None) -> Event:
    cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reply.finish_reason if reply else "")
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if cut else "completed",
        "background": False,
        "error": None,
        "incomplete_details": {"reason": cut} if cut else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata") or {},
        "model": model_name(body),
        "output": list(output),
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None, **cast(Event, body.get("reasoning") or {})},
        "store": body.get("store") is not False,
        "temperature": body.get("temperature"),
        "text": {"format": {"type": "text"}, **cast(Event, body.get("text") or {})},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p"),
        "truncation": "disabled",
        "usage": _usage(reply),
        "user": body.get("user"),
    }


def _usage(reply: Reply | None) -> JSON:
    usage = metered_usage(reply)
    if usage is None:
        return None
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached_input, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


# ---- events ----------------------------------------------------------------------------------------------------------


def _events(response: Event, output: Sequence[Event]) -> Iterator[Event]:
    begun = {**response, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, item in enumerate(output):
        empty: Event = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield {
            "type": "response.output_item.added",
            "output_index": place,
            "item": {**item, **empty, "status": "in_progress"},
        }
        yield from _text_events(item, place) if item["type"] == "message" else _call_events(item, place)
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _text_events(item: Event, place: int) -> Iterator[Event]:
    (part,) = cast(list[dict[str, JSON]], item["content"])
    at: Event = {"item_id": item["id"], "output_index": place, "content_index": 0}
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for piece in pieces(str(part["text"])):
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}


def _call_events(item: Event, place: int) -> Iterator[Event]:
    at: Event = {"item_id": item["id"], "output_index": place}
    for piece in pieces(str(item["arguments"])):
        yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
    done = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **at, **done}
