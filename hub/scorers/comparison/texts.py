"""Helpers of scorers that compare text: targets, normalization and quoting."""

import re
import unicodedata

from hub import extraction
from hub.scorers.base import Submission

SHOWN = 200  # characters of an answer that a reason quotes
PATTERN_TIMEOUT_S = 2.0  # limit of a search for a pattern of a bundle in a text of a model


# Characters that models and editors write in place of plain ones, and that NFKC keeps.
_PLAIN = str.maketrans(dict.fromkeys("‘’‛′", "'") | dict.fromkeys("“”„‟", '"') | dict.fromkeys("‐‑‒–−", "-"))
_POWER = re.compile(r"(?<=\d)(?=[⁰¹²³⁴-⁹⁺⁻])")  # 5² is not 52; a unit such as m² may be written as m2
# A part in bold, not the powers in 2**3**2 or the arguments in f(**a, **b).
_BOLD = re.compile(r"(?<![\w)\]*])(?<!\w\()\*\*(?=[^\s*])([^*\n]+)(?<=[^\s*])\*\*(?![\w*])")
_SIGN = re.compile(r"(?<![\w.)\]])-(?=[$€£]?\.?\d)")


def targets(value: object) -> list[str]:
    """Return one or several targets as a list of texts."""
    items = value if isinstance(value, list) else [value]
    return [item if isinstance(item, str) else str(item) for item in items if item is not None]


def require_targets(value: object) -> object:
    """Return *value* if it has a target and none is empty, because an empty answer would pass. Raises ValueError."""
    found = targets(value)
    if not found or not all(extraction.clean(target).strip() for target in found):
        raise ValueError("a target is missing or empty; give each case a non-empty text, or the rule a `target`")
    return value


def quoted(text: str) -> str:
    """Return *text* for a reason: quoted, on one line, shortened."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= SHOWN else flat[: SHOWN - 1] + "…")


def compared_text(submission: Submission, extract: str) -> str:
    """Return the part of the answer to compare: `answer` (what is marked as final, else all of it) or `whole`."""
    text = extraction.answer_text(submission.text)
    if extract == "answer":
        return (extraction.final_answer(submission.text) or text).strip()
    return text


def without_emphasis(text: str) -> str:
    """Return *text* without the marks around parts in bold."""
    return _BOLD.sub(r"\1", text)


def normalized(text: str, *, ignore_case: bool, ignore_punctuation: bool) -> str:
    """Return *text* normalized: Unicode NFKC, plain quotes and hyphens, single spaces, optionally without case and
    punctuation. Invisible characters are removed. The sign of a number is no punctuation; a text of punctuation
    alone stays.
    """
    text = unicodedata.normalize("NFKC", _POWER.sub("^", extraction.clean(text))).translate(_PLAIN)
    if ignore_punctuation and any(map(str.isalnum, text)):
        text = _SIGN.sub("−", text)
        text = "".join(" " if unicodedata.category(c).startswith("P") else c for c in text)
    if ignore_case:
        text = text.casefold()
    return re.sub(r"\s+", " ", text).strip()
