"""Detection of numbers that bound the answer and do not give it: "x < 42", "x ≠ 42", "at most 42"."""

import re

from hub.extraction.numeric.quantities import Found

# Before a number that is a bound: "x < 42", "less than 42". A tag, an arrow or the > of a quotation is no comparison.
_BOUND = re.compile(
    r"(?:(?<=[\w)}\]$°%])\s?[<>]|^\s*(?:<|>(?!\s))|\\[lg]t\b|≠|\\neq?\b|\bexceeds?"
    r"|\b(?:less|more|fewer|greater|larger|smaller|higher|lower)\sthan"
    r"|\b(?:(?:weniger|mehr|kleiner|größer)\sals|(?:moins|plus|menos|más|mais)\sde|(?:meno|più)\sdi"
    r"|(?:meer|minder)\sdan|меньше|больше|менее|более)|少于|少於|小于|大于|多于|超过|不到)"
    r"[\s$€£*_\\({]{0,4}$",
    re.IGNORECASE,
)
_TAG_END = re.compile(r"</?[a-z][^<>]{0,60}>\s*$", re.IGNORECASE)
_LONGEST_TEXT = 120  # characters of a text that may be an inequality or a limit
_AT_MOST = r"(?:[<>]=(?!>)|[≤≥≦≧⩽⩾]|\\[lg](?:e|eq|eqslant|eqq)(?![a-z]))"
_SIGN = rf"(?:[<>]|{_AT_MOST})"
MARKUP = r"\s$€£*_`\\()\[\]{}~"  # characters around a number that do not change its meaning, as a set in a pattern
_MARKUP = f"[{MARKUP}]"
# What precedes the number of a text that is an inequality: "≤", "x ≥", "0 ≤ x ≤".
_INEQUALITY_HEAD = re.compile(
    rf"{_MARKUP}*(?:(?:-?[\d.,/]+{_MARKUP}*{_SIGN})?{_MARKUP}*[a-z]\w?{_MARKUP}*)?"
    rf"{_AT_MOST}{_MARKUP}{{0,9}}",
    re.IGNORECASE,
)
_INEQUALITY_TAIL = re.compile(r"[^\d=≈<>≤≥,;:]{0,40}")
# The number and the unit of a text that is a limit.
_AMOUNT = r"[$€£]?[-+]?\d[\d.,]*(?<![.,])\s?%?(?:[ -]?(?:\\text\{)?\s?[^\W\d]+\}?){0,2}"
_LIMIT = re.compile(
    rf"{_MARKUP}*(?:(?:at\s(?:most|least)|up\sto)\s{_MARKUP}*{_AMOUNT}"
    rf"|{_AMOUNT}\s(?:at\s(?:most|least)|or\s(?:more|less|fewer))"
    r"|[$€£]?(?:\d[\d.,]*\d%?\+(?:\s[^\W\d]{2,})?|\d\+\s[^\W\d]{2,})"  # one digit needs a unit: 2+ is a charge
    rf"|{_AMOUNT}{_MARKUP}*{_SIGN}{_MARKUP}*[a-z]\w?){_MARKUP}*[.!]?{_MARKUP}*",
    re.IGNORECASE,
)
_STRICT_LIMIT = re.compile(
    rf"{_MARKUP}*(?:(?:just|only|slightly|somewhat|well|far|way|a\s(?:little|bit))\s)?(?:under|below|over|above)\s{_MARKUP}*{_AMOUNT}{_MARKUP}*[.!]?{_MARKUP}*",
    re.IGNORECASE,
)


def is_bound(text: str, item: Found) -> bool:
    """Return whether the number *item* is a bound of the answer, and not the answer: "less than 42", "x < 42"."""
    before = text[max(item.start - 80, 0) : item.start]
    if before.rstrip().endswith("<") and text[item.end : item.end + 2].strip().startswith(">"):
        return False  # <42>
    return _BOUND.search(before) is not None and _TAG_END.search(before) is None


def is_inequality(text: str, last: Found) -> bool:
    """Return whether *text*, with *last* as its last number, consists of an inequality: "≤ 42", "0 ≤ x ≤ 42"."""
    return (
        last.start <= _LONGEST_TEXT
        and _INEQUALITY_HEAD.fullmatch(text, 0, last.start) is not None
        and _INEQUALITY_TAIL.fullmatch(text, last.end) is not None
    )


def is_limit(text: str) -> bool:
    """Return whether *text* consists of a number that is called a limit: "at most 42", "42 apples or more", "42+"."""
    return len(text) <= _LONGEST_TEXT and (_LIMIT.fullmatch(text) is not None or is_strict_limit(text))


def is_strict_limit(text: str) -> bool:
    """Return whether *text* consists of a number that the answer cannot be: "under 42", "over 42 apples"."""
    return len(text) <= _LONGEST_TEXT and _STRICT_LIMIT.fullmatch(text) is not None
