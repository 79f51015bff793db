"""The line of an answer whose code raised an exception or has a syntax error, for the pages to mark it."""

import re
from dataclasses import dataclass

from hub.protocols.messages import text_of
from hub.web.reading.highlighting import code_blocks
from runs.models import Response, Score

_LINE = re.compile(r"\(line (\d{1,6})\)\.?$")
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")  # as Python counts them; `splitlines` knows more ends of lines
_CODE_ERRORS = ("exception", "syntax_error")  # statuses whose message names a line of the answer, not of the tests


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorLine:
    """Line of an answer that made its code fail: `number` within the message, and the code-point span."""

    number: int
    code: str
    message: int
    start: int
    end: int


def without_line_number(reason: str) -> str:
    """Return a reason without the line number at its end, which counts from the start of the code."""
    return _LINE.sub("", reason).rstrip()


def find_error_line(response: Response, score: Score | None) -> ErrorLine | None:
    """Return the line named by the outcome, or None unless the code was taken from the only block of the answer."""
    ran = (score.execution if score else None) or {}
    named = _LINE.search(str(ran.get("message") or ""))
    if score is None or named is None or ran.get("status") not in _CODE_ERRORS:
        return None
    if score.detail.get("code", "fence") not in ("fence", "whole") or score.detail.get("with_prefix"):
        return None
    index, text = next(
        ((i, text_of(m)) for i, m in reversed([*enumerate(response.messages)]) if m.get("role") == "assistant"),
        (0, ""),
    )
    blocks = code_blocks(text)
    lines = _LINES.findall(blocks[0][1]) if len(blocks) == 1 else []
    line = int(named[1])
    if not 0 < line <= len(lines):
        return None
    start = blocks[0][0] + sum(map(len, lines[: line - 1]))
    code = lines[line - 1].rstrip("\r\n")
    number = text.count("\n", 0, start) + 1
    return ErrorLine(number=number, code=code.strip(), message=index, start=start, end=start + len(code))
