"""Constraints on words and letters that must or must not occur."""

import re
import unicodedata
from typing import Annotated, ClassVar

import regex
from pydantic import Field, field_validator

from hub.extraction.normalization import UNSPACED
from hub.scorers.comparison.texts import normalized
from hub.scorers.constraints.base import Constraint, Count, Relation, Text, Texts, counted


def compared(text: str) -> str:
    """Return *text* as phrases are looked up in it: without case, line breaks and typographic differences."""
    return normalized(text, ignore_case=True, ignore_punctuation=False)


# Beside one of these, a word is only a part of another word. For `regex`, combining marks are parts of words; variation
# selectors are too, but they end emoji.
_LETTER = rf"[^\W_\ufe00-\ufe0f{UNSPACED}]"


def whole_word(word: str) -> str:
    """Return a pattern of `regex` for *word* as a whole word.

    At an end without a letter, as in C++, anything may follow. In scripts without spaces, words are found within longer
    runs of letters.
    """
    before = rf"(?<!{_LETTER})(?<!{_LETTER}_)" if regex.match(_LETTER, word) else ""
    after = rf"(?!_?{_LETTER})" if regex.search(rf"{_LETTER}\Z", word) else ""
    return f"{before}{regex.escape(word)}{after}"


def occurrences(word: str, text: str) -> int:
    """Return how often *word* occurs in *text*, also within other words and over line breaks."""
    return compared(text).count(compared(word))


class Existence(Constraint):
    id = "keywords:existence"
    summary = "Every keyword occurs; case is ignored."
    keywords: Texts

    def problem(self, text: str) -> str:
        missing = [word for word in self.keywords if not self.count(word, text)]
        return f"it lacks {', '.join(missing)}" if missing else ""

    def count(self, word: str, text: str) -> int:
        return occurrences(word, text)


class Frequency(Constraint):
    id = "keywords:frequency"
    summary = "A keyword occurs a number of times; case is ignored."
    keyword: Text
    frequency: Count
    relation: Relation = "at least"

    def problem(self, text: str) -> str:
        return counted(f"times {self.keyword!r}", self.count(self.keyword, text), self.relation, self.frequency)

    def count(self, word: str, text: str) -> int:
        return occurrences(word, text)


class ForbiddenWords(Constraint):
    id = "keywords:forbidden_words"
    summary = "None of the words occurs as a whole word; case is ignored."
    forbidden_words: Texts

    def problem(self, text: str) -> str:
        text = compared(text)
        found = [word for word in self.forbidden_words if regex.search(whole_word(compared(word)), text)]
        return f"it contains {', '.join(found)}" if found else ""


class LetterFrequency(Constraint):
    id = "keywords:letter_frequency"
    summary = "A letter occurs a number of times; case is ignored."
    letter: Annotated[str, Field(min_length=1, max_length=1)]
    let_frequency: Count
    let_relation: Relation = "at least"

    @field_validator("letter", mode="before")
    @classmethod
    def _bare(cls, value: object) -> object:
        return value.strip() if isinstance(value, str) else value

    def problem(self, text: str) -> str:
        count = unicodedata.normalize("NFC", text.lower()).count(self.letter.lower())
        return counted(f"times the letter {self.letter!r}", count, self.let_relation, self.let_frequency)


class KeywordOrder(Constraint):
    id = "keywords:order"
    summary = "The keywords occur in this order; case is ignored."
    in_ifeval = False
    keywords: Texts

    def problem(self, text: str) -> str:
        text, position = compared(text), 0
        for word in self.keywords:
            found = text.find(compared(word), position)
            if found < 0:
                return f"it lacks {word}" + (" after the keyword before it" if occurrences(word, text) else "")
            position = found + len(compared(word))
        return ""


_BRACKETS = re.compile(r"(?!\[[xX]\])\[([^\[\]\n]*)\](?!\()")  # neither links nor ticked boxes


class Placeholders(Constraint):
    id = "detectable_content:number_placeholders"
    summary = "The text has at least this number of placeholders in square brackets, such as [name]."
    num_placeholders: Count

    def problem(self, text: str) -> str:
        found = [match for match in _BRACKETS.finditer(text) if re.search(r"[^\W\d]", match[1])]
        return counted("placeholders", len(found), "at least", self.num_placeholders)


class Postscript(Constraint):
    id = "detectable_content:postscript"
    summary = "The text has a postscript that begins with the marker, such as P.S. or P.P.S."
    ps: ClassVar[str] = r"(?<!\w)(?<!p\.)(?<!p\.\s)p\.\s?s\."  # P.S., not that of P.P.S.
    postscript_marker: Text = "P.S."

    def problem(self, text: str) -> str:
        marker = self.postscript_marker.strip().lower()
        patterns = {"p.p.s": r"p\.\s?p\.\s?s", "p.p.s.": r"p\.\s?p\.\s?s", "p.s.": self.ps}
        pattern = patterns.get(marker, re.escape(marker))
        return "" if re.search(pattern, text.lower()) else f"it has no postscript marked {self.postscript_marker}"
