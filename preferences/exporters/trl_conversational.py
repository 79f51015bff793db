"""`trl-conversational`: TRL's conversational preference format, each part a list of messages."""

from collections.abc import Iterator

from hub.ports import JSON
from preferences.exporters.base import Exporter, completion_of, prompt_of, sides
from preferences.models import Preference


class TrlConversational(Exporter):
    name = "trl-conversational"
    summary = "TRL, conversational: prompt, chosen and rejected as lists of messages"

    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        chosen, rejected = sides(preference)
        yield {"prompt": prompt_of(chosen), "chosen": completion_of(chosen), "rejected": completion_of(rejected)}
