"""Extraction of the number in an answer; answers with several different numbers are detected."""

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from hub.extraction.corrections import ALTERNATIVELY, withdrawal_end
from hub.extraction.json_values import only_json_value
from hub.extraction.marks import Marker, Statement
from hub.extraction.normalization import answer_text, without_struck
from hub.extraction.numeric.bounds import is_limit, is_strict_limit
from hub.extraction.numeric.clauses import MOST_TRIED, clause_value, offers_alternative, statement_value
from hub.extraction.numeric.links import LINK, LONGEST_LINK
from hub.extraction.numeric.prose import read_prose
from hub.extraction.numeric.quantities import Quantity
from hub.extraction.numeric.values import CERTAINTIES, NoValue, NumberReading, differs, make_reading
from hub.extraction.statements import statements

_NOTHING_ELSE = re.compile(r"\d{1,18}(?:\.\d{1,18})?", re.ASCII)
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s")
_NEXT_BULLET = re.compile(r"[ \t]*\n[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]([^\n]*)")
_FACTORIAL = re.compile(r"(?<=[\d)}])\s?!")
# Emphasis around a number: "__42__", "_42 km_".
_UNDERSCORES = re.compile(r"(?<![\w\\)\]}])(__?)([-−$€£]{0,2}\d(?:[^_\n]{0,80}[^_\s])?)\1(?!\w)")
# A sign at the beginning of a formula, apart from its number: "$- 5$". Elsewhere the dash may be a bullet.
_FORMULA_SIGN = re.compile(r"(?P<opening>(?<![\w)\]}%$])\$\$?|\\[(\[])\s{0,3}[-−]\s(?=[\d.])")
# The sign of a stated answer, apart from its number: "Answer: - 5". At the beginning of a line it is a bullet.
_STATED_SIGN = re.compile(r"[-−–]\s{1,3}(?=[$€£]?[\d.])")
_REFUSAL = re.compile(
    r"\b(?:cannot|can not|can['’]t|impossible|undetermined|indeterminate|undefined|unknown|insufficient|not enough"
    r"|not (?:sure|certain|possible)|no (?:solution|answer)|don['’]t know|do not know|none|n/a|depends)\b",
    re.IGNORECASE,
)


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

    This is the number of the decisive statement (see `statements`); without one, the number in bold in the last
    paragraph; without that, the last number of the text. Alternatives ("18 or 19"), ranges, lists and tuples of
    different values give none.
    """
    if _NOTHING_ELSE.fullmatch(text):
        return NumberReading(Quantity(Fraction(text)), text)  # most targets consist of a number
    text = _UNDERSCORES.sub(_with_asterisks, without_struck(answer_text(text)).strip())
    text = _FORMULA_SIGN.sub(r"\g<opening>-", text)
    stated = statements(text)
    if stated and (withdrawn := withdrawal_end(text, max(s.end for s in stated))) >= 0:
        later = read_prose(text[withdrawn:])
        if later.quantity or later.several:
            return later
    for statement in stated[:MOST_TRIED]:
        stated_text = _with_sign(text, statement)
        if _is_boxed(text, statement):
            stated_text = _FACTORIAL.sub(r"\\factorial ", stated_text)
        value = statement_value(stated_text)
        # "The answer is at least 42" may answer a question for the smallest number; "under 42" answers none.
        bounds = is_limit if statement.mark > Marker.SENTENCE else is_strict_limit
        if value is not None and bounds(statement.text):
            value = NoValue.SEVERAL
        refused = _REFUSAL.search(statement.text)
        if refused and statement.mark > Marker.DECISION and (value is None or _begins(statement.text, refused)):
            return NumberReading(None, statement.text, marked=True)
        if isinstance(value, Quantity) and _has_alternative(text, statement, stated, value):
            value = NoValue.SEVERAL
        if value is not None and (value is not NoValue.FORMULA or statement.mark > Marker.SENTENCE):
            return make_reading(value, statement.text, marked=True)
    if any(statement.mark == Marker.FORMAT and statement.text == "null" for statement in stated):
        return NumberReading(None)
    return _read_object(text) or read_prose(text)


def _read_object(text: str) -> NumberReading | None:
    """Read the number of a text that is a JSON object without an answer: the one of "value", or its only number."""
    value = only_json_value(text)
    if not isinstance(value, dict):
        return None
    members = {key.casefold(): member for key, member in value.items()}
    numbers = {
        key: Fraction(str(member))  # the decimal value of a float
        for key, member in members.items()
        if isinstance(member, int | float)
        and not isinstance(member, bool)
        and abs(member) != math.inf  # 1e400
        and key not in CERTAINTIES
    }
    if not numbers:
        return None
    if "value" in numbers or len(set(numbers.values())) == 1:
        return NumberReading(Quantity(numbers.get("value", next(iter(numbers.values())))), text)
    return NumberReading(None, text, several=True)


def _with_asterisks(match: re.Match[str]) -> str:
    marks = "*" * len(match[1])
    return f"{marks}{match[2]}{marks}"


def _with_sign(text: str, statement: Statement) -> str:
    """Return the text of *statement*, its minus sign joined to its number unless that begins a line of *text*."""
    sign = _STATED_SIGN.match(statement.text)
    begins_line = not text[: statement.start].rpartition("\n")[2].strip()
    return statement.text if sign is None or begins_line else f"-{statement.text[sign.end() :]}"


def _is_boxed(text: str, statement: Statement) -> bool:
    return text.startswith(("\\boxed", "\\fbox"), statement.start)


def _begins(text: str, match: re.Match[str]) -> bool:
    """Return whether only marks precede *match* in *text*: "unknown; there were 42 people"."""
    return not any(map(str.isalnum, text[: match.start()]))


def _has_alternative(text: str, chosen: Statement, stated: Sequence[Statement], value: Quantity) -> bool:
    r"""Return whether the text beside *chosen* gives another value: "18. Or 19.", "\boxed{18} or \boxed{19}"."""
    after = text[chosen.end : chosen.end + 200]
    if offers_alternative(after.lstrip("$).*_}\\ \n"), value):
        return True
    bullet = _NEXT_BULLET.match(after)
    if bullet and _BULLET.match(chosen.text) and differs(clause_value(bullet[1]), value):
        return True
    if chosen.mark == Marker.FORMAT:
        before = text[max(chosen.start - 60, 0) : chosen.start]
        before_match = re.search(r"(?:^|\s)(\S*\d\S*)[\s$\\(*]*\bor[\s$\\(*]*$", before)
        if before_match and differs(clause_value(before_match[1]), value):
            return True
    return any(
        other.end <= chosen.start
        and (LINK.fullmatch(gap := text[other.end : chosen.start]) or ALTERNATIVELY.match(gap))
        and differs(statement_value(other.text), value)
        for other in stated
        if other.mark >= Marker.SENTENCE and chosen.start - other.end < LONGEST_LINK
    )
