"""`jsonl`: all data of each preference, ties included, one JSON object per line."""

from collections.abc import Iterator

from hub.protocols.messages import JSON, opening, played
from preferences.exporters.base import Exporter, everything
from preferences.models import Preference


class Jsonl(Exporter):
    name = "jsonl"
    summary = "everything, as JSON lines"
    decisive_only = False

    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        first, second = preference.first, preference.second
        prompt = opening(first.messages)
        shared = prompt == opening(second.messages)  # a simulated user may have opened differently; then nothing is
        yield {
            **everything(preference),
            "prompt": prompt if shared else [],
            "first_messages": played(first.messages) if shared else first.messages,
            "second_messages": played(second.messages) if shared else second.messages,
        }
