"""Parameters that influence the answer, such as `temperature`: checked, and as chat completions name them."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from hub.harnesses.endpoint.shapes import Body, InvalidRequest
from hub.protocols.messages import JSON, Tool

_INT32, _INT64 = 2**31 - 1, 2**63 - 1
_MAX_STOPS = 4
_FORMATS = ("text", "json_object", "json_schema")
_CHOICES = ("none", "auto", "required")


def _invalid(where: str, must: str, *, unsupported: bool = False) -> InvalidRequest:
    code = "unsupported_value" if unsupported else "invalid_value"
    return InvalidRequest(f"Invalid value: `{where}` must be {must}.", where, code=code)


def _number(low: float, high: float, value: JSON, where: str) -> JSON:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise _invalid(where, f"a number from {low:g} to {high:g}")
    return value


def _whole(low: int, high: int, value: JSON, where: str) -> JSON:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _invalid(where, "a whole number" if low < 0 else f"a whole number of at least {low}")
    return value


def _text(value: JSON, where: str) -> JSON:
    if not isinstance(value, str) or not value:
        raise _invalid(where, "text")
    return value


def _flag(value: JSON, where: str) -> JSON:
    if not isinstance(value, bool):
        raise _invalid(where, "true or false")
    return value


def _stop(value: JSON, where: str) -> JSON:
    texts = value if isinstance(value, list) else [value]
    if not texts or len(texts) > _MAX_STOPS or not all(isinstance(text, str) and text for text in texts):
        raise _invalid(where, f"text, or a list of at most {_MAX_STOPS} texts")
    return value


def _biases(value: JSON, where: str) -> JSON:
    given = value if isinstance(value, dict) else {"": None}
    for name, bias in given.items():
        _number(-100, 100, bias, f"{where}.{name[:100]}" if name else where)
    return value


def _format(value: JSON, where: str) -> JSON:
    """Check a `response_format` of chat completions."""
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or kind not in _FORMATS:
        raise _invalid(f"{where}.type", f"one of {', '.join(_FORMATS)}", unsupported=True)
    if kind == "json_schema":
        schema = value.get("json_schema")
        if not isinstance(schema, dict) or not isinstance(schema.get("name"), str) or not schema["name"]:
            raise _invalid(f"{where}.json_schema", "an object with a name")
        if not isinstance(schema.get("schema"), dict | None):
            raise _invalid(f"{where}.json_schema.schema", "an object")
    return value


_CHECKS: Mapping[str, Callable[[JSON, str], JSON]] = {
    "temperature": partial(_number, 0, 2),
    "top_p": partial(_number, 0, 1),
    "presence_penalty": partial(_number, -2, 2),
    "frequency_penalty": partial(_number, -2, 2),
    "logit_bias": _biases,
    "max_tokens": partial(_whole, 1, _INT32),
    "max_completion_tokens": partial(_whole, 1, _INT32),
    "seed": partial(_whole, -_INT64, _INT64),
    "stop": _stop,
    "response_format": _format,
    "reasoning_effort": _text,
    "verbosity": _text,
    "parallel_tool_calls": _flag,
}
CHAT = frozenset({*_CHECKS, "tool_choice"})


def chat_parameters(body: Body, tools: Sequence[Tool]) -> dict[str, JSON]:
    """Return the parameters of a request for chat completions. Raises InvalidRequest."""
    found = {name: check(body[name], name) for name, check in _CHECKS.items() if body.get(name) is not None}
    return _complete(found, body.get("tool_choice"), tools, nested="function")


def response_parameters(body: Body, tools: Sequence[Tool]) -> dict[str, JSON]:
    """Return the parameters of a request for responses, as chat completions name them. Raises InvalidRequest."""
    found: dict[str, JSON] = {}
    text, reasoning = _object(body, "text"), _object(body, "reasoning")
    given = {
        "temperature": ("temperature", body.get("temperature")),
        "top_p": ("top_p", body.get("top_p")),
        "max_completion_tokens": ("max_output_tokens", body.get("max_output_tokens")),
        "parallel_tool_calls": ("parallel_tool_calls", body.get("parallel_tool_calls")),
        "reasoning_effort": ("reasoning.effort", reasoning.get("effort")),
        "verbosity": ("text.verbosity", text.get("verbosity")),
    }
    for name, (where, value) in given.items():
        if value is not None:
            found[name] = _CHECKS[name](value, where)
    if text.get("format") is not None:
        found["response_format"] = _response_format(text["format"])
    return _complete(found, body.get("tool_choice"), tools, nested="")


def _object(body: Body, name: str) -> Mapping[str, JSON]:
    value = body.get(name) or {}
    if not isinstance(value, dict):
        raise _invalid(name, "an object")
    return value


def _response_format(value: JSON) -> JSON:
    """Return `text.format` of responses, whose schema is not nested, as a `response_format`."""
    if not isinstance(value, dict) or value.get("type") != "json_schema":
        return _format(value, "text.format")
    schema = {key: item for key, item in value.items() if key != "type" and item is not None}
    if not isinstance(schema.get("name"), str) or not schema["name"]:
        raise _invalid("text.format.name", "text")
    if not isinstance(schema.get("schema"), dict | None):
        raise _invalid("text.format.schema", "an object")
    return {"type": "json_schema", "json_schema": schema}


def _complete(found: dict[str, JSON], choice: JSON, tools: Sequence[Tool], nested: str) -> dict[str, JSON]:
    """Return *found* with the choice of a tool. Without tools, what is about tools is left out.

    nested: the key below which chat completions name a function; "" for responses, which name it beside the type.
    """
    if choice is not None:
        checked = _choice(choice, {tool["function"]["name"] for tool in tools}, nested)
        if not tools and checked not in ("none", "auto"):
            raise _invalid("tool_choice", "none or auto in a request without tools")
        found["tool_choice"] = checked
    if not tools:
        for name in ("tool_choice", "parallel_tool_calls"):
            found.pop(name, None)
    if found.get("response_format") == {"type": "text"}:  # the default, which some endpoints do not know
        del found["response_format"]
    try:
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise InvalidRequest("The parameters contain text or numbers that JSON cannot represent.") from None
    return found


def _choice(value: JSON, names: set[str], nested: str) -> JSON:
    if isinstance(value, str) and value in _CHOICES:
        return value
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or kind not in ("function", "allowed_tools"):
        raise _invalid("tool_choice", "none, auto, required, a function or allowed_tools", unsupported=True)
    if kind == "function":
        return _function(value, names, nested, "tool_choice")
    where = "tool_choice.allowed_tools" if nested else "tool_choice"
    allowed = value.get("allowed_tools") if nested else value
    mode, tools = (allowed.get("mode"), allowed.get("tools")) if isinstance(allowed, dict) else (None, None)
    if mode not in ("auto", "required"):
        raise _invalid(f"{where}.mode", "auto or required")
    if not isinstance(tools, list) or not tools:
        raise _invalid(f"{where}.tools", "a list with at least one function")
    listed = [_function(tool, names, nested, f"{where}.tools[{place}]") for place, tool in enumerate(tools)]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}


def _function(value: JSON, names: set[str], nested: str, where: str) -> JSON:
    given = value if isinstance(value, dict) and value.get("type") == "function" else {}
    function = given.get(nested) if nested else given
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or name not in names:
        raise _invalid(where, "one of the functions in `tools`")
    return cast(JSON, {"type": "function", "function": {"name": name}})
