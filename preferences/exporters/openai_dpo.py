"""`openai-dpo`: OpenAI's preference fine-tuning format, with one assistant message on each side.

The prompt may be a conversation with tool calls, and `tools` stand beside it. Both sides are text.
"""

from collections.abc import Iterator

from hub.protocols.messages import JSON, calls_of
from preferences.exporters.base import CannotHold, Exporter, completion_text, sides, tools_of
from preferences.models import Preference


class OpenAiDpo(Exporter):
    name = "openai-dpo"
    summary = "OpenAI preference fine-tuning: input, preferred_output and non_preferred_output"

    names_tools = True

    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        both, tools = sides(preference), tools_of(preference)
        if not tools and any(calls_of(message) for message in both.prompt):
            raise CannotHold("a prompt with calls of tools that are not stored with the environment")
        texts = [completion_text(both.chosen), completion_text(both.rejected)]
        if not all(texts):
            raise CannotHold("an empty answer, which OpenAI refuses")
        preferred, other = ([{"role": "assistant", "content": text}] for text in texts)
        yield {
            "input": {"messages": both.prompt, **({"tools": tools} if tools else {})},
            "preferred_output": preferred,
            "non_preferred_output": other,
        }
