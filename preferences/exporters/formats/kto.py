"""`kto`: TRL's unpaired format, `{"prompt", "completion", "label"}`; both sides of "both bad" get label false."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator

from preferences.exporters.formats.base import (
    PreferenceFormat,
    completion_text,
    prompt_text,
    require_answerable,
    require_content,
    require_same_prompt,
    trainable,
)
from preferences.models import Preference
from runs.exports.protocol import JSONObject, LeftOut, Row


class Kto(PreferenceFormat):
    name = "kto"
    summary = "TRL, unpaired (KTO): prompt, completion and label"
    decisive_only = False

    def rows(self, item: Preference) -> Iterator[JSONObject]:
        if item.verdict == Preference.Verdict.TIE:
            raise LeftOut("a tie, which makes no response good or bad")
        require_same_prompt(item.first, item.second)
        require_answerable(item.first.prompt)
        if item.chosen is not None:
            require_content(trainable(item.chosen.answer))
        yield from [
            {
                "prompt": prompt_text(response.prompt),
                "completion": completion_text(response.answer),
                "label": item.chosen == response,
            }
            for response in (item.first, item.second)
        ]

    def select(
        self, read_rows: Callable[[], Iterator[Row[Preference]]], left_out: Counter[str]
    ) -> Iterator[Row[Preference]]:
        """Return one row per answer. Answers with both labels (won once, lost once) are left out."""
        good: set[bytes] = set()
        bad: set[bytes] = set()
        for row in read_rows():
            (good if row.data["label"] is True else bad).add(_answer_digest(row))
        both = good & bad
        good -= both
        bad -= both
        for row in read_rows():
            answer, missing = _answer_digest(row), good if row.data["label"] is True else bad
            if answer in both:
                left_out["an answer that won one comparison and lost another"] += 1
            elif answer in missing:
                missing.remove(answer)
                yield row
            else:
                left_out["an answer that is already in the file, with the same label"] += 1


def _answer_digest(row: Row[Preference]) -> bytes:
    """Return a digest of prompt and completion."""
    text = json.dumps([row.data["prompt"], row.data["completion"]])
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
