"""`trl-conversational`: TRL's conversational preference format, each part a list of messages.

Arguments of tool calls are objects there, as chat templates expect them; models write them as JSON text.
"""

import json
from collections.abc import Iterator
from typing import Any

from hub.protocols.calls import JSON, Message
from preferences.exporters.base import Exporter, completion_of, prompt_of, sides
from preferences.models import Preference


class TrlConversational(Exporter):
    name = "trl-conversational"
    summary = "TRL, conversational: prompt, chosen and rejected as lists of messages"

    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        chosen, rejected = sides(preference)
        parts = {"prompt": prompt_of(chosen), "chosen": completion_of(chosen), "rejected": completion_of(rejected)}
        yield {name: [_templated(message) for message in messages] for name, messages in parts.items()}


def _templated(message: Message) -> Message:
    calls = message.get("tool_calls")
    return {**message, "tool_calls": [_called(call) for call in calls]} if calls else message


def _called(call: dict[str, Any]) -> dict[str, Any]:
    """*call* with its arguments as an object; arguments that are none, a model's mistake, stay text."""
    function = call.get("function") or {}
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except ValueError:
        return call
    return {**call, "function": {**function, "arguments": arguments}} if isinstance(arguments, dict) else call
