"""`openai-dpo`: OpenAI's preference fine-tuning format, with one assistant message on each side.

The prompt may be a conversation with tool calls, and `tools` are a separate key. Both sides are text.
"""

from collections.abc import Iterator

from hub.protocols.messages import calls_of
from preferences.exporters.formats.base import PreferenceFormat, completion_text, tools_of, training_sides
from preferences.models import Preference
from runs.exports.protocol import JSONObject, LeftOut


class OpenAiDpo(PreferenceFormat):
    name = "openai-dpo"
    summary = "OpenAI preference fine-tuning: input, preferred_output and non_preferred_output"

    needs_tools = True

    def rows(self, item: Preference) -> Iterator[JSONObject]:
        sides, tools = training_sides(item), tools_of(item)
        if not tools and any(calls_of(message) for message in sides.prompt):
            raise LeftOut("a prompt with calls of tools that are not stored with the environment")
        texts = [completion_text(sides.chosen), completion_text(sides.rejected)]
        if not all(text.strip() for text in texts):
            raise LeftOut("an empty answer, which OpenAI does not accept")
        preferred, other = ([{"role": "assistant", "content": text}] for text in texts)
        yield {
            "input": {"messages": sides.prompt, **({"tools": tools} if tools else {})},
            "preferred_output": preferred,
            "non_preferred_output": other,
        }
