"""Tool calls of models, native or written as text, and the messages that carry their results. No side effects."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from hub import extraction
from hub.common.storable import storable, unstorable_character
from hub.protocols.messages import JSON, Message, Tool, ToolCall, text_of

if TYPE_CHECKING:
    from jsonschema import ValidationError  # imported when a call is checked, because it is slow to import

Protocol = Literal["native", "text"]
MAX_RESULT_CHARS = 50_000  # of one tool message; more would crowd out the conversation
_FENCE = re.compile(r"^[ \t]*```tool_call[ \t]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.M | re.S)
_OPENING_FENCE = re.compile(r"^[ \t]*```tool_call\b", re.M)
_KEYS_OF_A_CALL = ("name", "id", "type")  # besides `arguments`
_RESULT = re.compile(r"^```tool_result\n(.*)\n```$", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCall:
    """One call made by a model.

    If `problem` is set, the arguments could not be read: `arguments` is empty, and `written` is what the model wrote.
    """

    id: str
    name: str
    arguments: Mapping[str, JSON]
    problem: str = ""
    written: str = ""


@dataclass(frozen=True, slots=True)
class CallResult:
    """Result of one call as text for the model."""

    call: ParsedCall
    content: str


# ---- native ----------------------------------------------------------------------------------------------------------


def native_calls(message: Message) -> list[ParsedCall]:
    """Return the calls of an API message, in order. A malformed call becomes a ParsedCall with a `problem`."""
    raw = message.get("tool_calls")
    if not raw:
        return []
    return [_native(item, number) for number, item in enumerate(raw if isinstance(raw, list) else [raw])]


def _native(item: JSON, number: int) -> ParsedCall:
    item = item if isinstance(item, dict) else {}
    function = item.get("function")
    function = function if isinstance(function, dict) else {}
    identity = item.get("id")
    identity = identity if isinstance(identity, str) and identity else f"call_{number}"
    return _parsed_call(identity, str(function.get("name") or ""), function.get("arguments"))


def _parsed_call(identity: str, name: str, raw: JSON) -> ParsedCall:
    arguments, problem = _arguments(raw)
    return ParsedCall(
        id=identity, name=name, arguments=arguments, problem=problem, written=_written(raw) if problem else ""
    )


def _written(raw: JSON) -> str:
    """Return unreadable arguments as text that can be stored and is still unreadable."""
    if isinstance(raw, str):
        return storable(raw)
    try:
        return json.dumps(raw)
    except (TypeError, ValueError, RecursionError):
        return "not JSON"


def _arguments(raw: JSON) -> tuple[dict[str, JSON], str]:
    """Return the arguments as an object, and the problem if they are not one. Missing arguments are an empty object."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}, ""
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError) as error:
            return {}, f"the arguments are not valid JSON ({error}); write one JSON object"
        if raw is None:
            return {}, ""  # some servers send "null" for a tool without parameters
    if not isinstance(raw, dict):
        return {}, f"the arguments must be one JSON object, not {_kind(raw)}"
    if problem := _unfit(raw):
        return {}, f"the arguments {problem}"
    return raw, ""


def _unfit(value: JSON) -> str:
    """Return why *value* cannot be serialized as JSON or stored; "" if it can."""
    try:
        json.dumps(value, allow_nan=False)
        character = unstorable_character(value)
    except (TypeError, ValueError, RecursionError):
        return "contain NaN, an infinity, or are nested too deeply; JSON has none of these"
    if character == "\x00":
        return "contain a NUL character (\\u0000); leave it out"
    return "contain half of a surrogate pair; write whole characters" if character else ""


# ---- text ------------------------------------------------------------------------------------------------------------


def describe_tools(tools: Sequence[Tool]) -> str:
    """Return the instructions on *tools* for a model without native tool calling."""
    functions = [tool["function"] for tool in tools]
    listed = "\n".join(json.dumps(function, ensure_ascii=False) for function in functions)
    return (
        "You can call these tools. Each line is one of them, its parameters as a JSON schema:\n\n"
        f"{listed}\n\n"
        "To call a tool, write a fenced block with one JSON object:\n\n"
        '```tool_call\n{"name": "the_tool", "arguments": {"parameter": "value"}}\n```\n\n'
        "Write one block for each call, then stop: the results come in the next message. "
        "A message without such a block is your answer to the user."
    )


def text_calls(text: str) -> tuple[list[ParsedCall], str]:
    """Return the calls written in *text*, or no calls and the problem if a block cannot be parsed.

    Blocks inside a model's reasoning (`<think>`) are ignored.
    """
    spoken = extraction.without_reasoning(text.replace("\r\n", "\n"))
    blocks = list(_FENCE.finditer(spoken))
    calls: list[ParsedCall] = []
    for number, block in enumerate(blocks, start=1):
        if not block[0].rstrip().endswith("```") or block[0].count("```") < 2:
            return [], f"tool_call block {number} is not closed; end it with a line of three backticks"
        try:
            value = json.loads(block[1])
        except (ValueError, RecursionError) as error:
            return [], f"tool_call block {number} is not valid JSON ({error}); write one object with name and arguments"
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                return [], f'tool_call block {number} must be one object such as {{"name": "tool", "arguments": {{}}}}'
            misplaced = [key for key in item if key not in _KEYS_OF_A_CALL]
            if misplaced and "arguments" not in item:
                return [], f'tool_call block {number} has the key {misplaced[0]!r}; put it under "arguments"'
            calls.append(_parsed_call(f"call_{len(calls)}", item["name"], item.get("arguments")))
    if not calls and _OPENING_FENCE.search(spoken):
        return [], "the tool_call block is empty; put the JSON object on the lines between the two fences"
    return calls, ""


