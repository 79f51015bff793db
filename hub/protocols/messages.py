"""Types of JSON values, chat messages and tools; text, tool calls, prompt and response of a conversation."""

import json
from collections.abc import Mapping, Sequence
from typing import Literal, Required, TypedDict, cast

from hub.extraction.normalization import without_reasoning

# A JSON value: None, bool, int, float, str, or a list or dict of these. Narrow it with isinstance before use.
JSON = object


class ContentPart(TypedDict, total=False):
    """Part of a message's content."""

    type: Required[str]
    text: str


class FunctionCall(TypedDict):
    """Function that a tool call names. `arguments` is JSON text, as the model wrote it."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """Call of a tool by the model."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class Message(TypedDict, total=False):
    """Message of chat completions. Messages of models may have further keys and wrong types; see `plain_message`."""

    role: Required[Literal["system", "developer", "user", "assistant", "tool"]]
    content: str | list[ContentPart] | None
    name: str
    tool_calls: list[ToolCall]
    tool_call_id: str
    reasoning_content: str


class FunctionSchema(TypedDict):
    """Function that a model may call. `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, JSON]


class Tool(TypedDict):
    """Tool that is offered to a model."""

    type: Literal["function"]
    function: FunctionSchema


# ---- text ------------------------------------------------------------------------------------------------------------


def text_of(message: Mapping[str, object]) -> str:
    """Return the text of a message whose content is text, a list of parts, or nothing.

    Parts are joined without a separator, as chat templates join them.
    """
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") if isinstance(part, dict) else str(part) for part in content)
    return content if isinstance(content, str) else ""


def parts_without_text(message: Mapping[str, object]) -> list[dict[str, JSON]]:
    """Return the parts of a message's content that are no text, such as images."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and "text" not in part]


def call_text(call: Mapping[str, object]) -> str:
    """Return a tool call as it is shown and quoted: `name(arguments)`, the arguments as the model wrote them."""
    function = _function(call)
    return f"{function.get('name')}({function.get('arguments')})"


# ---- prompt and answer -----------------------------------------------------------------------------------------------


def count_prompt_messages(messages: Sequence[Message], recorded: int | None) -> int:
    """Return how many messages there are before the model's first: *recorded*, or those before the first assistant's.

    Assistant messages before the model's first are examples in the prompt.
    """
    if recorded is not None:
        return recorded
    return next((i for i, message in enumerate(messages) if message.get("role") == "assistant"), len(messages))


def up_to_last_answer(messages: Sequence[Message]) -> list[Message]:
    """Return the messages up to the last answer. What the environment said after it is not answered any more."""
    count = max((i + 1 for i, message in enumerate(messages) if message.get("role") == "assistant"), default=0)
    return list(messages[:count])


def is_empty_answer(message: Message) -> bool:
    """Return whether a message of the model has no text beside its reasoning, no calls, and no parts such as images."""
    if message.get("role") != "assistant" or calls_of(message) or parts_without_text(message):
        return False
    return not text_of(remove_reasoning(message)).strip()


def count_common_messages(first: Sequence[Message], second: Sequence[Message]) -> int:
    """Return how many messages two conversations share before they differ, up to an answer.

    Both conversations continue with an assistant message there. If they differ first in a message of a user or a
    tool, the answer before it is not counted. 0 if they differ before the first answer, or begin with it.
    """
    length = 0
    for i, (one, other) in enumerate(zip(first, second, strict=False)):
        if one.get("role") == "assistant" == other.get("role"):
            length = i
        if get_comparable_content(one) != get_comparable_content(other):
            break
    return length


def get_comparable_content(message: Message) -> list[JSON]:
    """Return what is compared: role, text without reasoning, calls without ids, and parts such as images."""
    calls = [[_function(call).get("name"), parsed_arguments(call)] for call in calls_of(message)]
    return [message.get("role"), text_of(remove_reasoning(message)), calls, parts_without_text(message)]


# ---- shapes ----------------------------------------------------------------------------------------------------------


