"""Helpers of scorers that compare text: targets, normalization and quoting."""

import re
import unicodedata

from hub import extraction
from hub.scorers.base import Submission

SHOWN = 200  # characters of an answer that a reason quotes
PATTERN_TIMEOUT_S = 2.0  # limit of a search for a pattern of a bundle in a text of a model


def targets(value: object) -> list[str]:
    """Return one or several targets as a list of texts."""
    items = value if isinstance(value, list) else [value]
    return [item if isinstance(item, str) else str(item) for item in items if item is not None]


def quoted(text: str) -> str:
    """Return *text* for a reason: quoted, on one line, shortened."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= SHOWN else flat[: SHOWN - 1] + "…")


def compared_text(submission: Submission, extract: str) -> str:
    """Return the part of the answer to compare: `answer` (what is marked as final, else all of it) or `whole`."""
    text = extraction.without_reasoning(submission.text)
    if extract == "answer":
        return (extraction.final_answer(submission.text) or text).strip()
    return text.strip()


def normalized(text: str, *, ignore_case: bool, ignore_punctuation: bool) -> str:
    """Return *text* normalized: Unicode NFKC, single spaces, optionally without case and punctuation."""
    text = unicodedata.normalize("NFKC", text)
    if ignore_punctuation:
        text = "".join(" " if unicodedata.category(c).startswith("P") else c for c in text)
    if ignore_case:
        text = text.casefold()
    return re.sub(r"\s+", " ", text).strip()
