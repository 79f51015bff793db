"""Statements of a final answer, and how strongly each one is marked."""

from dataclasses import dataclass
from enum import IntEnum


class Marker(IntEnum):
    """How strongly an answer is marked as final."""

    DECISION = 0  # "I'll go with …", "… is the answer"
    HEADING_HASHES = 1  # a text after #### on the last line: a heading looks the same
    SENTENCE = 2  # "the answer is …"
    LABEL = 3  # "Answer: …"
    FORMAT = 4  # \boxed{…}, <answer>…</answer>, {"answer": …}, "#### 42"


@dataclass(frozen=True, slots=True)
class Statement:
    """Statement of the final answer. `start` and `end` are its position in the source; `text` is what it states."""

    mark: Marker
    start: int
    end: int
    text: str
