"""The options of a question, found in a text by their words or numbers."""

import functools
import re
from collections.abc import Callable, Iterator, Sequence

from hub.extraction.choices.phrases import (
    CLAUSE,
    DENIAL,
    LEADS_TO,
    LIST_NUMBER,
    MONEY,
    SAID_RIGHT,
    SAID_WRONG,
    SENTENCE_END,
)
from hub.extraction.markup import strip_markup
from hub.extraction.numeric.answers import read_number
from hub.extraction.numeric.number_words import words_to_digits
from hub.extraction.numeric.plain_text import plain
from hub.extraction.numeric.quantities import find_numbers, quantities

SHORT_TEXT = 200  # characters of a text in which an option mentioned anywhere counts as the answer
# An option about several others: "All of the above", "Both A and C", "A, B and D".
_COMBINES = re.compile(
    r"\s*(?:all|both)\b[^.]{0,40}\b(?:above|these|them|options|answers|choices|statements)\b|\s*(?:all|both)\W*\Z",
    re.IGNORECASE,
)
# Before and after an option that a sentence gives as a value: "the capital is Paris, which …".
_GIVES = (
    r"(?:(?<!\w)(?:is|are|was|were|must be|equals?|gives?|makes?|by|ist|sind|war|est|es|è|é)\s+"
    r"(?:(?:the|an?|called|named)\s+)?|=\s*)[\"'“(]{0,2}"
)
_GIVEN_END = r"(?=[\"'”)]{0,2}\s*(?:$|[,;.!(–—]|-\s|(?:which|who|because|since|as|although|though|while|whereas)\b))"
# After that, words that may give another value: "It is Paris, but …".
_CONTRAST = re.compile(r"\b(?:but|however|actually|really|or|no|and (?:the|it|that))\b|\?")
_CONCLUDES = re.compile(rf"\W*{LEADS_TO}(?!\w)", re.IGNORECASE)
# What a sentence only concedes: "It is bad, although the end is good", "While there are flaws, it is good".
_CONCESSION = re.compile(
    r"(?<=\w)[,;]?\s(?:although|even\sthough|though|despite|in\sspite\sof)\b.*"
    r"|^\W*(?:although|even\sthough|though|while|despite|in\sspite\sof)\b[^,]*,",
    re.IGNORECASE | re.DOTALL,
)
_SHORTEST_OPTION = 2  # minimal length of an option that is searched for in text: "a" occurs everywhere


