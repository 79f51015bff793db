"""`jsonl`: everything that is known of each preference, ties included, one JSON object a line."""

from collections.abc import Iterator

from hub.protocols.calls import JSON
from preferences.exporters.base import Exporter, completion_of, everything, prompt_of
from preferences.models import Preference


class Jsonl(Exporter):
    name = "jsonl"
    summary = "everything, as JSON lines"
    decisive_only = False

    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        first, second = preference.first, preference.second
        prompt = prompt_of(first)
        shared = prompt == prompt_of(second)  # a simulated user may have opened differently; then nothing is
        yield {
            **everything(preference),
            "prompt": prompt if shared else [],
            "first_messages": completion_of(first) if shared else first.messages,
            "second_messages": completion_of(second) if shared else second.messages,
        }
