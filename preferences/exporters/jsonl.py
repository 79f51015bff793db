"""`jsonl`: all data of each preference, ties included, one JSON object per line."""

from collections.abc import Iterator

from hub.protocols.messages import opening, played
from preferences.exporters.base import PreferenceFormat
from preferences.exporters.records import preference_record
from preferences.models import Preference
from runs.exports.protocol import JSONObject


class PreferenceJsonl(PreferenceFormat):
    name = "jsonl"
    summary = "all data, as JSON lines"
    decisive_only = False

    def rows(self, item: Preference) -> Iterator[JSONObject]:
        first, second = item.first, item.second
        prompt = opening(first.messages)
        shared = prompt == opening(second.messages)  # not if a simulated user opened them differently
        yield {
            **preference_record(item),
            "prompt": prompt if shared else [],
            "first_messages": played(first.messages) if shared else first.messages,
            "second_messages": played(second.messages) if shared else second.messages,
        }
