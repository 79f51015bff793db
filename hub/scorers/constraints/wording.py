"""Constraints on case, punctuation, language, beginnings, ends and repetition."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import regex
from pydantic import field_validator

from hub.scorers.constraints.base import IN_WORD, LETTERS, Constraint, Count, Relation, Text, counted
from hub.scorers.constraints.keywords import compared, whole_word

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# ---- language --------------------------------------------------------------------------------------------------------

SURE = 0.7  # calibrated probability above which a text counts as being in a language
UNLIKELY = 20  # if another language is this many times as likely, the text is not in the required one
_READ = 10_000  # characters given to the language detector


@lru_cache(maxsize=1)
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # imports numpy, which few runs need

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def other_language(text: str, language: str) -> str:
    """Return the code of the language that *text* is in if that is not *language*; "" if it may be *language*.

    Deterministic: the model is fixed. A text may be in a language if no other is sure and this one is not unlikely.
    """
    ranked = _identifier().rank(text[:_READ].lower())
    found, probability = ranked[0]
    if found == language:
        return ""
    asked = next((share for code, share in ranked if code == language), 0.0)
    return str(found) if probability >= SURE or probability > UNLIKELY * asked else ""


class ResponseLanguage(Constraint):
    id = "language:response_language"
    summary = "The text is in the language with this ISO 639-1 code."
    language: Text

    @field_validator("language")
    @classmethod
    def _known(cls, value: str) -> str:
        code = value.strip().lower().split("-")[0]
        if code not in _identifier().labels:
            raise ValueError(f"{value!r} is not a known language code; use a code such as en, de or zh")
        return code

    def problem(self, text: str) -> str:
        other = other_language(text, self.language)
        return f"it is in language {other}, not {self.language}" if other else ""


# ---- case ------------------------------------------------------------------------------------------------------------


class EnglishCapital(Constraint):
    id = "change_case:english_capital"
    summary = "The text is English, in capital letters only."

    def problem(self, text: str) -> str:
        if not text.isupper():
            return _first_letter(text, str.islower, "a lower-case")
        other = other_language(text, "en")
        return f"it is in language {other}, not in English" if other else ""


class EnglishLowercase(Constraint):
    id = "change_case:english_lowercase"
    summary = "The text is English, in lower-case letters only."

    def problem(self, text: str) -> str:
        if not text.islower():
            return _first_letter(text, str.isupper, "an upper-case")
        other = other_language(text, "en")
        return f"it is in language {other}, not in English" if other else ""


def _first_letter(text: str, wrong: Callable[[str], bool], kind: str) -> str:
    word = next((word for word in re.findall(r"\w+", text) if any(map(wrong, word))), None)
    return f"{word!r} has {kind} letter" if word else "it has no letters"


# An abbreviation such as U.S. is one word.
_WORD = regex.compile(rf"(?:[{LETTERS}]\.){{2,}}|[{LETTERS}][{IN_WORD}]*(?:[-'’][{LETTERS}][{IN_WORD}]*)*")


class CapitalWords(Constraint):
    id = "change_case:capital_word_frequency"
    summary = "A number of words is in capital letters; a single capital letter is one."
    capital_frequency: Count
    capital_relation: Relation = "at least"

    def problem(self, text: str) -> str:
        found = [word for word in _WORD.findall(text) if word.isupper()]
        return counted("words in capitals", len(found), self.capital_relation, self.capital_frequency)


# ---- punctuation -----------------------------------------------------------------------------------------------------


COMMAS = ",，､、،"  # also those of Chinese, Japanese and Arabic


class NoComma(Constraint):
    id = "punctuation:no_comma"
    summary = "There is no comma."

    def problem(self, text: str) -> str:
        count = sum(map(text.count, COMMAS))
        return f"it has {count} comma{'s' if count > 1 else ''}" if count else ""


class ForbiddenMarks(Constraint):
    id = "punctuation:forbidden_marks"
    summary = "None of these characters occurs."
    in_ifeval = False
    marks: Text

    def problem(self, text: str) -> str:
        found = sorted({mark for mark in self.marks if not mark.isspace() and mark in text})
        return f"it contains {' '.join(found)}" if found else ""


# ---- beginnings and ends ---------------------------------------------------------------------------------------------


class EndChecker(Constraint):
    id = "startend:end_checker"
    summary = "The text ends with the phrase; case and quotation marks are ignored."
    end_phrase: Text

    def problem(self, text: str) -> str:
        said, phrase = (compared(part).strip('" ') for part in (text, self.end_phrase))
        if regex.search(rf"{whole_word(phrase)}\Z", said):
            return ""
        return f"it does not end with {self.end_phrase!r}"


class StartChecker(Constraint):
    id = "startend:start_checker"
    summary = "The text begins with the phrase; case and quotation marks are ignored."
    in_ifeval = False
    start_phrase: Text

    def problem(self, text: str) -> str:
        if regex.match(whole_word(compared(self.start_phrase)), compared(text).strip('"')):
            return ""
        return f"it does not begin with {self.start_phrase!r}"


class Quotation(Constraint):
    id = "startend:quotation"
    summary = "The whole text is in straight double quotation marks."

    def problem(self, text: str) -> str:
        said = text.strip()
        whole = len(said) > 1 and said[0] == said[-1] == '"'
        return "" if whole else "it does not begin and end with a double quotation mark"


# ---- combinations ----------------------------------------------------------------------------------------------------


class RepeatPrompt(Constraint):
    id = "combination:repeat_prompt"
    summary = "The text begins with the request, word for word; case is ignored."
    prompt_to_repeat: Text

    def problem(self, text: str) -> str:
        repeated = compared(text).startswith(compared(self.prompt_to_repeat))
        return "" if repeated else "it does not begin by repeating the request"


class TwoResponses(Constraint):
    id = "combination:two_responses"
    summary = "There are two different responses, separated by six asterisks."

    def problem(self, text: str) -> str:
        parts = text.split("******")
        if any(not part.strip() for part in parts[1:-1]):
            return "between two separators there is no response"
        given = [part.strip() for part in parts if part.strip()]
        if len(given) != 2:
            return counted("responses", len(given), "exactly", 2)
        return "its two responses are the same" if given[0] == given[1] else ""
