"""Parts of a sentence that are left out before its value is read, because their numbers are no answers."""

import re
from fractions import Fraction

from hub.extraction.numeric.links import EQUALS, LONGEST_LINK, restates
from hub.extraction.numeric.quantities import find_numbers

# "x = 42 by Eq. (3)", "42 (see eq. 3)": the number of a formula or a theorem.
_CITED = re.compile(
    r"\b(?:by|from|see|using|via|cf\.?|in)\s(?:(?:eqs?|eqns?)\b\.?|equations?|theorems?|lemmas?|corollary|propositions?)"
    r"\s?\(?\d+(?:\.\d+)*[a-z]?\)?",
    re.IGNORECASE,
)
# "4 primes between 10 and 20"
_RANGE = re.compile(r"\bbetween\s[$€£]?\d++(?:[.,]\d++)*+[%°]?\sand\s[$€£]?\d++(?:[.,]\d++)*+", re.IGNORECASE)
# "9, which is 3 fewer than before", "9, 3 fewer than before"
_COMPARED = re.compile(
    r",\s(?:which\sis\s|that\sis\s)?[$€£]?\d++(?:[.,]\d++)*+%?\s(?:[^\W\d]+\s)?"
    r"(?:more|fewer|less|higher|lower|larger|smaller|longer|shorter|older|younger|greater)\sthan\b[^,;.]*",
    re.IGNORECASE,
)
# "After day 3, " before "5 apples remain", "Out of 100 students, " before "42 passed". In "After 2 hours, 15 minutes",
# the numbers belong together.
_INTRODUCTION = re.compile(
    r"\W{0,9}(?:(?:so|thus|therefore|hence|then|and|but|finally),?\s)?"
    r"(?:after|at|by|during|for|from|in|of|on|out of|since|until|with|within)\b[^\d;:.!?\n]{0,80}"
    r"\d++(?:\.\d++)?[^,;:.!?\n]{0,40},\s"
    r"(?=[$€£*]{0,3}[-−]?\d++(?:[.,]\d++)*+[*]{0,2}[%°]?\s(?!(?:and|or|to|through|oder|und|bis|ou|et|o|y)\b)"
    r"(?:[^\W\d]+\s+[^\W\d]|[^\W\d]{2,}ed\b|remain|are|left))",
    re.IGNORECASE,
)
# "There are 12 in total: 5 red and 7 blue"
_PARTS = re.compile(r"[:;]\s|(?<=[^\W\d])\s[-–—]\s|(?<=in total),\s|(?<=altogether),\s", re.IGNORECASE)
# Numbers that a text denies: "41, not 42", "41, nicht 42", "42ではなく41".
_DENIED = re.compile(
    r"(?:\b(?:(?:it|this|that|the answer) (?:can(?:not|['’]t| not)|couldn['’]t|could not) be"
    r"|(?:don['’]t|do not) (?:think|believe) (?:that )?(?:it(?:['’]s| is)|the answer is)"
    r"|not|anything but|rather than|instead of|as opposed to|isn['’]t|and not|never|nicht|niet|inte|ikke|non|не"
    r"|no (?:es|son)"
    r"|non (?:è|sono)|não (?:é|são)|(?:est|sont|et) pas)\s|,\spas\s|不是\s?)(?:just |only "
    r"|exactly )?[$€£*]{0,3}[-−–]?\d[\d,.]*(?<!,)[%kKM]?"
    r"|(?<![\d.,])\d[\d,.]*\s?(?:[^\W\d]\s?)?(?:(?:では|じゃ)(?:な|あり)|[가이] 아니|이 아닙|가 아닙)",
    re.IGNORECASE,
)
_ASIDE_WITH_ALTERNATIVE = re.compile(
    r"[ ]?\(\s?(?=(?:or|maybe|perhaps|possibly|alternatively|could|might|may)\b|±|\\pm)", re.IGNORECASE
)
_ASIDE = re.compile(r"(?<![+*/×·^=])(?<!\b[a-zA-Z])\((?:[^()]++|\([^()]*+\))*+\)(?!\s?[*/^×·+])")
# Numbers that are no answers: "to 2 decimal places", "to the nearest 10", the day of "July 4, 1776", "I'm 90% sure".
_QUALIFIER = re.compile(
    r"\bto\s+\d{1,2}\s+(?:decimal|d\.?\s?p\b|significant|sig\b|s\.?\s?f\b)(?:\s(?:places?|figures?|digits?|figs?))?"
    r"|\b(?:I(?:['’]m| am)|with)(?: about| around| at least| over)? \d{1,3}(?:\.\d+)?\s?(?:%|percent)"
    r" (?:sure|certain|confident|confidence|certainty)\b"
    r"|\bto the nearest [$€£]?\d++(?:[.,]\d++)*+(?:th\b)?"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?\s\d{1,2}(?:st|nd|rd|th)?,\s(?=\d{4}\b(?![.,]\d))",
    re.IGNORECASE,
)
_MOST_ASIDES = 50  # asides that are examined


def without_denied(text: str) -> str:
    """Return *text* without the numbers that it denies: "41" of "41, not 42"."""
    return _DENIED.sub(" ", text)


def without_details(text: str) -> str:
    """Return *text* without numbers such as that of "to 2 decimal places", and without its introduction.

    An introduction is a phrase with a number before the first clause: "After day 3, 5 apples remain".
    """
    text = _QUALIFIER.sub(" ", text)
    introduction = _INTRODUCTION.match(text)
    return text[introduction.end() :] if introduction else text


def without_references(text: str) -> str:
    """Return *text* without the numbers of formulas, theorems, ranges and comparisons, unless it has no others."""
    for reference in (_CITED, _RANGE, _COMPARED):
        rest = reference.sub(" ", text)
        text = rest if find_numbers(rest) else text
    return text


def with_alternatives(text: str) -> str:
    """Return *text* with "or" in place of a parenthesis that begins an alternative: "42 (or 43)"."""
    return _ASIDE_WITH_ALTERNATIVE.sub(" or ", text)


def without_asides(text: str) -> str:
    """Return *text* without parentheses, unless they have its only number or an alternative to it."""
    joined = with_alternatives(text)
    if joined != text:
        return joined
    outside = _ASIDE.sub(" ", text)
    return outside if find_numbers(outside) else text


def without_parts(text: str) -> str:
    """Return *text* without the parts after their sum ("12 in total: 5 red and 7 blue") or count ("2 primes: 3, 5")."""
    parts = _PARTS.search(text)
    if parts is None or EQUALS.search(text):
        return text
    total, addends = find_numbers(text[: parts.start()]), find_numbers(text[parts.end() :])
    if len(total) != 1 or len(addends) < 2:
        return text
    adds_up = total[0].quantity.value in (sum(item.quantity.value for item in addends), len(addends))
    return text[: parts.start()] if adds_up else text


def without_other_unit(text: str) -> tuple[str, Fraction | None]:
    """Return *text* without an aside that repeats its number in another unit or rounded, and the number in it."""
    asides = list(_ASIDE.finditer(text))
    found = find_numbers(text) if asides else ()
    for aside in asides[:_MOST_ASIDES]:
        inside = [item for item in found if aside.start() <= item.start < aside.end()]
        before = [item for item in found if item.end <= aside.start()]
        if len(inside) != 1 or not before or aside.start() - before[-1].end > LONGEST_LINK:
            continue
        if restates(text, before[-1], inside[0]):
            return text[: aside.start()] + text[aside.end() :], inside[0].quantity.value
    return text, None
