"""Extraction of the number that an answer gives, and of whether it gives several."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from hub.extraction.corrections import (
    ALTERNATIVELY,
    is_undecided,
    reopening_positions,
    statement_versions,
    withdrawal_end,
)
from hub.extraction.normalization import answer_text
from hub.extraction.numeric.measures import same_measure
from hub.extraction.numeric.numerals import words_to_digits
from hub.extraction.numeric.quantities import Found, Quantity, find_numbers, plain
from hub.extraction.statements import Mark, Statement, statements

_NOTHING_ELSE = re.compile(r"\d{1,18}(?:\.\d{1,18})?", re.ASCII)
_SENTENCE = re.compile(r"(?<=[.!?])[*_$\\)]*\s+(?=\S)|(?<=[。！？])")
_LONGEST_STATEMENT = 1000  # characters that are read of it; likewise below
_LONGEST_SENTENCE = 2000
_LONGEST_PARAGRAPH = 8000
_MOST_TRIED = 50  # statements or sentences without a number before others are given up
_SHORT = 200  # characters up to which an unmarked text may give its number in words
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s")
_NEXT_BULLET = re.compile(r"[ \t]*\n[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]([^\n]*)")
_REFUSAL = re.compile(
    r"\b(?:cannot|can not|can['’]t|impossible|undetermined|indeterminate|undefined|unknown|insufficient|not enough"
    r"|not (?:sure|certain|possible)|no (?:solution|answer)|don['’]t know|do not know|none|n/a|depends)\b",
    re.IGNORECASE,
)
_MODAL = re.compile(
    r"\b(?:could|might|may)(?: also| well| just)* be\b|\bpossibl[ey]\b|\bperhaps\b|\bmaybe\b", re.IGNORECASE
)

# What may stand around a number and its unit without a meaning of its own.
_DRESS = r"[\s$€£¥₹%°*_`\\()\[\]{}~≈\"'’]"
_AGAIN = (
    r"(?:or|and|but|maybe|perhaps|possibly|even|also|either|about|around|approximately|roughly"
    r"|as many as|up to|at most|at least|less than|more than|else"
    r"|oder|und|ou|et|o|y|или|и)"
)
_CONNECTOR = (
    r"(?:[,;/&|–—~±-]|\\pm|\.\.\.?|…|\?|或|和|到"
    r"|\b(?:or|and|to|through|until|vs\.?|versus|oder|und|bis|ou|et|à|o|y|a|или|до)\b)"
)
_LINK = re.compile(
    rf"{_DRESS}{{0,9}}(?:-?[^\W\d]{{1,20}}\.?{_DRESS}{{0,4}}){{0,3}}?{_CONNECTOR}"
    rf"(?:{_DRESS}{{0,4}}(?:\b{_AGAIN}\b|(?:it )?(?:could|might|may)(?: also)? be|[a-z]\s?=)){{0,4}}{_DRESS}{{0,9}}",
    re.IGNORECASE,
)
_LONGEST_LINK = 60
# Words after which a second number says something about the first.
_RELATION = re.compile(
    r"\b(?:in|of|per|for|at(?! most| least)|by|with|from|(?<!less )(?<!more )than|after|because|since"
    r"|when|if|as|so|is|are|was|were|rounded|compared|every|each|on|"
    r"out|then|therefore|gives?|makes|within|plus|minus|times)\b",
    re.IGNORECASE,
)
_NUMBER_AHEAD = r"(?:or|and|maybe|perhaps|possibly|either)?[\s$€£*_\\(]{0,6}(?:[a-z]\w?\s?=\s?)?[$€£]?[-−]?[\d.√\\]"
_EXPLANATION = re.compile(
    r"\b(?:because|since|given|due to|where|which|so that|i\.e\.|e\.g\.|after|when|if|compared to|out of)\b|\s\("
    rf"|[,;]\s+(?!{_NUMBER_AHEAD}|or\b|and\b|maybe\b|perhaps\b|possibly\b)|\.\s|\s[-–—]\s(?=[a-z])",
    re.IGNORECASE,
)
_EQUALS = re.compile(r"=|≈|≃|\\approx\b|\\simeq\b|\bequals?\b|\bis equal to\b", re.IGNORECASE)
_IS = re.compile(r"=|≈|≃|\\approx\b|\\simeq\b|\b(?:equals?|is|are|gives|makes|comes to|would be)\b", re.IGNORECASE)
_ASSIGNMENTS = re.compile(r"(?:[,;/]|\bor\b|\band\b)\s{0,3}(?:[a-z]\w{0,2}\s?=\s?)", re.IGNORECASE)
_OPERATOR = re.compile(
    r"[+×·÷/*]|\s[-−]\s|\sx\s|\\(?:times|cdot|div)\b|\b(?:plus|minus|times|divided by|multiplied by|mal|por)\b|\^",
    re.IGNORECASE,
)
_SYMBOLIC = re.compile(
    r"\\(?:sqrt|pi|log|ln|sin|cos|tan|theta|alpha)\b|√|π|\bpi\b|\dpi\b|\d[xyzn]\b(?!\s?\d)|\bsqrt\b|\\binom",
    re.IGNORECASE,
)
_PLUS_MINUS = re.compile(r"±|\\pm\b|\+/-")
_REASON = re.compile(r",\s(?:as|since|because|for)\b|\bbecause\b|\s\(?since\b", re.IGNORECASE)
# "70 litres after 12 minutes": the second number is a circumstance of the first.
_CIRCUMSTANCE = re.compile(
    r"\b(?:after|every|per|within|than|each|out of)\s+(?:the (?:first|last|next) )?[$€£]?$"
    r"|\bto (?:reach|get|make|be|buy)\s+[$€£]?$"
    r"|\b(?:in|for|over|during|from|with|on|of)\s+$",
    re.IGNORECASE,
)
_TIME = re.compile(r"[ -]?(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)\b", re.IGNORECASE)
_ALSO_BEFORE = re.compile(
    r"\b(?:could|might|may|maybe|perhaps|possibly|alternatively|depending|otherwise|either)\b", re.IGNORECASE
)
_ALSO_AFTER = re.compile(
    r"\W{0,4}(?:[^\W\d]+\s){0,4}?(?:possible|plausible|acceptable|accepted|valid|defensible|otherwise|too|as well)\b",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"\W{0,6}(?:note|nb|explanation|hint|confidence|certainty|disclaimer|check|verification"
    r"|let me know|i hope|hope this|"
    r"feel free|p\.s)\b",
    re.IGNORECASE,
)
_TUPLE = re.compile(r"(?<![\w)])[(\[{]\s?[-$\d./]+\s?(?:,\s?[-$\d./]+\s?)+[)\]}]")
_DENIED = re.compile(
    r"\b(?:not|rather than|instead of|isn['’]t|and not|never)\s(?:just |only "
    r"|exactly )?[$€£*]{0,3}[-−–]?\d[\d,.]*(?<!,)[%kKM]?",
    re.IGNORECASE,
)
_ASIDE_WITH_ALTERNATIVE = re.compile(
    r"[ ]?\(\s?(?=(?:or|maybe|perhaps|possibly|alternatively|could|might|may)\b|±|\\pm)", re.IGNORECASE
)
_ASIDE = re.compile(r"(?<![+*/×·^=])(?<!\b[a-zA-Z])\([^()]*\)(?!\s?[*/^×·+])")
# "(The median would be 11.)": a sentence of its own that is no part of the answer.
_ASIDE_SENTENCE = re.compile(r"(?:^|(?<=[.!?。]))[ \t]*\((?=[A-Z\u3040-\u9fff])[^()\n]{1,400}[.!?。]\)", re.MULTILINE)
_ALTERNATIVE_ASIDE = re.compile(
    r"\s*\(\W{0,3}(?:or|maybe|perhaps|possibly|alternatively|it|this|that|could|might|may)\b", re.I
)
# What the reader is told to do with the number before it: "A day has 1440 minutes, so just double that."
_TASK = (
    r"(?:add|calculate|combine|compute|convert|count|cube|determine|divide|do|double|figure out|find|finish|halve"
    r"|isolate|multiply|plug in|quadruple|raise|round|simplify"
    r"|solve|square|substitute|subtract|sum|take|triple|use|work out)"
)
_ADDRESSED = (
    r"(?:^\W{0,4}|[,;:—–]\s*(?:and\s+|so\s+|then\s+)*|\.\s+|\b(?:you|we)(?:['’]d)? (?:just |only |simply |then )?"
    r"(?:can|could|should|must|need to|have to|would|might|may)\s|\b(?:just|simply"
    r"|now|next|then|please|try to|so|all you (?:need|have) to do is(?: to)?)[,]?\s)"
    r"(?:(?:now|just|then|next|simply|first|please|also|start by)[, ]\s?){0,3}"
)
_INSTRUCTION = re.compile(
    rf"{_ADDRESSED}{_TASK}\b|\b(?:start|begin) (?:by|with) \w+ing\b"
    rf"|\b(?:step|do) is(?: to)? {_TASK}\b|^\W*think about\b",
    re.IGNORECASE,
)
_OPERATE = re.compile(
    rf"{_ADDRESSED}(?:add|cube|divide|double|halve|multiply|quadruple|raise|square|subtract|take|triple)\b[^.!?\n]{{0,40}}"
    r"\b(?:that|this|it|both|the (?:two|result|number|sum|total|figure))\b",
    re.IGNORECASE | re.MULTILINE,
)
_RESULT = re.compile(
    r"=|≈|→|->|:\s*\W{0,4}\d|\b(?:to (?:get|obtain|find that|reach|give|make)|get|gets|gives?|giving|got|yields?"
    r"|obtain|have|has|(?:is|are|was|were)(?!\s(?:to|in)\b)"
    rf"(?!\s{_TASK}\b)"
    r"|makes?|leaves?|leaving|equals?|result(?:s|ing)? in|which|total(?:s|ing)?|becomes?|comes? to|arrive|end up"
    r"|left with)\b(?=[^.!?\n]{0,80}\d)",
    re.IGNORECASE,
)
# A number beside a variable is part of a formula: n(n+1)/2, x - 5.
_AFTER_VARIABLE = re.compile(
    r"(?:(?:\b[b-hj-z]|\))\s?[+*/·×^]|(?:\b[b-hj-wyz]|(?<!\d\s)\bx)\s?-)\s?\(?\s?$|(?<=[^\W\d])\s?\^\s?$"
    r"|\b[b-hj-z]\^\d\s?[+*/·×-]\s?$"
)
_BEFORE_VARIABLE = re.compile(r"\s?[+*·×^-]\s?\(?(?:\d+)?[b-hj-wyz]\b(?!/|\s[a-z]{2})")
_CONDITION = re.compile(r"\b(?:if|assuming|provided|otherwise|supposing)\b", re.IGNORECASE)
_WOULD = re.compile(r"\b(?:would|could|might)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NumberReading:
    """The number of an answer, read from `said`; `several` if that gives different values, and so none."""

    quantity: Quantity | None
    said: str = ""
    marked: bool = False
    several: bool = False


class _NoValue(Enum):
    SEVERAL = 1  # different values are given
    FORMULA = 2  # an expression that is not worked out


_Value = Quantity | _NoValue | None


def number(text: str) -> Fraction | None:
    """Return the value of `quantity`."""
    found = quantity(text)
    return found.value if found else None


def quantity(text: str) -> Quantity | None:
    """Return the number that *text* gives as its answer; None if it gives none, or several."""
    return read_number(text).quantity


@lru_cache(maxsize=64)
def read_number(text: str) -> NumberReading:
    """Read the number that *text* gives as its answer.

    That is the number of the statement that counts (see `statements`), else the one in bold in the last paragraph, else
    the last one of all. Alternatives ("18 or 19"), ranges, lists and tuples of different values give none.
    """
    if _NOTHING_ELSE.fullmatch(text):
        return NumberReading(Quantity(Fraction(text)), text)  # most targets are that
    text = answer_text(text)
    stated = statements(text)
    if stated and (withdrawn := withdrawal_end(text, max(s.end for s in stated))) >= 0:
        later = _unmarked(text[withdrawn:])
        if later.quantity or later.several:
            return later
    for statement in stated[:_MOST_TRIED]:
        value = _stated(statement.said)
        if value is None and statement.mark > Mark.DECISION and _REFUSAL.search(statement.said):
            return NumberReading(None, statement.said, marked=True)
        if isinstance(value, Quantity) and _has_alternative(text, statement, stated, value):
            value = _NoValue.SEVERAL
        if value is not None and (value is not _NoValue.FORMULA or statement.mark > Mark.SENTENCE):
            return _reading(value, statement.said, marked=True)
    return _unmarked(text)


def _reading(value: _Value, said: str, *, marked: bool = False) -> NumberReading:
    return NumberReading(
        value if isinstance(value, Quantity) else None, said.strip(), marked=marked, several=value is _NoValue.SEVERAL
    )


# ---- statements ------------------------------------------------------------------------------------------------------


def _stated(said: str) -> _Value:
    """Return the value of a statement: of its last version if it corrects itself, of its first sentence with one."""
    for version in statement_versions(said[:_LONGEST_STATEMENT]):
        sentences = _SENTENCE.split(version)
        for i, sentence in enumerate(sentences):
            value = _clause_value(sentence)
            if value is None:
                continue
            following = sentences[i + 1] if i + 1 < len(sentences) else ""
            return _NoValue.SEVERAL if _offers_other(following, value) else value
    return None


def _has_alternative(text: str, chosen: Statement, stated: Sequence[Statement], value: Quantity) -> bool:
    r"""Return whether the text beside *chosen* gives another value: "18. Or 19.", "\boxed{18} or \boxed{19}"."""
    after = text[chosen.end : chosen.end + 200]
    if _offers_other(after.lstrip("$).*_}\\ \n"), value):
        return True
    bullet = _NEXT_BULLET.match(after)
    if bullet and _BULLET.match(chosen.said) and _differs(_clause_value(bullet[1]), value):
        return True
    if chosen.mark == Mark.FORMAT:
        before = text[max(chosen.start - 60, 0) : chosen.start]
        before_match = re.search(r"(?:^|\s)(\S*\d\S*)[\s$\\(*]*\bor[\s$\\(*]*$", before)
        if before_match and _differs(_clause_value(before_match[1]), value):
            return True
    return any(
        other.end <= chosen.start
        and (_LINK.fullmatch(gap := text[other.end : chosen.start]) or ALTERNATIVELY.match(gap))
        and _differs(_stated(other.said), value)
        for other in stated
        if other.mark >= Mark.SENTENCE and chosen.start - other.end < _LONGEST_LINK
    )


def _offers_other(sentence: str, value: _Value) -> bool:
    """Return whether *sentence* gives another value beside *value*, introduced by "or", "maybe", "it could be"."""
    if not ALTERNATIVELY.match(sentence):
        return False
    return _differs(_clause_value(_SENTENCE.split(sentence, maxsplit=1)[0]), value)


def _differs(other: _Value, value: _Value) -> bool:
    if other is None or other is _NoValue.FORMULA:
        return False
    return not (isinstance(other, Quantity) and isinstance(value, Quantity) and value.agrees(other))


# ---- unmarked text ---------------------------------------------------------------------------------------------------


def _unmarked(text: str) -> NumberReading:
    """Return the number in bold in the last paragraph, or else the last number of the text."""
    if is_undecided(text) or _leaves_the_rest(text):
        return NumberReading(None)
    if len(text) <= _LONGEST_PARAGRAPH:
        text = _without_asides(text)
    bold = _bold_value(text)
    if bold is not None:
        return bold
    tried = 0
    lines = text.split("\n")
    remarks = [line for line in lines if _REMARK.match(line)]
    for line in [*remarks, *(line for line in lines if not _REMARK.match(line))][::-1]:
        if any(character.isdigit() for character in line):
            sentences = _SENTENCE.split(line)
            for i in reversed(range(len(sentences))):
                tried += 1
                if tried > _MOST_TRIED:
                    return NumberReading(None)
                value = _last_value(sentences[i])
                if isinstance(value, Quantity) and _only_instructs(sentences[i]):
                    return NumberReading(None)
                if value is None or value is _NoValue.FORMULA:
                    continue
                if isinstance(value, Quantity) and i and _continues(sentences[i - 1], sentences[i], value):
                    value = _NoValue.SEVERAL
                return _reading(value, sentences[i])
    if len(text) <= _SHORT:
        return _reading(_stated(text), text)
    return NumberReading(None)


def _without_asides(text: str) -> str:
    """Return *text* without sentences in parentheses, if it has numbers outside of them; alternatives stay."""
    outside = _ASIDE_SENTENCE.sub(
        lambda match: match[0] if _ALTERNATIVE_ASIDE.match(match[0]) or reopening_positions(match[0]) else " ", text
    )
    return outside if any(map(str.isdigit, outside)) and not statements(text) else text


def _leaves_the_rest(text: str) -> bool:
    """Return whether *text* ends with a step that the reader is to do, without its result."""
    end = text[-300:]
    asked = list(_OPERATE.finditer(end))
    return (
        bool(asked) and _RESULT.search(rest := end[asked[-1].start() :]) is None and len(find_numbers(plain(rest))) < 3
    )


def _only_instructs(sentence: str) -> bool:
    """Return whether *sentence* tells what to do with its numbers and gives no result."""
    sentence = sentence[-_LONGEST_SENTENCE:]
    asked = _INSTRUCTION.search(sentence)
    return asked is not None and _RESULT.search(sentence) is None


def _continues(before: str, last: str, value: Quantity) -> bool:
    """Return whether the sentence *last* gives its value as an alternative to one in the sentence *before* it."""
    doubtful = (_MODAL.search(last) and _MODAL.search(before)) or (before.endswith("?") and last.endswith("?"))
    if not ALTERNATIVELY.match(last) and not doubtful:
        return False
    return _differs(_last_value(before), value)


def _bold_value(text: str) -> NumberReading | None:
    """Return the one value that the last paragraph has in bold, if it is not a step on the way to a later result."""
    paragraph = text[text.rfind("\n\n") + 1 :][-_LONGEST_PARAGRAPH:]
    bold = [match for match in _BOLD.finditer(paragraph) if _is_value(match[1])]
    if not bold or "=" in paragraph[bold[-1].end() :] or ALTERNATIVELY.match(paragraph[bold[-1].end() :]):
        return None
    values = [_clause_value(match[1]) for match in bold]
    first = values[-1]
    if not isinstance(first, Quantity) or any(_differs(value, first) for value in values):
        return None
    return _reading(first, bold[-1][1])


def _is_value(said: str) -> bool:
    """Return whether a text in bold is a number, with a unit at most."""
    return (
        re.match(r"\W*(?:[A-Z]{2,3}\s?)?[$€£¥₹]?\d", said) is not None and len(said) <= 60 and said.strip()[-1] != ":"
    )


def _last_value(sentence: str) -> _Value:
    """Return the last number of a sentence of prose; SEVERAL if it is one of several alternatives."""
    sentence = sentence[-_LONGEST_SENTENCE:]
    versions = statement_versions(sentence)
    version = next((version for version in versions if find_numbers(plain(version))), sentence)
    text = plain(_DENIED.sub(" ", version))
    text, other = _without_other_unit(text)
    if _ASIDE_WITH_ALTERNATIVE.search(text):
        text = _ASIDE_WITH_ALTERNATIVE.sub(" or ", text)
    elif find_numbers(outside := _ASIDE.sub(" ", text)):
        text = outside
    if _depends(text):
        return _NoValue.SEVERAL
    if find_numbers(result := _REASON.split(text, maxsplit=1)[0]):
        text = result
    if _TUPLE.search(text) or _PLUS_MINUS.search(text):
        return _NoValue.SEVERAL
    if _ASSIGNMENTS.search(text):
        return _common([_side(part) for part in _ASSIGNMENTS.split(text)])
    if _mentions_another(text):
        return _NoValue.SEVERAL
    sides = _EQUALS.split(text)
    if len(sides) > 1 and _side(sides[-1]) is _NoValue.FORMULA:
        return _last_linked(sides[-2])
    value = _last_linked(sides[-1]) or _last_linked(text)
    if isinstance(value, Quantity) and other is not None:
        return replace(value, rounded=other)
    if isinstance(value, Quantity) and len(sides) > 1 and isinstance(before := _side(sides[-2]), Quantity):
        return _exact([before, value])
    return value


def _without_other_unit(text: str) -> tuple[str, Fraction | None]:
    """Return *text* without an aside that repeats its number in another unit or rounded, and the number in it."""
    asides = list(_ASIDE.finditer(text))
    found = find_numbers(text) if asides else []
    for aside in asides[:_MOST_TRIED]:
        inside = [item for item in found if aside.start() <= item.start < aside.end()]
        before = [item for item in found if item.end <= aside.start()]
        if len(inside) != 1 or not before or aside.start() - before[-1].end > _LONGEST_LINK:
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
    return len(values) > 1 and any(_differs(value, values[0]) for value in values[1:])


def _in_formula(text: str, item: Found) -> bool:
    """Return whether the number *item* is an operand beside a variable."""
    return (
        _AFTER_VARIABLE.search(text[max(item.start - 8, 0) : item.start]) is not None
        or _BEFORE_VARIABLE.match(text, item.end) is not None
    )


def _last_linked(text: str) -> _Value:
    found = find_numbers(text)
    found = [item for item in found if not item.quantity.ordinal] or found
    if not found:
        return None
    while len(found) > 1 and _is_circumstance(text, found[-2], found[-1]):
        found.pop()
    if _in_formula(text, found[-1]):
        return _NoValue.FORMULA
    last = found[-1]
    value, start, _ = last
    for item in reversed(found[:-1]):
        gap = text[item.end : start]
        if (
            len(gap) <= _LONGEST_LINK
            and _OPERATOR.search(gap)
            and not re.search(r"[^\W\d_]{16}|\w\s\w+\s\w+\s\w+", gap)
        ):
            return _NoValue.FORMULA
        if not gap.strip() or not _links(gap):
            break
        if _restates(text, item, last):
            return replace(item.quantity, rounded=value.value)
        if not value.agrees(item.quantity):
            return _NoValue.SEVERAL
        start = item.start
    return value


def _is_circumstance(text: str, before: Found, last: Found) -> bool:
    """Return whether *last* only says when or of how many the number *before* it holds."""
    match = _CIRCUMSTANCE.search(text[max(before.end, last.start - 40) : last.start])
    if match is None:
        return False
    if not match[0].lower().startswith(("in", "for", "over", "during", "from", "with", "on", "of")):
        return True
    money = "$€£¥₹"
    return any(sign in text[before.start : before.end] for sign in money) or (
        not match[0].lower().startswith(("from", "with", "on", "of")) and bool(_TIME.match(text, last.end))
    )


# ---- one clause ------------------------------------------------------------------------------------------------------


def _clause_value(said: str) -> _Value:
    """Return the value of a clause: 5 of "5, since 2 = 2", 42 of "6 * 7 = 42" and "42 = 6 * 7", SEVERAL of "3 or 4"."""
    text = plain(_DENIED.sub(" ", said[:_LONGEST_STATEMENT]))
    if not any(character.isdigit() for character in text):
        text = plain(words_to_digits(said[:_LONGEST_STATEMENT]))
    text, other = _without_other_unit(text)
    text = _ASIDE_WITH_ALTERNATIVE.sub(" or ", text)
    found = find_numbers(text)
    if not found:
        return None
    if _PLUS_MINUS.search(text):
        return _NoValue.SEVERAL
    listed = _TUPLE.search(text)
    if listed and listed.start() <= found[0].start:
        return _NoValue.SEVERAL
    if _mentions_another(text):
        return _NoValue.SEVERAL
    for clause in (_EXPLANATION.split(text, maxsplit=1)[0], text):
        value = _equation_value(clause)
        if value is not None:
            return replace(value, rounded=other) if other is not None and isinstance(value, Quantity) else value
    return None


def _mentions_another(text: str) -> bool:
    """Return whether a sentence calls a second value possible: "18, although 19 is possible"."""
    found = find_numbers(text)
    return any(
        not a.quantity.agrees(b.quantity)
        and (_ALSO_BEFORE.search(text[a.end : b.start]) or _ALSO_AFTER.match(text, b.end))
        for a, b in pairwise(found)
    )


def _equation_value(clause: str) -> _Value:
    """Return the value of the last side of an equation that is a number, or of a clause without an equals sign."""
    if _ASSIGNMENTS.search(clause):
        return _common([_side(part) for part in _ASSIGNMENTS.split(clause)])
    begins = re.match(r"[\W_]{0,9}(?:[a-z]{1,4}\b)?[\W_]{0,9}\d", clause, re.IGNORECASE)
    sides = [_side(side) for side in (_EQUALS if begins else _IS).split(clause)]
    worked_out = [side for side in sides if side is not None and side is not _NoValue.FORMULA]
    if worked_out:
        return _exact(worked_out)
    return _NoValue.FORMULA if _NoValue.FORMULA in sides else None


def _exact(sides: Sequence[_Value]) -> _Value:
    """Return the last of equal sides, or the fraction before it that it rounds."""
    last, before = sides[-1], sides[-2] if len(sides) > 1 else None
    if not isinstance(last, Quantity) or not isinstance(before, Quantity) or before.value.denominator == 1:
        return last
    rounded = 0 < abs(before.value - last.value) <= abs(before.value) / 100
    return replace(before, rounded=last.value) if rounded else last


def _side(text: str) -> _Value:
    """Return the value of one side of an equation: its first number, if others only say something about that."""
    found = find_numbers(text)
    if not found:
        return None
    if _SYMBOLIC.search(text):
        return _NoValue.FORMULA
    if _in_formula(text, found[0]):
        return _NoValue.FORMULA
    first = found[0]
    value, _, end = first
    for item in found[1:]:
        gap = text[end : item.start]
        if _OPERATOR.search(gap) or (item.quantity.value < 0 and not gap.strip()):
            return _NoValue.FORMULA
        if not _links(gap):
            break
        if _restates(text, first, item):
            return replace(value, rounded=item.quantity.value)
        if not value.agrees(item.quantity):
            return _NoValue.SEVERAL
        end = item.end
    return value


def _links(gap: str) -> bool:
    """Return whether *gap*, between two numbers, makes them alternatives, a range or a list."""
    if gap == ":" or not gap.strip():
        return True
    return len(gap) <= _LONGEST_LINK and not _RELATION.search(gap) and _LINK.fullmatch(gap) is not None


def _common(values: Sequence[_Value]) -> _Value:
    """Return the value that all of *values* agree on; parts without a number do not count."""
    values = [value for value in values if value is not None]
    first = values[0] if values else None
    return _NoValue.SEVERAL if any(_differs(value, first) for value in values[1:]) else first
