"""Constraints on how long a text is: words, sentences, paragraphs, lines, characters."""

import re
import unicodedata
from typing import Annotated

import regex
from pydantic import Field, model_validator

from hub.scorers.constraints.base import IN_WORD, LETTERS, Constraint, Count, Relation, Text, counted, sentences, words
from hub.scorers.constraints.keywords import compared


class Words(Constraint):
    id = "length_constraints:number_words"
    summary = "The text has a number of words."
    num_words: Count
    relation: Relation = "at least"

    def problem(self, text: str) -> str:
        return counted("words", len(words(text)), self.relation, self.num_words)


class Sentences(Constraint):
    id = "length_constraints:number_sentences"
    summary = "The text has a number of sentences."
    num_sentences: Count
    relation: Relation = "at least"

    def problem(self, text: str) -> str:
        return counted("sentences", len(sentences(text)), self.relation, self.num_sentences)


_BOLD_ITALICS = re.compile(r"(?<!\*)\*\*\*(?=[^\s*])([^*\n]*[^\s*])\*\*\*(?!\*)")


class Paragraphs(Constraint):
    id = "length_constraints:number_paragraphs"
    summary = "The text has exactly this number of paragraphs, separated by the Markdown divider ***."
    num_paragraphs: Count

    def problem(self, text: str) -> str:
        parts = re.split(r"\s?\*\*\*\s?", self.without_emphasis(text))
        if any(not part.strip() for part in parts[1:-1]):
            return "between two dividers there is no paragraph"
        return counted("paragraphs", sum(1 for part in parts if part.strip()), "exactly", self.num_paragraphs)

    def without_emphasis(self, text: str) -> str:
        """Return *text* with its passages in bold italics, `***Note:***`, without their asterisks."""
        return _BOLD_ITALICS.sub(r"\1", text)


def _bare(word: str) -> str:
    """Return *word* as it is compared, without apostrophes, hyphens and emphasis at its ends: _Hello_, 'Twas."""
    return compared(word).strip("'-_")


_FIRST_WORD = regex.compile(rf"[{LETTERS}_'’-][{IN_WORD}_'’-]*")


class NthParagraph(Constraint):
    id = "length_constraints:nth_paragraph_first_word"
    summary = "The text has exactly this number of paragraphs, separated by blank lines; one begins with a given word."
    num_paragraphs: Annotated[int, Field(ge=1)]
    nth_paragraph: Annotated[int, Field(ge=1)]
    first_word: Text

    @model_validator(mode="after")
    def _exists(self) -> "NthParagraph":
        if self.nth_paragraph > self.num_paragraphs:
            raise ValueError(
                f"nth_paragraph is {self.nth_paragraph}, but there are only {self.num_paragraphs} paragraphs"
            )
        return self

    def problem(self, text: str) -> str:
        parts = [part.strip() for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]
        if len(parts) != self.num_paragraphs:
            return counted("paragraphs", len(parts), "exactly", self.num_paragraphs)
        first = _FIRST_WORD.search(parts[self.nth_paragraph - 1])
        said = first[0] if first else ""
        if _bare(said) == _bare(self.first_word):
            return ""
        return f"paragraph {self.nth_paragraph} begins with {said!r}, not {self.first_word!r}"


class Characters(Constraint):
    id = "length_constraints:number_characters"
    summary = "The text has a number of characters, without outer white space."
    in_ifeval = False
    num_characters: Count
    relation: Relation = "at most"

    def problem(self, text: str) -> str:
        count = len(unicodedata.normalize("NFC", text.strip()))
        return counted("characters", count, self.relation, self.num_characters)


class Lines(Constraint):
    id = "length_constraints:number_lines"
    summary = "The text has a number of non-blank lines."
    in_ifeval = False
    num_lines: Count
    relation: Relation = "exactly"

    def problem(self, text: str) -> str:
        return counted("lines", sum(1 for line in text.split("\n") if line.strip()), self.relation, self.num_lines)


# Sentences do not go on after a blank line, or from one item of a list or heading to the next.
_BLOCK = re.compile(r"\n[ \t]*(?=\n|(?:[-*+•]|#{1,6}|\d{1,3}[.)])[ \t])")


class SentenceLength(Constraint):
    id = "length_constraints:sentence_words"
    summary = "No sentence has more than this number of words."
    in_ifeval = False
    max_words: Annotated[int, Field(ge=1)]

    def problem(self, text: str) -> str:
        found = [sentence for block in _BLOCK.split(text) for sentence in sentences(block)]
        longest = max(found, key=lambda sentence: len(words(sentence)), default="")
        count = len(words(longest))
        return "" if count <= self.max_words else f"a sentence has {count} words, more than {self.max_words}"
