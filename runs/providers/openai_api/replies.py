"""Replies of chat-completions endpoints: checked, and turned into `Reply`."""

import json
from typing import TypeGuard, cast

from hub.common.masking import mask
from hub.common.storable import storable
from hub.protocols.calls import ModelError, Reply, Usage
from hub.protocols.messages import Message

_MAX_DEPTH = 100  # levels of objects and lists in a reply; deeper ones can be neither stored nor shown
_MAX_FINISH_REASON = 32  # characters
_MAX_NAME = 200  # characters of the name of the model, and of the id of a request
_MAX_TOKENS = 2**31 - 1
_DROPPED = ("audio", "function_call", "annotations", "refusal")  # keys of a message that are not stored
_ANSWERED = "The endpoint answered 200"


def parse_reply(body: bytes, latency_ms: float, request_id: str = "") -> Reply:
    """Return the reply in *body*. Raises ModelError if no model can have produced it.

    request_id: from the headers of the response; without it, the id in *body* is kept.
    """
    data = _parse(body)
    choice = _first_choice(data, body)
    given, usage = storable(choice.get("message")), data.get("usage")  # the next request repeats the message
    if choice.get("error") or choice.get("finish_reason") == "error":
        raise _reported_error(choice.get("error") or given)
    if not isinstance(given, dict):
        raise ModelError("empty", f"{_ANSWERED} with a choice that has no message.")
    content, refusal = given.get("content"), given.get("refusal")
    if not _is_content(content):
        raise ModelError(
            "malformed", f"{_ANSWERED} with `content` that is neither text nor parts: {_excerpt_of_value(content)}"
        )
    kept = {key: value for key, value in given.items() if value is not None and key not in _DROPPED}
    message = cast(
        Message, {**kept, "role": "assistant", "content": content or (refusal if isinstance(refusal, str) else "")}
    )
    finish_reason = "refusal" if refusal else mask(storable(str(choice.get("finish_reason") or "stop")))
    return Reply(
        message=message,
        finish_reason=finish_reason[:_MAX_FINISH_REASON],
        usage=parse_usage(usage),
        metered=_token_count(usage, "prompt_tokens") is not None
        and _token_count(usage, "completion_tokens") is not None,
        latency_ms=round(latency_ms, 1),
        served_model=_name(data.get("model")),
        request_id=_name(request_id or data.get("id")),
    )


def _name(value: object) -> str:
    return mask(storable(value))[:_MAX_NAME] if isinstance(value, str) else ""


def parse_usage(usage: object) -> Usage:
    """Return the token counts in *usage*. Missing and invalid counts are 0."""
    prompt = _token_count(usage, "prompt_tokens") or 0
    return Usage(
        input=prompt,
        output=_token_count(usage, "completion_tokens") or 0,
        cached_input=min(_token_count(usage, "prompt_tokens_details", "cached_tokens") or 0, prompt),
        reasoning=_token_count(usage, "completion_tokens_details", "reasoning_tokens") or 0,
    )


def excerpt(body: bytes) -> str:
    """Return the beginning of *body* as one line of text without keys, for an error message."""
    # Masked before it is cut: a part of a key would not be recognised.
    text = " ".join(mask(body[:20_000].decode("utf-8", "replace"))[:2000].split())
    return text if len(text) <= 300 else text[:297] + "..."


def _excerpt_of_value(value: object) -> str:
    return excerpt(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _reported_error(error: object) -> ModelError:
    return ModelError("provider", f"{_ANSWERED} and reported an error in place of a reply: {_excerpt_of_value(error)}")


def _parse(body: bytes) -> dict[str, object]:
    """Return the object in *body*, empty if it is another value. Raises ModelError."""
    too_deep = ModelError("malformed", f"{_ANSWERED} with JSON that is nested too deeply.")
    try:
        data = json.loads(body, parse_constant=lambda _: None)  # NaN and infinities are not valid JSON
    except RecursionError:
        raise too_deep from None
    except ValueError:
        raise ModelError("not_json", f"{_ANSWERED} with a body that is not JSON: {excerpt(body)}") from None
    if body.count(b"[") + body.count(b"{") > _MAX_DEPTH and _depth(data) > _MAX_DEPTH:
        raise too_deep
    data = data if isinstance(data, dict) else {}
    if data.get("error"):
        raise _reported_error(data["error"])
    return data


def _first_choice(data: dict[str, object], body: bytes) -> dict[str, object]:
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ModelError("empty", f"{_ANSWERED} without a choice: {excerpt(body)}")
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
    if isinstance(source, int) and not isinstance(source, bool) and 0 <= source <= _MAX_TOKENS:
        return source
    return None
