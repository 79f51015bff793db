"""What scorers of text share: how targets are given, and how two texts are made comparable."""

import re
import unicodedata
from typing import Any

from hub import extraction
from hub.scorers.base import Submission

SHOWN = 200  # characters of an answer that a reason quotes


def targets(value: Any) -> list[str]:
    """One target or several, as texts."""
    items = value if isinstance(value, list) else [value]
    return [item if isinstance(item, str) else str(item) for item in items if item is not None]


def shown(text: str) -> str:
    """*text* as a reason quotes it: on one line, cut."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= SHOWN else flat[: SHOWN - 1] + "…")


def answer(submission: Submission, extract: str) -> str:
    """The part of the answer that is compared: `answer` (what is marked as final, else all of it) or `whole`."""
    text = extraction.without_reasoning(submission.text)
    if extract == "answer":
        return (extraction.final_answer(submission.text) or text).strip()
    return text.strip()


def folded(text: str, *, ignore_case: bool, ignore_punctuation: bool) -> str:
    """Unicode-normalised, white space folded, case and punctuation taken out where they do not matter."""
    text = unicodedata.normalize("NFKC", text)
    if ignore_punctuation:
        text = "".join(" " if unicodedata.category(c).startswith("P") else c for c in text)
    if ignore_case:
        text = text.casefold()
    return re.sub(r"\s+", " ", text).strip()