def plain_message(message: Message) -> Message:
    """Return a message with only the keys of chat completions, and the arguments of its calls as JSON text.

    Providers add keys of their own. Some give arguments as an object, or as an empty text if there are none. A `name`
    or `tool_call_id` that is no text is left out, because a column of an export has one type.
    """
    plain: Message = {"role": message["role"]}
    if "content" in message:
        plain["content"] = message["content"]
    if isinstance(message.get("name"), str):
        plain["name"] = message["name"]
    if isinstance(message.get("tool_call_id"), str):
        plain["tool_call_id"] = message["tool_call_id"]
    calls = [_plain_call(call) for call in calls_of(message)]
    if calls:
        plain["tool_calls"] = calls
    return plain


def plain_message_with_reasoning(message: Message) -> Message:
    """Return a message as `plain_message` does, with `reasoning_content` if its model sent reasoning beside the text.

    Some endpoints name this field `reasoning`.
    """
    plain = plain_message(message)
    if message["role"] == "assistant":
        sent = cast(Mapping[str, JSON], message)
        found = [sent[key] for key in ("reasoning_content", "reasoning") if sent.get(key)]
        if found and isinstance(found[0], str):
            plain["reasoning_content"] = found[0]
    return plain


def calls_of(message: Mapping[str, object]) -> list[dict[str, JSON]]:
    """Return the tool calls of a message as the model wrote them; other values than objects become empty calls."""
    calls = message.get("tool_calls") or []
    return [call if isinstance(call, dict) else {} for call in (calls if isinstance(calls, list) else [calls])]


def is_complete_call(call: object) -> bool:
    """Return whether *call* names a function and has its arguments as text."""
    function = call.get("function") if isinstance(call, dict) else None
    return (
        isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), str)
    )


def _function(call: Mapping[str, object]) -> dict[str, JSON]:
    function = call.get("function")
    return function if isinstance(function, dict) else {}


def _plain_call(call: Mapping[str, object]) -> ToolCall:
    function = _function(call)
    arguments = function.get("arguments")
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        arguments = "{}"
    elif not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    plain = {
        "id": call.get("id"),
        "type": call.get("type") or "function",
        "function": {"name": function.get("name"), "arguments": arguments},
    }
    return cast(ToolCall, plain)


def tools_text(tools: Sequence[Tool] | None) -> str | None:
    """Return tools as JSON text, None if they are not known.

    Parameters of tools are schemas of any shape, which typed columns of a dataset cannot store otherwise.
    """
    return None if tools is None else json.dumps(tools, ensure_ascii=False)


def parsed_arguments(call: Mapping[str, object]) -> JSON:
    """Return the arguments of a call as an object; arguments that are not JSON, a mistake of the model, as text."""
    arguments = _function(call).get("arguments")
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def exported_arguments(call: Mapping[str, object]) -> JSON:
    """Return the arguments of a call as `parsed_arguments` does, but as text if they contain NaN or infinities.

    Python reads these, but they are no JSON, and a file with them is invalid.
    """
    arguments = parsed_arguments(call)
    try:
        json.dumps(arguments, allow_nan=False)
    except (ValueError, RecursionError):
        return _function(call).get("arguments")
    return arguments


def for_chat_template(message: Message) -> Message:
    """Return a message as chat templates expect it: arguments of tool calls as objects, text parts joined to one text.

    Arguments that are no JSON object, a mistake of the model, stay as they are. So does a content with other parts.
    """
    if isinstance(message.get("content"), list) and not parts_without_text(message):
        message = {**message, "content": text_of(message)}
    calls = []
    for call in calls_of(message):
        arguments = exported_arguments(call)
        if isinstance(arguments, dict):
            call = {**call, "function": {**_function(call), "arguments": arguments}}
        calls.append(call)
    return {**message, "tool_calls": cast(list[ToolCall], calls)} if calls else message


def remove_reasoning(message: Message) -> Message:
    """Return an assistant message without the model's reasoning (`<think>…</think>`); other messages as they are."""
    text = text_of(message)
    if message.get("role") != "assistant" or (answer := without_reasoning(text)) == text.strip("\n"):
        return message
    return {**message, "content": answer}