class OptionReader:
    """Reader of the options of one question in a text."""

    def __init__(self, labels: Sequence[str], choices: Sequence[str]) -> None:
        self._options = list(zip(labels, choices, strict=False))

    @functools.cached_property
    def distinct(self) -> list[tuple[str, str]]:
        """The labels and texts of the options that do not begin the text of another option."""
        return [
            (label, option)
            for label, option in self._options
            if len(option) >= _SHORTEST_OPTION and sum(other.startswith(option) for _, other in self._options) == 1
        ]

    @functools.cached_property
    def combining(self) -> set[str]:
        """The labels of the options about several others: "All of the above", "Both A and C"."""
        any_ = "|".join(re.escape(label) for label, _ in self._options)
        labels = re.compile(rf"(?i:\s*both\s)?\W*(?:{any_})(?:\W+(?i:and\W+)?(?:{any_}))+(?!\w)")
        return {label for label, option in self._options if _COMBINES.match(option) or labels.match(option)}

    @functools.cached_property
    def are_comments(self) -> bool:
        """Whether an option is a word that comments on other options, such as "True" or "incorrect"."""
        return any(re.match(rf"{SAID_RIGHT}|{SAID_WRONG}", option.strip()) for _, option in self._options)

    @functools.cached_property
    def _sentence_end(self) -> re.Pattern[str]:
        """Pattern of the end of a sentence (group `end`), or of an option that contains one, such as "Dr. Seuss"."""
        options = [option.strip() for _, option in self._options if SENTENCE_END.search(option.strip())]
        quoted = map(re.escape, sorted(options, key=len, reverse=True))
        return re.compile("|".join([*quoted, f"(?P<end>{SENTENCE_END.pattern})"]), re.IGNORECASE)

    def sentences(self, text: str) -> Iterator[str]:
        """Yield the sentences and lines of *text*. None ends within an option such as "Dr. Seuss" or "U.S. Steel"."""
        start = 0
        for match in self._sentence_end.finditer(text):
            if match["end"] is not None:
                yield text[start : match.start()]
                start = match.end()
        yield text[start:]

    def without_texts(self, text: str) -> str:
        """Return *text* with labels alone in place of labels with the text of their option: "A. Paris", "A (Paris)"."""
        for label, option in self.distinct:
            if option not in text:
                continue  # before a pattern is compiled, which takes longer than all the rest
            label, option = re.escape(label), re.escape(option)
            text = re.sub(
                rf"(?<![\w'’])({label})(?:[)\].:]{{1,2}}[ ]{{1,2}}{option}|[ ][-–—][ ]{option}|[ ]\({option}\))(?!\w)",
                r"\1)",
                text,
            )
        return text

    def with_labels(self, text: str) -> str:
        """Return *text* with labels in place of the texts of options: "A is correct" for "Paris is correct"."""
        folded = text.casefold()
        by_text = {option.casefold(): label for label, option in self.distinct if option.casefold() in folded}
        if not by_text:
            return text
        texts = "|".join(map(re.escape, sorted(by_text, key=len, reverse=True)))
        return re.sub(
            rf"(?<![\w'’-])(?<!\d[.,/])(?:{texts})(?!\w|['’]\w|-\w|[.,/^]\d)",
            lambda match: by_text.get(match[0].casefold(), match[0]),
            text,
            flags=re.IGNORECASE,
        )

    def lists_several_options(self, text: str) -> bool:
        """Return whether each line of *text* consists of an option, and not all of the same one."""
        lines = [LIST_NUMBER.sub("", line) for line in text.split("\n") if line.strip()]
        found = {self.label_of_equal_option(strip_markup(line.strip(" -*•")), flatten, 2) for line in lines}
        return len(found) > 1 and None not in found

    def label_by_number(self, sentence: str) -> str | None:
        """Return the one option whose number *sentence* gives, in digits or words: "eight dollars" is "$8"."""
        found = [(label, option, quantities(option)) for label, option in self._options]
        if (
            not found
            or any(len(amounts) != 1 for _, _, amounts in found)
            or DENIAL.search(sentence)
            or len(sentence) > SHORT_TEXT
        ):
            return None
        with_digits = words_to_digits(sentence)
        for sign, names in MONEY.items():
            with_digits = re.sub(
                rf"(?<![\w.,$€£])(\d[\d.,]*)\s(?:{names})\b", rf"{sign}\1", with_digits, flags=re.IGNORECASE
            )
        if read_number(with_digits).several:
            return None
        text = plain(with_digits)
        labels: set[str] = set()
        for label, option, amounts in found:
            sign = next((sign for sign in MONEY if sign in option), "")
            unit = re.search(r"[^\W\d_]+", option)
            for item in find_numbers(text):
                after = text[item.end :].lstrip(" -°").casefold()
                measured = (
                    sign in text[item.start : item.end]
                    if sign
                    else not unit or after.startswith(unit[0].casefold()[:3])
                )
                if measured and item.quantity.agrees(amounts[0]):
                    labels.add(label)
        return labels.pop() if len(labels) == 1 else None

    def label_of_equal_option(self, text: str, form: Callable[[str], str], least: int) -> str | None:
        """Return the only option equal to *text* after *form*, if at least *least* characters remain.

        Of options with the same text, it is the first.
        """
        text = form(text)
        equal = [(label, option) for label, option in self._options if len(text) >= least and form(option) == text]
        return equal[0][0] if len({option for _, option in equal}) == 1 else None

    def label_by_words(self, text: str) -> str | None:
        """Return the only option quoted in *text* and not denied; words within a longer option do not count."""
        labels = self._labels_by_words(text)
        return labels.pop() if len(labels) == 1 else None

    def label_by_sentences(self, sentences: Sequence[str], *, all_of_them: bool) -> str | None:
        """Return the option that *sentences* name: "The capital is Paris. Rome is in Italy." names Paris.

        If they mention several, it is the one that the last sentence concludes ("So it is Rome."), or else the only one
        that a sentence gives as a value: "the capital is Paris", but not "Paris is larger". Of several values that are
        numbers, the last one counts, because calculations give intermediate ones.

        Unless the sentences are *all_of_them*, an option that is only mentioned counts in the last one alone.
        """
        sentences = [self._without_concession(sentence) for sentence in sentences]
        given = [label for label in map(self._given_label, sentences) if label]
        denied: set[str] = set().union(*map(self._denied_labels, sentences))
        mentioned = [self._labels_by_words(sentence) - denied for sentence in sentences]
        named = [labels for labels in mentioned if labels]
        if not named:
            return None
        if len(set.union(*named)) == 1:
            return named[0].pop() if all_of_them or given or mentioned[-1] else None
        if mentioned[-1] and _CONCLUDES.match(sentences[-1]):
            return self._given_label(sentences[-1]) or (mentioned[-1].pop() if len(mentioned[-1]) == 1 else None)
        if len(set(given)) == 1 or (given and self._are_numbers):
            return given[-1]
        return named[-1].pop() if self._are_numbers and not given and len(named[-1]) == 1 else None

    @functools.cached_property
    def _are_numbers(self) -> bool:
        return all(len(quantities(option)) == 1 for _, option in self._options)

    def _given_label(self, sentence: str) -> str | None:
        """Return the only option that *sentence* gives as a value: "it is Paris, which is larger than Rome"."""
        flat = flatten(sentence)
        found = {
            label
            for label in self._labels_by_words(sentence)
            for option in [flatten(dict(self._options)[label])]
            for match in re.finditer(rf"{_GIVES}{re.escape(option)}{_GIVEN_END}", flat)
            if not _CONTRAST.search(flat, match.end())
        }
        return found.pop() if len(found) == 1 else None

    def _without_concession(self, sentence: str) -> str:
        """Return *sentence* without what it only concedes, if the rest names an option."""
        rest = _CONCESSION.sub("", sentence)
        return rest if rest != sentence and self._labels_by_words(rest) else sentence

    def _denies(self, flat: str) -> bool:
        """Return whether the flattened text *flat* denies something, apart from options such as "None of these"."""
        own = [flatten(option) for _, option in self._options if DENIAL.search(option)]
        return DENIAL.search(functools.reduce(lambda rest, option: rest.replace(option, " "), own, flat)) is not None

    def _denied_labels(self, sentence: str) -> set[str]:
        """Return the only option that a clause of *sentence* with a denial names, in a set: "so it is not London"."""
        clauses = [flatten(clause) for clause in CLAUSE.split(sentence)] if DENIAL.search(sentence) else []
        denied = [clause for clause in clauses if self._denies(clause)]
        named = [{label for label, option in self._options if _is_quoted(flatten(option), clause)} for clause in denied]
        return {label for labels in named if len(labels) == 1 for label in labels}

    def _labels_by_words(self, text: str) -> set[str]:
        """Return the options quoted in *text* and not denied; words within a longer option do not count."""
        flat = flatten(text)
        if self._denies(flat):
            flat = flatten(without_denials(text))
        found = [(label, flatten(option)) for label, option in self._options if _is_quoted(flatten(option), flat)]
        return {
            label
            for label, option in found
            if not any(option != other and _is_quoted(option, other) for _, other in found)
        }


