"""Check of the assistant messages that a trainer sends."""

import json
from typing import cast

from hub.protocols.messages import Message, is_complete_call
from runs.rollouts.errors import RolloutError

MAX_MESSAGE_BYTES = 1024 * 1024


def validate_message(message: object) -> Message:
    """Return *message* as an assistant message of chat completions. Raises RolloutError.

    Calls without an id get that of their results (`native_calls`), so that the transcript connects them.
    """
    if not isinstance(message, dict):
        raise RolloutError('`message` must be an assistant message, such as {"role": "assistant", "content": "…"}.')
    if len(json.dumps(message)) > MAX_MESSAGE_BYTES:
        raise RolloutError(f"`message` is larger than {MAX_MESSAGE_BYTES:,} bytes.")
    content = message.get("content")
    if message.get("role", "assistant") != "assistant":
        raise RolloutError(f"`message.role` must be assistant, not {message['role']!r}.")
    if not isinstance(content, str | None):
        what = ", not a list of parts: join the texts of the parts" if isinstance(content, list) else ""
        raise RolloutError(f"`message.content` must be text or null{what}.")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(is_complete_call(call) for call in calls):
        raise RolloutError("`message.tool_calls` must be a list of {id, type, function: {name, arguments: JSON text}}.")
    if not content and not calls:
        content = content or ""
    if calls:
        message = {**message, "tool_calls": [_with_id(call, number) for number, call in enumerate(calls)]}
    return cast(Message, {**message, "role": "assistant", "content": content})


def _with_id(call: dict[str, object], number: int) -> dict[str, object]:
    identity = call.get("id")
    known = isinstance(identity, str) and identity
    return {**call, "id": identity if known else f"call_{number}", "type": "function"}
