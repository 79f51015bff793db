"""Chat completions, also streamed."""

import json
import time
from collections.abc import Iterator, Sequence
from typing import cast

from hub.harnesses.endpoint.shapes import (
    Answer,
    Body,
    Event,
    InvalidRequest,
    ModelCall,
    check_fields,
    check_list,
    check_parts,
    model_name,
    names,
    pieces,
    shown_message,
)
from hub.protocols.calls import Reply, Usage
from hub.protocols.messages import JSON, Message, Tool

_ROLES = ("system", "developer", "user", "assistant", "tool")
_PARTS = ("text", "refusal")
# What is not read here is decided by the run's config.
_KNOWN = names(
    "messages tools model stream stream_options temperature top_p max_tokens max_completion_tokens stop seed "
    "presence_penalty frequency_penalty logit_bias tool_choice parallel_tool_calls response_format reasoning_effort "
    "verbosity service_tier store metadata user safety_identifier prompt_cache_key prompt_cache_options "
    "prompt_cache_retention prediction"
)
_ONLY: dict[str, Sequence[JSON]] = {"n": [1], "logprobs": [False], "top_logprobs": [0], "modalities": [["text"]]}
_REFUSED = ("audio", "functions", "function_call", "web_search_options", "moderation")


class ChatCompletions:
    """The chat completions API."""

    def parse(self, body: Body, history: Sequence[JSON]) -> ModelCall:
        check_fields(body, _KNOWN, _ONLY, _REFUSED)
        messages = check_list(body.get("messages"), "messages", "messages", empty=False)
        for number, message in enumerate(messages):
            _check_message(message, f"messages[{number}]")
        tools = check_list(body.get("tools") or [], "tools", "functions")
        for number, tool in enumerate(tools):
            _check_tool(tool, f"tools[{number}]")
        return ModelCall(cast(list[Message], messages), cast(list[Tool], tools))

    def answer(self, body: Body, number: int, message: Message, reply: Reply | None) -> Answer:
        shown = shown_message(message, number)
        reason, usage = _finish_reason(shown, reply), _usage(reply)
        common: Event = {"id": f"chatcmpl-{number}", "created": int(time.time()), "model": model_name(body)}
        if body.get("stream"):
            options = body.get("stream_options")
            wanted = isinstance(options, dict) and bool(options.get("include_usage"))
            events = _chunks(common, shown, reason, usage, include_usage=wanted)
            lines = [f"data: {json.dumps(event)}\n\n" for event in events]
            return Answer(body="".join([*lines, "data: [DONE]\n\n"]), stream=True)
        choice = {
            "index": 0,
            "message": {**shown, "refusal": None},
            "finish_reason": reason,
            "logprobs": None,
        }
        complete = {**common, "object": "chat.completion", "choices": [choice], "usage": usage}
        return Answer(body=json.dumps(complete))


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
    if reply is None or not reply.metered:
        return None
    usage: Usage = reply.usage
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _check_message(message: object, where: str) -> None:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        raise InvalidRequest(f"{where}.role must be one of {', '.join(_ROLES)}.", f"{where}.role")
    check_parts(message.get("content"), _PARTS, f"{where}.content")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(_is_call(call) for call in calls):
        raise InvalidRequest(f"{where}.tool_calls must be a list of calls of functions.", f"{where}.tool_calls")


def _check_tool(tool: object, where: str) -> None:
    if not isinstance(tool, dict) or tool.get("type", "function") != "function":
        kind = tool.get("type") if isinstance(tool, dict) else None
        raise InvalidRequest(
            f"{where}.type: {kind!r} is not supported; only functions are.", f"{where}.type", code="unsupported_value"
        )
    function = tool.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        raise InvalidRequest(f"{where}.function must be a function with a name.", f"{where}.function")


def _is_call(call: object) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return (
        isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), str)
    )
