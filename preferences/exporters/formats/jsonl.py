"""`jsonl`: all data of each preference, ties included, one JSON object per line."""

from collections.abc import Iterator

from preferences.exporters.formats.base import PreferenceFormat
from preferences.exporters.records import preference_record
from preferences.models import Preference
from runs.exports.protocol import JSONObject


class PreferenceJsonl(PreferenceFormat):
    name = "jsonl"
    summary = "all data, as JSON lines"
    decisive_only = False

    def rows(self, item: Preference) -> Iterator[JSONObject]:
        first, second = item.first, item.second
        prompt = first.prompt
        shared = prompt == second.prompt  # not if a simulated user opened them differently
        yield {
            **preference_record(item),
            "prompt": prompt if shared else [],
            "first_messages": first.answer if shared else first.messages,
            "second_messages": second.answer if shared else second.messages,
        }
