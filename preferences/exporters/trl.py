"""`trl`: TRL's standard preference format, `{"prompt", "chosen", "rejected"}` as texts."""

from collections.abc import Iterator

from hub.protocols.messages import JSON
from preferences.exporters.base import Exporter, completion_text, prompt_text, sides
from preferences.models import Preference


class Trl(Exporter):
    name = "trl"
    summary = "TRL, standard: prompt, chosen and rejected as texts"

    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        both = sides(preference)
        yield {
            "prompt": prompt_text(both.prompt),
            "chosen": completion_text(both.chosen),
            "rejected": completion_text(both.rejected),
        }
