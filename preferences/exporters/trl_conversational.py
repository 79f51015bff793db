"""`trl-conversational`: TRL's conversational preference format, each part a list of messages.

Arguments of tool calls are objects there, as chat templates expect them; models write them as JSON text. `tools` is
JSON text, which TRL reads: parameters of tools are schemas of any shape, and columns of a data set have one.
"""

from collections.abc import Iterator

from hub.protocols.messages import JSON, tools_text, with_parsed_arguments
from preferences.exporters.base import Exporter, sides, tools_of
from preferences.models import Preference


class TrlConversational(Exporter):
    name = "trl-conversational"
    summary = "TRL, conversational: prompt, chosen and rejected as lists of messages, and tools"

    names_tools = True

    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        both, tools = sides(preference), tools_of(preference)
        parts = {"prompt": both.prompt, "chosen": both.chosen, "rejected": both.rejected}
        row: dict[str, JSON] = {name: [with_parsed_arguments(m) for m in messages] for name, messages in parts.items()}
        yield {**row, "tools": tools_text(tools) if tools else None}
