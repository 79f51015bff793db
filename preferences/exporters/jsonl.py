"""`jsonl`: everything that is known of each preference, ties included, one JSON object a line."""

from collections.abc import Iterator

from hub.ports import JSON
from preferences.exporters.base import Exporter, completion_of, everything, prompt_of
from preferences.models import Preference


class Jsonl(Exporter):
    name = "jsonl"
    summary = "everything, as JSON lines"
    decisive_only = False

    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        yield {
            **everything(preference),
            "prompt": prompt_of(preference.first),
            "first_messages": completion_of(preference.first),
            "second_messages": completion_of(preference.second),
        }