def without_denials(text: str) -> str:
    """Return *text* without clauses that deny something: "the whale, not the shark" gives "the whale"."""
    if not DENIAL.search(text):
        return text
    return " ".join(clause for clause in CLAUSE.split(text) if not DENIAL.search(clause))


def _is_quoted(option: str, text: str) -> bool:
    """Return whether *text* contains the words of *option*."""
    if len(option) < _SHORTEST_OPTION:
        return False
    # "5 m" is not within "2.5 m" and "-5 m", "10" not within "10.5" and "10/3".
    before = r"(?<![\w-])(?<!\d[.,/])" if option[0].isdigit() else r"(?<!\w)"
    after = r"(?!\w|[.,/^]?\d|\s?/\s?\w)" if option[-1].isalnum() else r"(?!\w)"
    article = r"(?!\s+\w)" if option == "no" else ""  # "no" before a noun does not answer
    return re.search(rf"{before}{re.escape(option)}{after}{article}", text) is not None


def flatten(text: str) -> str:
    """Return *text* in lower case, without emphasis, a pronoun at the beginning and a closing mark."""
    text = re.sub(r"^\s*(?:it|they|he|she)\s+(?=\S+\s+\S)", "", text, flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", re.sub(r"[*`]", "", text)).replace("−", "-").casefold().strip(" .,;:!")


def without_articles(text: str) -> str:
    """Return *text* after `flatten`, without articles: "the rate of the reaction" gives "rate of reaction"."""
    return re.sub(r"\b(?:the|an?)\s", "", flatten(text))


def keep_words(text: str) -> str:
    """Return the words of *text*, without punctuation. The sign of a negative number is a word."""
    text = re.sub(r"(?<![\w)])[-−–](?=[$€£]?\d)", "negative ", text)
    return re.sub(r"[^\w]+", " ", text.casefold()).strip()
