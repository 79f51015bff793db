"""`kto`: TRL's unpaired format, `{"prompt", "completion", "label"}`; both sides of "both bad" get label false."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from hub.protocols.messages import JSON, opening, played
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
                "prompt": prompt_text(opening(response.messages)),
                "completion": completion_text(played(response.messages)),
                "label": preference.chosen == response,
            }
            for response in (preference.first, preference.second)
        ]
        yield from lines

    def settled(self, rows: Callable[[], Iterator[Row]], dropped: Counter[str]) -> Iterator[Row]:
        """Return one row per answer. Answers with both labels (won once, lost once) are left out."""
        labels: dict[bytes, set[bool]] = defaultdict(set)
        for row in rows():
            labels[_said(row)].add(row.data["label"] is True)
        there: set[bytes] = set()
        for row in rows():
            said = _said(row)
            if len(labels[said]) > 1:
                dropped["an answer that won one comparison and lost another"] += 1
            elif said in there:
                dropped["an answer that is there already, with the same label"] += 1
            else:
                there.add(said)
                yield row


def _said(row: Row) -> bytes:
    """Return a digest of prompt and completion."""
    both = json.dumps([row.data["prompt"], row.data["completion"]])
    return hashlib.blake2b(both.encode(), digest_size=16).digest()
