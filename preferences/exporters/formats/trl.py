"""`trl`: TRL's standard preference format, `{"prompt", "chosen", "rejected"}` as texts."""

from collections.abc import Iterator

from preferences.exporters.formats.base import PreferenceFormat, completion_text, prompt_text, training_sides
from preferences.models import Preference
from runs.exports.protocol import JSONObject


class Trl(PreferenceFormat):
    name = "trl"
    summary = "TRL, standard: prompt, chosen and rejected as texts"

    def rows(self, item: Preference) -> Iterator[JSONObject]:
        sides = training_sides(item)
        yield {
            "prompt": prompt_text(sides.prompt),
            "chosen": completion_text(sides.chosen),
            "rejected": completion_text(sides.rejected),
        }
