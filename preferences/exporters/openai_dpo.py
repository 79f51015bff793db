"""`openai-dpo`: OpenAI's preference fine-tuning format; one assistant message on either side.

`tools` and `parallel_tool_calls` belong to prompts with tools, and those are refused: their calls are more than text.
"""

from collections.abc import Iterator

from hub.protocols.calls import JSON
from preferences.exporters.base import CannotHold, Exporter, completion_text, prompt_of, sides
from preferences.models import Preference


class OpenAiDpo(Exporter):
    name = "openai-dpo"
    summary = "OpenAI preference fine-tuning: input, preferred_output and non_preferred_output"

    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        chosen, rejected = sides(preference)
        texts = [completion_text(chosen), completion_text(rejected)]
        if not all(texts):
            raise CannotHold("an empty answer, which OpenAI refuses")
        preferred, other = ([{"role": "assistant", "content": text}] for text in texts)
        yield {
            "input": {"messages": prompt_of(chosen)},
            "preferred_output": preferred,
            "non_preferred_output": other,
        }
