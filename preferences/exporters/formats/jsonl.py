"""`jsonl`: all data of each preference, ties included, one JSON object per line."""

from collections.abc import Iterator

from hub.protocols.messages import get_prompt_messages, get_response_messages
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
        prompt = get_prompt_messages(first.messages)
        shared = prompt == get_prompt_messages(second.messages)  # not if a simulated user opened them differently
        yield {
            **preference_record(item),
            "prompt": prompt if shared else [],
            "first_messages": get_response_messages(first.messages) if shared else first.messages,
            "second_messages": get_response_messages(second.messages) if shared else second.messages,
        }
