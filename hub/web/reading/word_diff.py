"""Differences between two texts, word by word: as positions, and as HTML for each side."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from django.utils.safestring import SafeString, mark_safe

from hub.web.reading.characters import escaped

MAX_COMPARED = 60_000  # characters of each text on the page
_MAX_STEPS = 2_000_000  # product of the lengths; two random texts of two different words take 0.8 s
_WORDS = re.compile(r"\s+|\w+ ?|[^\w\s] ?")  # line ends are words of their own, so that only they are marked

Spans = list[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Positions of what only one of two texts has, as (start, end) in code points.

    `unit` is what was compared: words; lines of long texts; texts if they have too many lines.
    """

    left: Spans
    right: Spans
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WordDiff:
    """Both texts with marks on what the other lacks. `cut`: only their first MAX_COMPARED characters are shown."""

    left: SafeString
    right: SafeString
    unit: str
    cut: bool


def find_difference(left: str, right: str) -> Difference:
    """Compare two texts by words. Longer texts are compared by lines, so that the time is bounded."""
    unit, a, b = "words", _WORDS.findall(left), _WORDS.findall(right)
    start, end = _common(a, b)
    if _too_long(a, b, start + end):
        unit, a, b = "lines", left.splitlines(keepends=True), right.splitlines(keepends=True)
        start, end = _common(a, b)
        if _too_long(a, b, start + end):
            unit, a, b, start, end = "texts", [left], [right], 0, 0
    offsets_a, offsets_b = _offsets(a), _offsets(b)
    matcher = SequenceMatcher(None, a[start : len(a) - end], b[start : len(b) - end], autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    return Difference(
        left=[(offsets_a[start + i], offsets_a[start + j]) for _, i, j, _, _ in changes if i < j],
        right=[(offsets_b[start + k], offsets_b[start + n]) for _, _, _, k, n in changes if k < n],
        unit=unit,
    )


def word_diff(left: str, right: str) -> WordDiff:
    """Return both texts as HTML in which `<del>` and `<ins>` are what the other lacks."""
    cut = max(len(left), len(right)) > MAX_COMPARED
    left, right = left[:MAX_COMPARED], right[:MAX_COMPARED]
    difference = find_difference(left, right)
    return WordDiff(
        left=_marked("del", left, difference.left),
        right=_marked("ins", right, difference.right),
        unit=difference.unit,
        cut=cut,
    )


def _common(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """Return how many words are equal at the start, and how many of the others at the end."""
    most = min(len(a), len(b))
    start = next((i for i in range(most) if a[i] != b[i]), most)
    end = next((i for i in range(most - start) if a[-1 - i] != b[-1 - i]), most - start)
    return start, end


def _too_long(a: Sequence[str], b: Sequence[str], common: int) -> bool:
    return (len(a) - common) * (len(b) - common) > _MAX_STEPS


def _offsets(words: Sequence[str]) -> list[int]:
    """Return where each word starts, and the length of the text."""
    return list(accumulate(map(len, words), initial=0))


def _marked(tag: str, text: str, spans: Spans) -> SafeString:
    pieces, at = [], 0
    for start, end in spans:
        pieces += [escaped(text[at:start]), f"<{tag}>{escaped(text[start:end])}</{tag}>"]
        at = end
    pieces.append(escaped(text[at:]))
    return mark_safe("".join(pieces))  # noqa: S308 - each piece is escaped
