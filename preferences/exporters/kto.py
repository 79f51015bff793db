"""`kto`: TRL's unpaired format, `{"prompt", "completion", "label"}`; both responses of a "both bad" are bad ones."""

from collections.abc import Iterator

from hub.ports import JSON
from preferences.exporters.base import CannotHold, Exporter, completion_text, prompt_text
from preferences.models import Preference


class Kto(Exporter):
    name = "kto"
    summary = "TRL, unpaired (KTO): prompt, completion and label"
    decisive_only = False

    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        if preference.verdict == Preference.Verdict.TIE:
            raise CannotHold("a tie, which makes no response good or bad")
        lines = [
            {
                "prompt": prompt_text(response),
                "completion": completion_text(response),
                "label": preference.chosen == response,
            }
            for response in (preference.first, preference.second)
        ]
        yield from lines
