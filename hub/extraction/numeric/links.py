"""Numbers beside each other in a clause: alternatives, operands of a formula, a value and what qualifies it."""

import re
from collections.abc import Sequence
from dataclasses import replace

from hub.extraction.numeric.bounds import MARKUP, is_bound
from hub.extraction.numeric.measures import same_measure
from hub.extraction.numeric.quantities import Found, find_numbers
from hub.extraction.numeric.values import NoValue, Value

# Between two linked numbers there may also be units and quotation marks: "5 % or ≈ 6 %".
_AROUND = rf"[{MARKUP}¥₹%°≈\"'’]"
_AGAIN = (
    r"(?:or|and|but|maybe|perhaps|possibly|even|also|either|about|around|approximately|roughly"
    r"|as many as|up to|at most|at least|less than|more than|else"
    r"|oder|und|ou|et|o|y|или|и)"
)
_CONNECTOR = (
    r"(?:[,;/&|–—~〜±-]|\\pm|\.\.\.?|…|\?|或者?|和|到|至|または|もしくは|あるいは|또는|혹은"
    r"|\b(?:or|and|to|remainder|(?-i:R)|through|until|vs\.?|versus|oder|und|bis|ou|et|à|o|y|a|или|до|або|eller|til|tot|lub|albo|nebo|až"
    r"|vagy|tai|sau|veya|atau|sampai|hoặc|đến|ή|أو|إلى)\b)"
)
LINK = re.compile(
    rf"{_AROUND}{{0,9}}(?:-?[^\W\d]{{1,20}}\.?{_AROUND}{{0,4}}){{0,3}}?{_CONNECTOR}"
    rf"(?:{_AROUND}{{0,4}}(?:\b{_AGAIN}\b|(?:it )?(?:could|might|may)(?: also)? be|[a-z]\s?=)){{0,4}}{_AROUND}{{0,9}}"
    r"|\s?(?:か|から|、)\s?",  # after a word these may join clauses
    re.IGNORECASE,
)
LONGEST_LINK = 60
# Words after which a second number qualifies the first.
_RELATION = re.compile(
    r"\b(?:in|of|per|for|at(?! most| least)|by|with|from|(?<!less )(?<!more )than|after|because|since"
    r"|when|if|as|so|is|are|was|were|rounded|compared|every|each|on|"
    r"out|then|therefore|gives?|makes|within|plus|minus|times)\b",
    re.IGNORECASE,
)
EQUALS = re.compile(r"=|≈|≃|\\approx\b|\\simeq\b|\bequals?\b|\bis equal to\b", re.IGNORECASE)
_OPERATOR = re.compile(
    r"[+×·÷/*]|\s[-−]\s|\sx\s|\\(?:times|cdot|div|[pb]?mod)\b"
    r"|\b(?:mod|modulo|plus|minus|times|choose|divided by|multiplied by|mal|por)\b|\^",
    re.IGNORECASE,
)
_VARIABLES = r"(?:[abijnqrvwxyz]|[abxyz]{2,3})"  # letters that are no units
_SYMBOLIC = re.compile(
    r"\\(?:sqrt|pi|log|ln|sin|cos|tan|theta|alpha)(?![a-z])|√|π|\bpi\b|\dpi\b|\bsqrt\b|\\binom"
    rf"|\d(?!x\s(?:as|more|less|faster|slower|larger|bigger|smaller|higher|lower|better|longer|shorter|speed-?up)\b)"
    rf"(?-i:{_VARIABLES})\b(?!\s?\d)"
    r"|\\[dtc]?frac(?![a-z])",  # one with letters; `plain` replaces those of numbers
    re.IGNORECASE,
)
TOTALS = ("total", "sum", "average", "profit", "loss", "difference", "cost", "price")
# "70 litres after 12 minutes", "5 apples after day 3", "$20 of $100": the second number qualifies the first.
# "a total of $18" gives a number.
_OF = "".join(f"(?<!{word} )" for word in TOTALS) + "of"
_CIRCUMSTANCE = re.compile(
    r"\b(?:after|every|per|within|than|each|out of)\s+(?:the (?:first|last|next) )?[$€£]?$"
    r"|\bafter (?:second|minute|hour|day|week|month|year|step|round)\s+$"
    r"|\b(?P<goal>to (?:reach|get|make|be|buy|save|afford|finish|complete|read|paint|fill|empty|write|eat|clean|build)"
    r"\s+(?:all (?:of )?)?(?:the |these |those |an? |his |her |their )?[$€£]?)$"
    r"|(?<=\d) (?:left |remaining )?(?P<whole>of (?:the |these |those )?)$"
    r"|\b(?:which (?:already )?includes|including)\s+(?:an? |the )?[$€£]?$"
    r"|\bas of\s+(?:(?:early|mid|late)[- ])?(?:[^\W\d]{3,9}\.?\s)?$"
    rf"|\b(?:in|for|over|during|from|with|on|{_OF})\s+(?:the (?:first |last |next |past )?)?$",
    re.IGNORECASE,
)
# "Multiply 6 by 7 to get 42": the number after "to get" is a result. In "You need to add 42 to get 100" it is the goal.
_CALCULATION = re.compile(
    r"\b(?:add|subtract|multipl[yi]|divid|sum|combin|doubl|tripl|halv|squar|plus|minus|times)\w{0,7}\b", re.IGNORECASE
)
_NEED = re.compile(r"\b(?:need|require|must|ha(?:s|ve) to|should)", re.IGNORECASE)
_TIME = re.compile(r"[ -]?(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)\b", re.IGNORECASE)
# A number beside a variable is part of a formula: n(n+1)/2, x - 5.
_AFTER_VARIABLE = re.compile(
    r"(?:(?:\b[b-hj-z]|\))\s?[+*/·×^]|(?:\b[b-hj-wyz]|(?<!\d\s)\bx)\s?-)\s?\(?\s?$|(?<=[^\W\d])\s?\^\s?\{?\s?$"
    r"|(?:π|\\pi\s?|\bpi\s?|\ba)\s?/\s?\(?\s?$"
    r"|\b[a-z]_\{\s?$|\b[fghCP]\(\s?$"
    r"|(?:\\(?:ln|log|lg|exp|sin|cos|tan)|\b(?:ln|log|exp(?=\s?[({])|sin|cos|tan))(?:_\{?\w{0,3}\}?)?\s?[({]{0,2}\s?$"
    r"|\b[b-hj-z]\^\d\s?[+*/·×-]\s?$"
    r"|(?:√|\\sqrt(?:\[\d\])?|\bsqrt)\s?[({]?\s?$"
)
# "20x faster" and "a 9v battery" are numbers. In formulas, an exclamation mark makes a factorial.
_BEFORE_VARIABLE = re.compile(
    r"\s?[+*·×^-]\s?\(?(?:\d+)?[b-hj-wyz]\b(?!/|\s[a-z]{2})|\s?(?:π|\\pi\b|pi\b|√|\\sqrt)"
    rf"|(?![vwx]\s[a-z]{{2}}){_VARIABLES}\b(?!\s?\d)|\s?\\factorial\b|!\s?(?:\$|\\[)\]])"
)


