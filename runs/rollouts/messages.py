"""Check of the assistant messages that a trainer sends."""

import json
from collections.abc import Mapping, Sequence
from itertools import count
from typing import cast

from hub.protocols.messages import Message, is_complete_call
from runs.rollouts.errors import RolloutError

MAX_MESSAGE_BYTES = 1024 * 1024


def validate_message(message: object) -> Message:
    """Return *message* as an assistant message of chat completions. Raises RolloutError.

    Each call gets an id of its own, so that the transcript connects it with its result.
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
        message = {**message, "tool_calls": _with_ids(calls)}
    return cast(Message, {**message, "role": "assistant", "content": content})


def _with_ids(calls: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return *calls* with ids that differ. The n-th call is `call_n`, or the next number that is free, if it has none.

    The ids depend on the message alone, because a step that is sent again must be the same step.
    """
    given = [identity if isinstance(identity := call.get("id"), str) else "" for call in calls]
    used: set[str] = set()
    numbered: list[dict[str, object]] = []
    for number, (call, identity) in enumerate(zip(calls, given, strict=True)):
        if not identity or identity in used:
            candidates = (f"call_{free}" for free in count(number))
            identity = next(name for name in candidates if name not in used and name not in given)
        used.add(identity)
        numbered.append({**call, "id": identity, "type": "function"})
    return numbered
