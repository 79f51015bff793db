"""Replies of chat-completions endpoints: checked, and turned into `Reply`."""

import json
import uuid
from math import isfinite
from typing import TypeGuard, cast

from hub.common.masking import mask
from hub.common.storable import storable
from hub.protocols.calls import ModelError, Reply, Usage, quoting
from hub.protocols.messages import JSON, Message

_MAX_DEPTH = 100  # levels of objects and lists in a reply; deeper ones can be neither stored nor shown
_MAX_FINISH_REASON = 32  # characters
_MAX_NAME = 200  # characters of the name of the model, and of the id of a request
_MAX_TOKENS = 2**31 - 1
# Where endpoints report cached tokens: OpenAI and most others, DeepSeek, Moonshot.
_CACHED_TOKENS = (("prompt_tokens_details", "cached_tokens"), ("prompt_cache_hit_tokens",), ("cached_tokens",))
_DROPPED = ("audio", "function_call", "annotations", "refusal")  # keys of a message that are not stored
# Words for one finish reason: OpenAI's -> those of other servers, in lower case.
_FINISH_REASONS = {
    "max_tokens": "length",
    "model_length": "length",
    "sensitive": "content_filter",
    "safety": "content_filter",
}
# The server gave up: vLLM and SGLang (abort), DeepSeek (insufficient_system_resource), Zhipu (network_error).
_SERVER_FAILED = {"error", "abort", "insufficient_system_resource", "network_error"}


def parse_reply(
    body: bytes, latency_ms: float, request_id: str = "", *, answered: str = "The endpoint answered 200"
) -> Reply:
    """Return the reply in *body*. Raises ModelError, with the reported tokens, if no model can have produced it.

    request_id: from the headers of the response; without it, the id in *body* is kept. answered: begins the messages
    of errors.
    """
    data = _parse(body, answered)
    try:
        return _read_reply(data, body, latency_ms, request_id, answered)
    except ModelError as error:
        if _is_metered(data.get("usage")):
            error.usage = parse_usage(data["usage"])
        raise


def _read_reply(data: dict[str, object], body: bytes, latency_ms: float, request_id: str, answered: str) -> Reply:
    if data.get("error"):
        raise _reported_error(data["error"], answered)
    choice = _first_choice(data, body, answered)
    given, usage = storable(choice.get("message")), data.get("usage")  # the next request repeats the message
    finish_reason = _finish_reason(choice)
    if choice.get("error") or finish_reason in _SERVER_FAILED:
        raise _reported_error(
            choice.get("error") or {"finish_reason": choice.get("finish_reason"), "message": given}, answered
        )
    if not isinstance(given, dict):
        raise ModelError("empty", f"{answered} with a choice that has no message.")
    content, refusal = given.get("content"), given.get("refusal")
    if not _is_content(content):
        unusable = f"{answered} with `content` that is neither text nor parts."
        raise ModelError("malformed", quoting(unusable, _excerpt_of_value(content)))
    kept = {key: value for key, value in given.items() if value is not None and key not in _DROPPED}
    if kept.get("tool_calls"):
        kept["tool_calls"] = _sendable_calls(kept["tool_calls"])
    message = cast(
        Message, {**kept, "role": "assistant", "content": content or (refusal if isinstance(refusal, str) else "")}
    )
    finish_reason = "refusal" if refusal else mask(storable(finish_reason))
    return Reply(
        message=message,
        finish_reason=finish_reason[:_MAX_FINISH_REASON],
        usage=parse_usage(usage),
        metered=_is_metered(usage),
        latency_ms=round(latency_ms, 1),
        served_model=_name(data.get("model")),
        request_id=_name(request_id or data.get("id")),
    )


def _finish_reason(choice: dict[str, object]) -> str:
    """Return why the model stopped, in the words of chat completions."""
    given = choice.get("finish_reason")
    given = given.get("type") if isinstance(given, dict) else given  # of earlier versions of SGLang
    text = str(given or "stop")
    return _FINISH_REASONS.get(text.lower(), text)


