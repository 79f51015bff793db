"""`kto`: TRL's unpaired format, `{"prompt", "completion", "label"}`; both responses of a "both bad" are bad ones."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from hub.ports import JSON
from preferences.exporters.base import CannotHold, Exporter, Row, completion_text, prompt_text
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

    def settled(self, rows: list[Row], dropped: Counter[str]) -> list[Row]:
        """One line an answer: where three models met, the middle one won once and lost once, and has no one label."""
        labels: dict[tuple[str, str], set[bool]] = defaultdict(set)
        for row in rows:
            labels[_said(row)].add(row.data["label"])
        kept: dict[tuple[str, str], Row] = {}
        for row in rows:
            if len(labels[_said(row)]) > 1:
                dropped["an answer that won one comparison and lost another"] += 1
            elif _said(row) in kept:
                dropped["an answer that is there already, with the same label"] += 1
            else:
                kept[_said(row)] = row
        return list(kept.values())


def _said(row: Row) -> tuple[str, str]:
    return row.data["prompt"], row.data["completion"]