def unreadable_call_message(problem: str) -> Message:
    """Return the user message that reports a text call that cannot be parsed."""
    return {"role": "user", "content": f"No tool was called: {problem}."}


# ---- both ------------------------------------------------------------------------------------------------------------


def result_messages(results: Sequence[CallResult], protocol: Protocol) -> list[Message]:
    """Return the messages that carry *answers* to the model: tool messages, or one user message with a block each."""
    if protocol == "native":
        return [{"role": "tool", "tool_call_id": answer.call.id, "content": answer.content} for answer in results]
    blocks = [
        # One line of JSON each, so that no result can close the fence early.
        f"```tool_result\n{json.dumps({'name': a.call.name, 'content': a.content}, ensure_ascii=False)}\n```"
        for a in results
    ]
    return [{"role": "user", "content": "\n\n".join(blocks)}] if blocks else []


def as_native(messages: Sequence[Message]) -> list[Message]:
    """Return a transcript of the text protocol with calls and results in the API's format, as scorers read them."""
    native: list[Message] = []
    pending: list[ParsedCall] = []
    for message in messages:
        content = message.get("content")
        if message["role"] == "assistant":
            calls, _ = text_calls(text_of(message))
            pending = [_numbered(call, len(native)) for call in calls]
            native.append({**message, "tool_calls": [wire_call(call) for call in pending]} if pending else message)
        elif message["role"] == "user" and pending and isinstance(content, str):
            outcomes = [json.loads(block) for block in _RESULT.findall(content)]
            native += [
                {"role": "tool", "tool_call_id": call.id, "content": outcome["content"]}
                for call, outcome in zip(pending, outcomes, strict=False)
            ]
            pending = []
        else:
            native.append(message)
    return native


def without_tool_results(messages: Sequence[Message]) -> list[Message]:
    """Return a transcript of the text protocol without the user messages that carry results or parsing problems."""
    left: list[Message] = []
    called = False
    for message in messages:
        if message["role"] == "assistant":
            called = any(text_calls(text_of(message)))
        elif called and message["role"] == "user":
            called = False
            continue
        left.append(message)
    return left


def _numbered(call: ParsedCall, turn: int) -> ParsedCall:
    return replace(call, id=f"call_{turn}_{call.id.removeprefix('call_')}")


def wire_call(call: ParsedCall, name: str | None = None) -> ToolCall:
    """Return a call in the API's format, under *name* if one is given. Unreadable arguments stay as they are."""
    arguments = call.written if call.problem else json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": name or call.name, "arguments": arguments}}


def result_text(result: JSON) -> str:
    """Return a tool's result as text for the model: text unchanged, other values as JSON, long ones shortened."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    text = storable(text)
    if len(text) <= MAX_RESULT_CHARS:
        return text
    return f"{text[:MAX_RESULT_CHARS]}\n[cut: {len(text) - MAX_RESULT_CHARS:,} more characters]"


def call_problem(call: ParsedCall, parameters: Mapping[str, Mapping[str, JSON]]) -> str:
    """Return the problem of *call*, "" if it is valid. *parameters* maps each tool's name to its JSON schema."""
    if call.name not in parameters:
        return f"there is no tool {call.name!r}; the tools are {', '.join(parameters)}"
    if call.problem:
        return call.problem
    from jsonschema import Draft202012Validator  # slow to import, and needed by few runs

    errors = sorted(Draft202012Validator(parameters[call.name]).iter_errors(call.arguments), key=lambda e: str(e.path))
    # A schema gives one error for each missing argument, and the explanation of each names all of them.
    return "; ".join(list(dict.fromkeys(_explain(error) for error in errors))[:5])


def _explain(error: "ValidationError") -> str:
    place = ".".join(str(part) for part in error.absolute_path)
    expected = error.validator_value
    if error.validator == "required" and isinstance(expected, list) and isinstance(error.instance, dict):
        missing = [str(name) for name in expected if name not in error.instance]
        return f"missing argument {', '.join(f'{place}.{name}' if place else name for name in missing)}"
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        extra = ", ".join(name for name in error.instance if name not in known)
        return f"unknown argument {extra}; known are {', '.join(known) or 'none'}"
    shown = json.dumps(error.instance, ensure_ascii=False)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    if error.validator == "type":
        types = " or ".join(map(str, expected)) if isinstance(expected, list) else expected
        return f"argument {place} must be {types}, not {shown}"
    if error.validator == "enum" and isinstance(expected, list):
        allowed = ", ".join(json.dumps(value, ensure_ascii=False) for value in expected)
        return f"argument {place} must be one of {allowed}, not {shown}"
    return f"argument {place}: {error.message}"


def _kind(value: JSON) -> str:
    return {str: "text", list: "a list", bool: "a boolean", int: "a number", float: "a number"}.get(type(value), "null")
