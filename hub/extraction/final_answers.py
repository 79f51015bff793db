"""The final answer of a text: the one that is marked most strongly."""

import re
from functools import lru_cache

from hub.extraction.marks import Marker, Statement
from hub.extraction.markup import strip_markup, without_full_stop
from hub.extraction.normalization import answer_text
from hub.extraction.statements import statements

# The verb at the end of "答えは東京です", which is no part of the answer.
_COPULA = re.compile(r"(?<=\S)\s?(?:です|でした|である|になります|입니다|이다)$")


@lru_cache(maxsize=64)
def final_answer(text: str) -> str | None:
    """Return the text marked as the answer, without the marks; None if no text is marked.

    The strongest mark decides; of equal marks, the last. If the text corrects itself ("Wait, …") and states an answer
    after that, earlier statements do not count.
    """
    found = _decisive(text)
    return _COPULA.sub("", strip_markup(found.text)) if found else None


_OR = re.compile(r"[\s$*_.,]{0,9}(?:or|oder|ou|或|или)[\s$*_]{0,9}", re.IGNORECASE)


def _decisive(text: str) -> Statement | None:
    """Return the statement that decides. If "or" joins it to a statement before it, return both as one.

    So \\boxed{41} or \\boxed{42} states "41 or 42".
    """
    stated = [s for s in statements(text) if s.mark != Marker.DECISION and strip_markup(s.text)]
    if not stated:
        return None
    found, source = _without_remark(stated[0]), answer_text(text)
    before = next((s for s in stated if _OR.fullmatch(source, s.end, found.start)), None)
    if before is None or strip_markup(before.text) == strip_markup(found.text):
        return found
    return Statement(found.mark, before.start, found.end, f"{before.text} or {found.text}")


# "Answer: **Paris**. It is in France.", "The answer is **Paris**, the capital.", "**Paris** because …": the emphasis,
# which began before the statement, ends with the answer.
_EMPHASIZED = re.compile(
    r"([^*\n]+)\*\*(?:[.!]\s+(?=\S)"
    r"|,?\s+(?:because|since|as|which|who|whose|where|not|located)\b[^*]*$|,\s+(?:the|an?|so|also|in|on)\b[^*]*$)"
)


def _without_remark(statement: Statement) -> Statement:
    """Return *statement* without the sentence or the clause that follows its text in bold."""
    bold = _EMPHASIZED.match(statement.text)
    if bold is None or statement.mark == Marker.FORMAT:
        return statement
    return Statement(statement.mark, statement.start, statement.start + bold.end(1), bold[1])


_MARKS_BEFORE = re.compile(r"(?:(?<!#)#{1,6}[ \t]+)?[*_`#>]*$")  # also the sign of a comment: "Answer: # comment"
_LONGEST_MARKS = 80  # characters


def final_answer_as_written(text: str) -> str:
    """Return the text marked as the answer, with characters around it that may belong to it, as in `__init__`.

    Without a marked answer, return the whole text. Backticks and a final full stop are removed.
    """
    source = answer_text(text)
    found = _decisive(text)
    if found and found.mark == Marker.FORMAT:
        source = found.text
    elif found:
        before = _MARKS_BEFORE.search(source, max(found.start - _LONGEST_MARKS, 0), found.start)
        source = source[before.start() if before else found.start : found.end]
    return without_full_stop(source.strip()).strip("`").strip()
