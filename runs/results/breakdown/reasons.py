"""Reasons grouped by pattern: reasons that differ only in numbers and quoted values have the same pattern."""

import re
from collections import Counter

GROUPS = 12  # kept for each environment and model
PATTERN_LENGTH = 200
_DISTINCT = 5000  # groups counted at most; later new ones are not counted
_REST = "…"  # at the end of a pattern: any text
_QUOTED = {quote: f"{quote}[^{quote}\\n]{{1,200}}{quote}" for quote in "`\"'"}
_NUMBER = r"-?[0-9]+(?:[.,][0-9]+)*"
# Up to its last digit, so that a number matches in one way only. Otherwise the time for a pattern such as `####` is not
# bounded.
_WHOLE_NUMBER = rf"{_NUMBER}(?![0-9]|[.,][0-9])"
_OPEN = re.compile("|".join([*_QUOTED.values(), _NUMBER]))
_PIECES = re.compile(f"({'|'.join(f'{quote}{_REST}{quote}' for quote in _QUOTED)}|#| )")


def reason_pattern(reason: str) -> str:
    """Return *reason* on one line, with `#` for each number and `"…"` for each quoted value.

    A pattern that ends with `…` stands for all reasons that start like it.
    """
    text = " ".join(reason[: 4 * PATTERN_LENGTH].split())
    text = _OPEN.sub(lambda found: f"{found[0][0]}{_REST}{found[0][0]}" if found[0][0] in _QUOTED else "#", text)
    if len(text) <= PATTERN_LENGTH:
        return text
    return text[: PATTERN_LENGTH - 1].rstrip(f"{_REST}#-`\"' ") + _REST


def pattern_regex(pattern: str) -> str:
    """Return the regular expression that the reasons of *pattern* match, in the syntax of Python and PostgreSQL."""
    is_open = pattern.endswith(_REST)
    pieces = _PIECES.split(" ".join(pattern.rstrip(_REST).split()))  # several `\s+` in a row would match in many ways
    return rf"^\s*{''.join(map(_piece_regex, pieces))}" + ("" if is_open else r"\s*$")


def _piece_regex(piece: str) -> str:
    if piece == "#":
        return rf"(?:#|{_WHOLE_NUMBER})"
    if piece == " ":
        return r"\s+"
    if len(piece) == 3 and piece[1] == _REST and piece[0] in _QUOTED:
        return _QUOTED[piece[0]]
    return re.escape(piece)


class ReasonCounts:
    """Counts of reasons by pattern, in bounded memory."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, reason: str) -> None:
        pattern = reason_pattern(reason)
        if pattern and (pattern in self._counts or len(self._counts) < _DISTINCT):
            self._counts[pattern] += 1

    def most_common(self) -> dict[str, int]:
        """Return the most frequent patterns, the largest count first and equal ones by text."""
        return dict(sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:GROUPS])
