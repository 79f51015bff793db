"""Chat completions, also streamed."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import cast

from hub.harnesses.endpoint.content import text_content, user_content
from hub.harnesses.endpoint.parameters import CHAT, chat_parameters
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
from hub.protocols.messages import JSON, Message, Tool, is_complete_call

_ROLES = ("system", "developer", "user", "assistant", "tool")
_PARTS = ("text", "refusal")
# What is read neither here nor in `parameters` does not influence the answer. The run's config decides on the model.
_KNOWN = CHAT | names(
    "messages tools model stream stream_options service_tier store metadata user safety_identifier prompt_cache_key "
    "prompt_cache_options prompt_cache_retention prediction"
)
_ONLY: dict[str, Sequence[JSON]] = {"n": [1], "logprobs": [False], "top_logprobs": [0], "modalities": [["text"]]}
_REFUSED = ("audio", "functions", "function_call", "web_search_options", "moderation")


class ChatCompletions(EndpointApi):
    """The chat completions API."""

    known, only, refused = _KNOWN, _ONLY, _REFUSED

    def read_messages(self, body: Body, history: Sequence[JSON]) -> list[Message]:
        messages = check_list(body.get("messages"), "messages", "messages", empty=False)
        return [_message(message, f"messages[{number}]") for number, message in enumerate(messages)]

    def read_tool(self, tool: Mapping[str, JSON], where: str) -> Tool:
        function = tool.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
            raise InvalidRequest(f"{where}.function must be a function with a name.", f"{where}.function")
        return cast(Tool, tool)

    def read_parameters(self, body: Body, tools: Sequence[Tool]) -> dict[str, JSON]:
        return chat_parameters(body, tools)

    def write(self, body: Body, number: int, message: Message, reply: Reply | None) -> Written:
        reason, usage = _finish_reason(message, reply), _usage(reply)
        common: Event = {"id": f"chatcmpl-{number}", "created": int(time.time()), "model": model_name(body)}
        options = body.get("stream_options")
        wanted = isinstance(options, dict) and bool(options.get("include_usage"))
        chunks = _chunks(common, message, reason, usage, include_usage=wanted)
        choice = {"index": 0, "message": {**message, "refusal": None}, "finish_reason": reason, "logprobs": None}
        return Written(
            complete={**common, "object": "chat.completion", "choices": [choice], "usage": usage},
            events=chain((f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), ["data: [DONE]\n\n"]),
        )


def _chunks(common: Event, message: Message, reason: str, usage: JSON, *, include_usage: bool) -> Iterator[Event]:
    shared: Event = {**common, "object": "chat.completion.chunk", **({"usage": None} if include_usage else {})}
    for delta in _deltas(message):
        yield {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}]}
    yield {**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": reason, "logprobs": None}]}
    if include_usage and usage:
        yield {**shared, "choices": [], "usage": usage}


def _deltas(message: Message) -> Iterator[Event]:
    yield {"role": "assistant", "content": None if message.get("tool_calls") and not message["content"] else ""}
    for piece in pieces(str(message.get("content") or "")):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls", [])):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]}
        for piece in pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _finish_reason(message: Message, reply: Reply | None) -> str:
    if reply is not None and reply.finish_reason in ("length", "content_filter"):
        return reply.finish_reason
    return "tool_calls" if message.get("tool_calls") else "stop"


def _usage(reply: Reply | None) -> JSON:
    usage = metered_usage(reply)
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _message(message: Mapping[str, JSON], where: str) -> Message:
    role = message.get("role")
    if role not in _ROLES:
        raise InvalidRequest(f"{where}.role must be one of {', '.join(_ROLES)}.", f"{where}.role")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(is_complete_call(call) for call in calls):
        raise InvalidRequest(f"{where}.tool_calls must be a list of calls of functions.", f"{where}.tool_calls")
    content = message.get("content")
    if role != "user":
        text_content(content, _PARTS, f"{where}.content")
        return cast(Message, message)
    read = user_content(content, _PARTS, "image_url", f"{where}.content")
    return cast(Message, {**message, "content": read} if isinstance(read, list) else message)
