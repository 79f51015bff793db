"""The value that a clause, a sentence or a statement gives."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hub.extraction.corrections import ALTERNATIVELY, statement_versions
from hub.extraction.numeric.bounds import is_bound, is_inequality, is_limit
from hub.extraction.numeric.links import EQUALS, TOTALS, last_linked, side_value
from hub.extraction.numeric.number_words import words_to_digits
from hub.extraction.numeric.omissions import (
    with_alternatives,
    without_asides,
    without_denied,
    without_details,
    without_other_unit,
    without_parts,
    without_references,
)
from hub.extraction.numeric.plain_text import plain
from hub.extraction.numeric.quantities import OTHER_BASE, Quantity, find_numbers
from hub.extraction.numeric.values import NoValue, Value, differs

# "42 (see eq. 3)" and "5! = 120" go on.
SENTENCE_END = re.compile(
    r"(?<=[.!?])(?!(?<=\b[Ee]q\.)\s+\(?\d)(?!(?<=\d!)\s*[=≈×*/+·-])[*_$\\)]*\s+(?=\S)|(?<=[。！？])"
)
_LONGEST_STATEMENT = 1000  # characters that are read
LONGEST_SENTENCE = 2000  # characters that are read, from its end
MOST_TRIED = 50  # number of statements or sentences that are tried
_NUMBER_AHEAD = r"(?:or|and|maybe|perhaps|possibly|either)?[\s$€£*_\\(]{0,6}(?:[a-z]\w?\s?=\s?)?[$€£]?[-−]?[\d.√\\]"
_EXPLANATION = re.compile(
    r"\b(?:because|since|given|due to|where|which|so that|i\.e\.|e\.g\.|after|when|if|compared to|out of)\b|\s\("
    rf"|[,;]\s+(?!{_NUMBER_AHEAD}|or\b|and\b|maybe\b|perhaps\b|possibly\b)|\.\s|\s[-–—]\s(?=[a-z])",
    re.IGNORECASE,
)
_IS = re.compile(r"=|≈|≃|\\approx\b|\\simeq\b|\b(?:equals?|is|are|gives|makes|comes to|would be)\b", re.IGNORECASE)
_ASSIGNMENTS = re.compile(r"(?:[,;]|\bor\b|\band\b)(?:[\s}]|\\quad\b){0,4}(?:[a-z]\w{0,2}\s?=\s?)", re.IGNORECASE)
# The slash of "x = 2 / y = 3", but not that of a unit: "5 days * $198/day = $990".
_ASSIGNMENT_AND_SLASH = re.compile(r"(\b[a-z]\w{0,2}\s?=\s?-?[\d.]{1,20}\s?)/(?=\s?[a-z]\w{0,2}\s?=)", re.IGNORECASE)
_PLUS_MINUS = re.compile(r"±|\\pm\b|\+/-|\bgive or take\s(?:about |around )?\W{0,3}\d", re.IGNORECASE)
# "5, for he lost 3" gives a reason, and "42, of which 20 are red" a part; "$9 each, for a total of $18" does not.
_REASON = re.compile(
    rf",\s(?:(?:\d{{1,9}}\s)?of\s(?:which|whom)|as|since|because|for(?!\s(?:an?|the)\s(?:\w+\s)?(?:{'|'.join(TOTALS)})\b))\b|\bbecause\b|\s\(?since\b",
    re.IGNORECASE,
)
# "6 is the GCD of 12 and 18": a number and what it is of others.
_DEFINED = re.compile(
    r"\W{0,9}(?:(?:so|thus|therefore|hence),?\s)?[$€£]?-?\d++(?:[.,]\d++)*+[*]{0,2}(?:\s[^\W\d]+)?\s(?:is|are)\sthe\s"
    r"[^\d,;:=]{1,80}\s(?:of|between|to|among)\s(?:(?!\b(?:or|but|so|while|whereas)\b)[^;:=])*",
    re.IGNORECASE,
)
# "may" in small letters; May is a month.
_ALSO_BEFORE = re.compile(
    r"\b(?:could|might|(?-i:may)|maybe|perhaps|possibly|alternatively|depending|otherwise|either)\b", re.IGNORECASE
)
_ALSO_AFTER = re.compile(
    r"\W{0,4}(?:[^\W\d]+\s){0,4}?(?:possible|plausible|acceptable|accepted|valid|defensible|otherwise|too|as well)\b",
    re.IGNORECASE,
)
_TUPLE = re.compile(r"(?<![\w)])[(\[{]\s?[-$\d./]+\s?(?:,\s?[-$\d./]+\s?)+[)\]}]")
_CONDITION = re.compile(r"\b(?:if|assuming|provided|otherwise|supposing)\b", re.IGNORECASE)
_WOULD = re.compile(r"\b(?:would|could|might)\b", re.IGNORECASE)


def statement_value(text: str) -> Value:
    """Return the value of a statement: of its last version if it corrects itself, of its first sentence with one."""
    for version in statement_versions(text[:_LONGEST_STATEMENT]):
        sentences = SENTENCE_END.split(version)
        for i, sentence in enumerate(sentences):
            value = clause_value(sentence)
            if value is None:
                continue
            following = sentences[i + 1] if i + 1 < len(sentences) else ""
            return NoValue.SEVERAL if offers_alternative(following, value) else value
    return None


def offers_alternative(sentence: str, value: Value) -> bool:
    """Return whether *sentence* gives another value beside *value*, introduced by "or", "maybe", "it could be"."""
    if not ALTERNATIVELY.match(sentence):
        return False
    return differs(clause_value(SENTENCE_END.split(sentence, maxsplit=1)[0]), value)


def sentence_value(sentence: str) -> Value:
    """Return the last number of a sentence of prose; SEVERAL if it is one of several alternatives."""
    sentence = sentence[-LONGEST_SENTENCE:]
    versions = statement_versions(sentence)
    version = next((version for version in versions if find_numbers(plain(version))), sentence)
    text = without_references(without_details(plain(without_denied(version))))
    text, other = without_other_unit(text)
    text = without_parts(without_asides(text))
    if _depends(text):
        return NoValue.SEVERAL
    if find_numbers(result := _REASON.split(text, maxsplit=1)[0]):
        text = result
    found = find_numbers(text)
    if found and (is_inequality(text, found[-1]) or is_limit(text)):
        return NoValue.SEVERAL
    if _TUPLE.search(text) or _PLUS_MINUS.search(text):
        return NoValue.SEVERAL
    if len(assignments := _assignments(text)) > 1:
        return _common([side_value(part) for part in assignments])
    if _mentions_another(text):
        return NoValue.SEVERAL
    sides = EQUALS.split(text)
    if len(sides) > 1 and side_value(sides[-1]) is NoValue.FORMULA:
        return last_linked(sides[-2])
    value = last_linked(sides[-1]) or last_linked(text)
    if value is NoValue.SEVERAL and _DEFINED.fullmatch(text):
        return found[0].quantity
    if isinstance(value, Quantity) and other is not None:
        return replace(value, rounded=other)
    if isinstance(value, Quantity) and len(sides) > 1 and isinstance(before := side_value(sides[-2]), Quantity):
        return _exact([before, value])
    return value


def _depends(text: str) -> bool:
    """Return whether the clauses of a sentence give different values for different conditions."""
    if len(_CONDITION.findall(text)) < 2 or not _WOULD.search(text):
        return False
    values = [
        last_linked(clause)
        for clause in re.split(r";|,\s(?:but|and|while|whereas)\b", text)
        if _CONDITION.search(clause)
    ]
    return len(values) > 1 and any(differs(value, values[0]) for value in values[1:])


def clause_value(written: str) -> Value:
    """Return the value of a clause: 5 of "5, since 2 = 2", 42 of "6 * 7 = 42" and "42 = 6 * 7", SEVERAL of "3 or 4"."""
    affirmed = without_denied(written[:_LONGEST_STATEMENT])
    if not any(character.isdigit() for character in affirmed):
        affirmed = words_to_digits(affirmed)
    text = without_details(plain(affirmed))
    text, other = without_other_unit(text)
    text = without_parts(with_alternatives(text))
    found = find_numbers(text)
    if not found:
        return NoValue.FORMULA if OTHER_BASE.search(text) else None
    if is_inequality(text, found[-1]):
        return NoValue.SEVERAL
    if _PLUS_MINUS.search(text):
        return NoValue.SEVERAL
    listed = _TUPLE.search(text)
    if listed and listed.start() <= found[0].start:
        return NoValue.SEVERAL
    if _mentions_another(text):
        return NoValue.SEVERAL
    for clause in (_EXPLANATION.split(text, maxsplit=1)[0], text):
        value = _equation_value(clause)
        if value is not None:
            return replace(value, rounded=other) if other is not None and isinstance(value, Quantity) else value
    return NoValue.SEVERAL if any(is_bound(text, item) for item in found) else None


def _mentions_another(text: str) -> bool:
    """Return whether a sentence mentions a second value as possible: "18, although 19 is possible"."""
    found = find_numbers(text)
    return any(
        not a.quantity.agrees(b.quantity)
        and (_ALSO_BEFORE.search(text[a.end : b.start]) or _ALSO_AFTER.match(text, b.end))
        for a, b in pairwise(found)
    )


def _equation_value(clause: str) -> Value:
    """Return the value of the last side of an equation that is a number, or of a clause without an equals sign."""
    if len(assignments := _assignments(clause)) > 1:
        return _common([side_value(part) for part in assignments])
    begins = re.match(r"[\W_]{0,9}(?:[a-z]{1,4}\b)?[\W_]{0,9}\d", clause, re.IGNORECASE)
    sides = [side_value(side) for side in (EQUALS if begins else _IS).split(clause)]
    evaluated = [side for side in sides if side is not None and side is not NoValue.FORMULA]
    if evaluated:
        return _exact(evaluated)
    return NoValue.FORMULA if NoValue.FORMULA in sides else None


def _assignments(text: str) -> list[str]:
    """Return the parts of *text* between assignments, "x = 2" and "3" of "x = 2, y = 3"; *text* if it has only one."""
    parts = _ASSIGNMENTS.split(_ASSIGNMENT_AND_SLASH.sub(r"\1,", text))
    with_numbers = [part for part in parts if find_numbers(part)]
    return with_numbers if len(with_numbers) > 1 else [text]


def _exact(sides: Sequence[Value]) -> Value:
    """Return the last of equal sides, or the fraction before it that it rounds."""
    last, before = sides[-1], sides[-2] if len(sides) > 1 else None
    if not isinstance(last, Quantity) or not isinstance(before, Quantity) or before.value.denominator == 1:
        return last
    rounded = 0 < abs(before.value - last.value) <= abs(before.value) / 100
    return replace(before, rounded=last.value) if rounded else last


def _common(values: Sequence[Value]) -> Value:
    """Return the value that all of *values* agree on; parts without a number do not count."""
    values = [value for value in values if value is not None]
    first = values[0] if values else None
    return NoValue.SEVERAL if any(differs(value, first) for value in values[1:]) else first