def restates(text: str, first: Found, second: Found) -> bool:
    """Return whether *second* is *first* in another unit, or a fraction as a rounded decimal."""
    value, other = first.quantity.value, second.quantity.value
    rounds = "/" in text[first.start : first.end] and value != other and abs(value - other) <= abs(value) / 100
    return rounds or same_measure(text, first, second)


def _in_formula(text: str, item: Found) -> bool:
    """Return whether the number *item* is an operand beside a variable."""
    return (
        _AFTER_VARIABLE.search(text[max(item.start - 16, 0) : item.start]) is not None
        or _BEFORE_VARIABLE.match(text, item.end) is not None
    )


def last_linked(text: str) -> Value:
    numbers = find_numbers(text)
    found = [item for item in numbers if not item.quantity.ordinal] or list(numbers)
    if not found:
        return None
    while len(found) > 1 and (_is_circumstance(text, found) or is_bound(text, found[-1])):
        found.pop()
    if _in_formula(text, found[-1]) or is_bound(text, found[-1]):
        return NoValue.FORMULA
    last = found[-1]
    value, start, _ = last
    for item in reversed(found[:-1]):
        gap = text[item.end : start]
        if len(gap) <= LONGEST_LINK and _OPERATOR.search(gap) and not re.search(r"[^\W\d_]{16}|\w\s\w+\s\w+\s\w+", gap):
            return NoValue.FORMULA
        if not gap.strip() or not _links(gap):
            break
        if restates(text, item, last):
            return replace(item.quantity, rounded=value.value)
        if not value.agrees(item.quantity):
            return NoValue.SEVERAL
        start = item.start
    return value


def _is_circumstance(text: str, found: Sequence[Found]) -> bool:
    """Return whether the last of *found* only states the time, or the total, to which the number before it refers."""
    before, last = found[-2:]
    match = _CIRCUMSTANCE.search(text, max(before.end - 1, last.start - 40), last.start)
    if match is None:
        return False
    if match["goal"] and _CALCULATION.search(text, 0, last.start):
        return len(found) == 2 and _NEED.search(text, 0, last.start) is not None
    if match["whole"]:
        return before.quantity.scale == 1 and "/" not in text[before.start : before.end]
    preposition = match[0].split()[0].lower()
    if preposition not in ("in", "for", "over", "during", "from", "with", "on", "of"):
        return True
    money = "$€£¥₹"
    return any(sign in text[before.start : before.end] for sign in money) or (
        preposition not in ("from", "with", "on", "of") and bool(_TIME.match(text, last.end))
    )


def side_value(text: str) -> Value:
    """Return the value of one side of an equation: its first number, if others only qualify it."""
    numbers = find_numbers(text)
    if not numbers:
        return None
    if _SYMBOLIC.search(text):
        return NoValue.FORMULA
    found = [item for item in numbers if not is_bound(text, item)]
    if not found:
        return None
    if _in_formula(text, found[0]):
        return NoValue.FORMULA
    first = found[0]
    value, _, end = first
    for item in found[1:]:
        gap = text[end : item.start]
        if _OPERATOR.search(gap) or (item.quantity.value < 0 and not gap.strip()):
            return NoValue.FORMULA
        if not _links(gap):
            break
        if restates(text, first, item):
            return replace(value, rounded=item.quantity.value)
        if not value.agrees(item.quantity):
            return NoValue.SEVERAL
        end = item.end
    return value


def _links(gap: str) -> bool:
    """Return whether *gap*, between two numbers, makes them alternatives, a range or a list."""
    if gap == ":" or not gap.strip():
        return True
    return len(gap) <= LONGEST_LINK and not _RELATION.search(gap) and LINK.fullmatch(gap) is not None
