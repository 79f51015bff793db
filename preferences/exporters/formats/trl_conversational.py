"""`trl-conversational`: TRL's conversational preference format, each part a list of messages.

Arguments of tool calls are objects there, as chat templates expect them; models write them as JSON text. `tools` is
JSON text, which TRL reads. The parameters of tools are schemas of different shapes, but a column of a data set has one
type.
"""

from collections.abc import Iterator

from hub.protocols.messages import for_chat_template, tools_text
from preferences.exporters.formats.base import PreferenceFormat, tools_of, training_sides
from preferences.models import Preference
from runs.exports.protocol import JSONObject


class TrlConversational(PreferenceFormat):
    name = "trl-conversational"
    summary = "TRL, conversational: prompt, chosen and rejected as lists of messages, and tools"

    needs_tools = True

    def rows(self, item: Preference) -> Iterator[JSONObject]:
        sides, tools = training_sides(item), tools_of(item)
        parts = {"prompt": sides.prompt, "chosen": sides.chosen, "rejected": sides.rejected}
        row: JSONObject = {name: [for_chat_template(m) for m in messages] for name, messages in parts.items()}
        yield {**row, "tools": tools_text(tools) if tools else None}