def _sendable_calls(calls: JSON) -> JSON:
    """Return *calls* so that an endpoint accepts them in the next request: with ids of their own and a type.

    Arguments become JSON text, what a model wrote stays as it is.
    """
    seen: set[str] = set()
    sendable: list[JSON] = []
    for call in calls if isinstance(calls, list) else [calls]:
        if isinstance(call, dict):
            identity = call.get("id")
            if not isinstance(identity, str) or not identity or identity in seen:
                identity = f"call_{uuid.uuid4().hex}"
            seen.add(identity)
            call = {**call, "id": identity, "type": call.get("type") or "function"}
            function = call.get("function")
            if isinstance(function, dict) and not isinstance(function.get("arguments"), str):
                arguments = function.get("arguments")
                text = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
                call["function"] = {**function, "arguments": text}
        sendable.append(call)
    return sendable


def _name(value: object) -> str:
    return mask(storable(value))[:_MAX_NAME] if isinstance(value, str) else ""


def parse_usage(usage: object) -> Usage:
    """Return the token counts in *usage*. Missing and invalid counts are 0.

    Reasoning tokens are part of the output. Endpoints that report them beside `completion_tokens` are recognised by
    their `total_tokens`.
    """
    prompt, output = _token_count(usage, "prompt_tokens") or 0, _token_count(usage, "completion_tokens") or 0
    reasoning = _token_count(usage, "completion_tokens_details", "reasoning_tokens") or 0
    if reasoning and _token_count(usage, "total_tokens") == prompt + output + reasoning:
        output += reasoning
    cached = next((count for path in _CACHED_TOKENS if (count := _token_count(usage, *path))), 0)
    return Usage(input=prompt, output=output, cached_input=min(cached, prompt), reasoning=min(reasoning, output))


def _is_metered(usage: object) -> bool:
    """Return whether *usage* has valid token counts."""
    return None not in (_token_count(usage, "prompt_tokens"), _token_count(usage, "completion_tokens"))


def excerpt(body: bytes) -> str:
    """Return the beginning of *body* as one line of text without keys, for an error message."""
    # Masked before it is cut: a part of a key would not be recognised.
    text = " ".join(mask(body[:20_000].decode("utf-8", "replace"))[:2000].split())
    return text if len(text) <= 300 else text[:297] + "..."


def _excerpt_of_value(value: object) -> str:
    return excerpt(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _reported_error(error: object, answered: str) -> ModelError:
    message = f"{answered} and reported an error in place of a reply."
    return ModelError("provider", quoting(message, _excerpt_of_value(error)))


def _parse(body: bytes, answered: str) -> dict[str, object]:
    """Return the object in *body*, empty if it is another value. Raises ModelError."""
    if not body.strip():
        raise ModelError("not_json", f"{answered} with an empty body.")
    too_deep = ModelError("malformed", f"{answered} with JSON that is nested too deeply.")
    try:
        # NaN and infinities are not valid JSON, and 1e999 is read as an infinity.
        data = json.loads(body, parse_constant=lambda _: None, parse_float=_finite)
    except RecursionError:
        raise too_deep from None
    except ValueError:
        remedy = ""
        if body.lstrip().startswith(b"<"):  # a web page
            remedy = "; check `base_url` of the model, which usually ends in /v1"
        message = f"{answered} with a body that is not JSON{remedy}."
        raise ModelError("not_json", quoting(message, excerpt(body))) from None
    if body.count(b"[") + body.count(b"{") > _MAX_DEPTH and _depth(data) > _MAX_DEPTH:
        raise too_deep
    return data if isinstance(data, dict) else {}


def _finite(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


def _first_choice(data: dict[str, object], body: bytes, answered: str) -> dict[str, object]:
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ModelError("empty", quoting(f"{answered} without a choice.", excerpt(body)))
    return cast("dict[str, object]", choices[0])


def _depth(value: object) -> int:
    """Return the levels of lists and objects in *value*, without recursion."""
    level, depth = [value], 0
    while containers := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    return depth


def _is_content(value: object) -> TypeGuard[str | list[dict[str, object]] | None]:
    """Return whether *value* can be the content of a message: text, None, or a list of parts."""
    if isinstance(value, list):
        return all(isinstance(part, dict) and isinstance(part.get("text", ""), str) for part in value)
    return value is None or isinstance(value, str)


def _token_count(source: object, *names: str) -> int | None:
    """Return the number of tokens at the path *names*, or None if there is no valid one."""
    for name in names:
        source = source.get(name) if isinstance(source, dict) else None
    if isinstance(source, float) and source.is_integer():
        source = int(source)  # some servers write 10.0
    if isinstance(source, int) and not isinstance(source, bool) and 0 <= source <= _MAX_TOKENS:
        return source
    return None
