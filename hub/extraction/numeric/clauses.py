"""The value that a clause, a sentence or a statement gives."""

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from hub.extraction.corrections import (
    ALTERNATIVELY,
    statement_versions,
)
from hub.extraction.numeric.bounds import is_bound, is_inequality, is_limit
from hub.extraction.numeric.measures import same_measure
from hub.extraction.numeric.number_words import words_to_digits
from hub.extraction.numeric.quantities import OTHER_BASE, Found, Quantity, find_numbers, plain
from hub.extraction.numeric.values import NoValue, Value, differs

# "42 (see eq. 3)" and "5! = 120" go on.
SENTENCE_END = re.compile(
    r"(?<=[.!?])(?!(?<=\b[Ee]q\.)\s+\(?\d)(?!(?<=\d!)\s*[=≈×*/+·-])[*_$\\)]*\s+(?=\S)|(?<=[。！？])"
)
_LONGEST_STATEMENT = 1000  # characters that are read
LONGEST_SENTENCE = 2000  # characters that are read, from its end
MOST_TRIED = 50  # number of statements or sentences that are tried
# Characters around a number and its unit that do not change its meaning.
_MARKUP = r"[\s$€£¥₹%°*_`\\()\[\]{}~≈\"'’]"
_AGAIN = (
    r"(?:or|and|but|maybe|perhaps|possibly|even|also|either|about|around|approximately|roughly"
    r"|as many as|up to|at most|at least|less than|more than|else"
    r"|oder|und|ou|et|o|y|или|и)"
)
_CONNECTOR = (
    r"(?:[,;/&|–—~〜±-]|\\pm|\.\.\.?|…|\?|或者?|和|到|至|または|もしくは|あるいは|또는|혹은"
    r"|\b(?:or|and|to|through|until|vs\.?|versus|oder|und|bis|ou|et|à|o|y|a|или|до|або|eller|til|tot|lub|albo|nebo|až"
    r"|vagy|tai|sau|veya|atau|sampai|hoặc|đến|ή|أو|إلى)\b)"
)
LINK = re.compile(
    rf"{_MARKUP}{{0,9}}(?:-?[^\W\d]{{1,20}}\.?{_MARKUP}{{0,4}}){{0,3}}?{_CONNECTOR}"
    rf"(?:{_MARKUP}{{0,4}}(?:\b{_AGAIN}\b|(?:it )?(?:could|might|may)(?: also)? be|[a-z]\s?=)){{0,4}}{_MARKUP}{{0,9}}"
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
_NUMBER_AHEAD = r"(?:or|and|maybe|perhaps|possibly|either)?[\s$€£*_\\(]{0,6}(?:[a-z]\w?\s?=\s?)?[$€£]?[-−]?[\d.√\\]"
# "x = 42 by Eq. (3)", "42 (see eq. 3)": the number of a formula or a theorem.
_CITED = re.compile(
    r"\b(?:by|from|see|using|via|cf\.?|in)\s(?:(?:eqs?|eqns?)\b\.?|equations?|theorems?|lemmas?|corollary|propositions?)"
    r"\s?\(?\d+(?:\.\d+)*[a-z]?\)?",
    re.IGNORECASE,
)
_EXPLANATION = re.compile(
    r"\b(?:because|since|given|due to|where|which|so that|i\.e\.|e\.g\.|after|when|if|compared to|out of)\b|\s\("
    rf"|[,;]\s+(?!{_NUMBER_AHEAD}|or\b|and\b|maybe\b|perhaps\b|possibly\b)|\.\s|\s[-–—]\s(?=[a-z])",
    re.IGNORECASE,
)
_EQUALS = re.compile(r"=|≈|≃|\\approx\b|\\simeq\b|\bequals?\b|\bis equal to\b", re.IGNORECASE)
_IS = re.compile(r"=|≈|≃|\\approx\b|\\simeq\b|\b(?:equals?|is|are|gives|makes|comes to|would be)\b", re.IGNORECASE)
_ASSIGNMENTS = re.compile(r"(?:[,;/]|\bor\b|\band\b)(?:[\s}]|\\quad\b){0,4}(?:[a-z]\w{0,2}\s?=\s?)", re.IGNORECASE)
_OPERATOR = re.compile(
    r"[+×·÷/*]|\s[-−]\s|\sx\s|\\(?:times|cdot|div|[pb]?mod)\b"
    r"|\b(?:mod|modulo|plus|minus|times|divided by|multiplied by|mal|por)\b|\^",
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
_PLUS_MINUS = re.compile(r"±|\\pm\b|\+/-|\bgive or take\s(?:about |around )?\W{0,3}\d", re.IGNORECASE)
_TOTALS = ("total", "sum", "average", "profit", "loss", "difference", "cost", "price")
# "5, for he lost 3" gives a reason, and "42, of which 20 are red" a part; "$9 each, for a total of $18" does not.
_REASON = re.compile(
    rf",\s(?:(?:\d{{1,9}}\s)?of\s(?:which|whom)|as|since|because|for(?!\s(?:an?|the)\s(?:\w+\s)?(?:{'|'.join(_TOTALS)})\b))\b|\bbecause\b|\s\(?since\b",
    re.IGNORECASE,
)
# "70 litres after 12 minutes", "5 apples after day 3", "$20 of $100": the second number qualifies the first.
# "a total of $18" gives a number.
_OF = "".join(f"(?<!{word} )" for word in _TOTALS) + "of"
_CIRCUMSTANCE = re.compile(
    r"\b(?:after|every|per|within|than|each|out of)\s+(?:the (?:first|last|next) )?[$€£]?$"
    r"|\bafter (?:second|minute|hour|day|week|month|year|step|round)\s+$"
    r"|\b(?P<goal>to (?:reach|get|make|be|buy|save|afford)\s+(?:the |an? |his |her |their )?[$€£]?)$"
    r"|(?<=\d) (?P<whole>of (?:the |these |those )?)$"
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
# "6 is the GCD of 12 and 18": a number and what it is of others.
_DEFINED = re.compile(
    r"\W{0,9}(?:(?:so|thus|therefore|hence),?\s)?[$€£]?-?\d++(?:[.,]\d++)*+[*]{0,2}(?:\s[^\W\d]+)?\s(?:is|are)\sthe\s"
    r"[^\d,;:=]{1,80}\s(?:of|between|to|among)\s(?:(?!\b(?:or|but|so|while|whereas)\b)[^;:=])*",
    re.IGNORECASE,
)
# "There are 12 in total: 5 red and 7 blue"
_PARTS = re.compile(r"[:;]\s|(?<=[^\W\d])\s[-–—]\s|(?<=in total),\s|(?<=altogether),\s", re.IGNORECASE)
_TIME = re.compile(r"[ -]?(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)\b", re.IGNORECASE)
# "may" in small letters; May is a month.
_ALSO_BEFORE = re.compile(
    r"\b(?:could|might|(?-i:may)|maybe|perhaps|possibly|alternatively|depending|otherwise|either)\b", re.IGNORECASE
)
_ALSO_AFTER = re.compile(
    r"\W{0,4}(?:[^\W\d]+\s){0,4}?(?:possible|plausible|acceptable|accepted|valid|defensible|otherwise|too|as well)\b",
    re.IGNORECASE,
)
_TUPLE = re.compile(r"(?<![\w)])[(\[{]\s?[-$\d./]+\s?(?:,\s?[-$\d./]+\s?)+[)\]}]")
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
# A number beside a variable is part of a formula: n(n+1)/2, x - 5.
_AFTER_VARIABLE = re.compile(
    r"(?:(?:\b[b-hj-z]|\))\s?[+*/·×^]|(?:\b[b-hj-wyz]|(?<!\d\s)\bx)\s?-)\s?\(?\s?$|(?<=[^\W\d])\s?\^\s?\{?\s?$"
    r"|\b[a-z]_\{\s?$|\b[fgh]\(\s?$"
    r"|(?:\\(?:ln|log|lg|exp|sin|cos|tan)|\b(?:ln|log|exp(?=\s?[({])|sin|cos|tan))(?:_\{?\w{0,3}\}?)?\s?[({]{0,2}\s?$"
    r"|\b[b-hj-z]\^\d\s?[+*/·×-]\s?$"
    r"|(?:√|\\sqrt(?:\[\d\])?|\bsqrt)\s?[({]?\s?$"
)
# "20x faster" and "a 9v battery" are numbers. In formulas, an exclamation mark makes a factorial.
_BEFORE_VARIABLE = re.compile(
    r"\s?[+*·×^-]\s?\(?(?:\d+)?[b-hj-wyz]\b(?!/|\s[a-z]{2})|\s?(?:π|\\pi\b|pi\b|√|\\sqrt)"
    rf"|(?![vwx]\s[a-z]{{2}}){_VARIABLES}\b(?!\s?\d)|\s?\\factorial\b|!\s?(?:\$|\\[)\]])"
)
# Numbers that are no answers: "to 2 decimal places", "to the nearest 10", the day of "July 4, 1776", "I'm 90% sure".
_QUALIFIER = re.compile(
    r"\bto\s+\d{1,2}\s+(?:decimal|d\.?\s?p\b|significant|sig\b|s\.?\s?f\b)(?:\s(?:places?|figures?|digits?|figs?))?"
    r"|\b(?:I(?:['’]m| am)|with)(?: about| around| at least| over)? \d{1,3}(?:\.\d+)?\s?(?:%|percent)"
    r" (?:sure|certain|confident|confidence|certainty)\b"
    r"|\bto the nearest [$€£]?\d++(?:[.,]\d++)*+(?:th\b)?"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?\s\d{1,2}(?:st|nd|rd|th)?,\s(?=\d{4}\b(?![.,]\d))",
    re.IGNORECASE,
)
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
    text = _without_introduction(_QUALIFIER.sub(" ", plain(_DENIED.sub(" ", version))))
    if find_numbers(uncited := _CITED.sub(" ", text)):
        text = uncited
    text, other = _without_other_unit(text)
    if _ASIDE_WITH_ALTERNATIVE.search(text):
        text = _ASIDE_WITH_ALTERNATIVE.sub(" or ", text)
    elif find_numbers(outside := _ASIDE.sub(" ", text)):
        text = outside
    text = _without_parts(text)
    if _depends(text):
        return NoValue.SEVERAL
    if find_numbers(result := _REASON.split(text, maxsplit=1)[0]):
        text = result
    found = find_numbers(text)
    if found and (is_inequality(text, found[-1]) or is_limit(text)):
        return NoValue.SEVERAL
    if _TUPLE.search(text) or _PLUS_MINUS.search(text):
        return NoValue.SEVERAL
    if _ASSIGNMENTS.search(text):
        return _common([_side(part) for part in _ASSIGNMENTS.split(text)])
    if _mentions_another(text):
        return NoValue.SEVERAL
    sides = _EQUALS.split(text)
    if len(sides) > 1 and _side(sides[-1]) is NoValue.FORMULA:
        return _last_linked(sides[-2])
    value = _last_linked(sides[-1]) or _last_linked(text)
    if value is NoValue.SEVERAL and _DEFINED.fullmatch(text):
        return found[0].quantity
    if isinstance(value, Quantity) and other is not None:
        return replace(value, rounded=other)
    if isinstance(value, Quantity) and len(sides) > 1 and isinstance(before := _side(sides[-2]), Quantity):
        return _exact([before, value])
    return value


def _without_introduction(text: str) -> str:
    """Return *text* without a phrase with a number before its first clause: "After day 3, 5 apples remain"."""
    introduction = _INTRODUCTION.match(text)
    return text[introduction.end() :] if introduction else text


def _without_parts(text: str) -> str:
    """Return *text* without the parts after their sum: "12 in total" of "12 in total: 5 red and 7 blue"."""
    parts = _PARTS.search(text)
    if parts is None or _EQUALS.search(text):
        return text
    total, addends = find_numbers(text[: parts.start()]), find_numbers(text[parts.end() :])
    adds_up = len(total) == 1 and sum(item.quantity.value for item in addends) == total[0].quantity.value
    return text[: parts.start()] if adds_up and len(addends) > 1 else text


def _without_other_unit(text: str) -> tuple[str, Fraction | None]:
    """Return *text* without an aside that repeats its number in another unit or rounded, and the number in it."""
    asides = list(_ASIDE.finditer(text))
    found = find_numbers(text) if asides else ()
    for aside in asides[:MOST_TRIED]:
        inside = [item for item in found if aside.start() <= item.start < aside.end()]
        before = [item for item in found if item.end <= aside.start()]
        if len(inside) != 1 or not before or aside.start() - before[-1].end > LONGEST_LINK:
            continue
        if _restates(text, before[-1], inside[0]):
            return text[: aside.start()] + text[aside.end() :], inside[0].quantity.value
    return text, None


def _restates(text: str, first: Found, second: Found) -> bool:
    """Return whether *second* is *first* in another unit, or a fraction as a rounded decimal."""
    value, other = first.quantity.value, second.quantity.value
    rounds = "/" in text[first.start : first.end] and value != other and abs(value - other) <= abs(value) / 100
    return rounds or same_measure(text, first, second)


def _depends(text: str) -> bool:
    """Return whether the clauses of a sentence give different values for different conditions."""
    if len(_CONDITION.findall(text)) < 2 or not _WOULD.search(text):
        return False
    values = [
        _last_linked(clause)
        for clause in re.split(r";|,\s(?:but|and|while|whereas)\b", text)
        if _CONDITION.search(clause)
    ]
    return len(values) > 1 and any(differs(value, values[0]) for value in values[1:])


def _in_formula(text: str, item: Found) -> bool:
    """Return whether the number *item* is an operand beside a variable."""
    return (
        _AFTER_VARIABLE.search(text[max(item.start - 16, 0) : item.start]) is not None
        or _BEFORE_VARIABLE.match(text, item.end) is not None
    )


def _last_linked(text: str) -> Value:
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
        if _restates(text, item, last):
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


def clause_value(written: str) -> Value:
    """Return the value of a clause: 5 of "5, since 2 = 2", 42 of "6 * 7 = 42" and "42 = 6 * 7", SEVERAL of "3 or 4"."""
    affirmed = _DENIED.sub(" ", written[:_LONGEST_STATEMENT])
    if not any(character.isdigit() for character in affirmed):
        affirmed = words_to_digits(affirmed)
    text = _without_introduction(_QUALIFIER.sub(" ", plain(affirmed)))
    text, other = _without_other_unit(text)
    text = _without_parts(_ASIDE_WITH_ALTERNATIVE.sub(" or ", text))
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
    if _ASSIGNMENTS.search(clause):
        return _common([_side(part) for part in _ASSIGNMENTS.split(clause)])
    begins = re.match(r"[\W_]{0,9}(?:[a-z]{1,4}\b)?[\W_]{0,9}\d", clause, re.IGNORECASE)
    sides = [_side(side) for side in (_EQUALS if begins else _IS).split(clause)]
    evaluated = [side for side in sides if side is not None and side is not NoValue.FORMULA]
    if evaluated:
        return _exact(evaluated)
    return NoValue.FORMULA if NoValue.FORMULA in sides else None


def _exact(sides: Sequence[Value]) -> Value:
    """Return the last of equal sides, or the fraction before it that it rounds."""
    last, before = sides[-1], sides[-2] if len(sides) > 1 else None
    if not isinstance(last, Quantity) or not isinstance(before, Quantity) or before.value.denominator == 1:
        return last
    rounded = 0 < abs(before.value - last.value) <= abs(before.value) / 100
    return replace(before, rounded=last.value) if rounded else last


def _side(text: str) -> Value:
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
        if _restates(text, first, item):
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


def _common(values: Sequence[Value]) -> Value:
    """Return the value that all of *values* agree on; parts without a number do not count."""
    values = [value for value in values if value is not None]
    first = values[0] if values else None
    return NoValue.SEVERAL if any(differs(value, first) for value in values[1:]) else first
