"""Helpers of scorers that compare text: targets, normalization and quoting."""

import re
import unicodedata
from itertools import takewhile

from hub import extraction
from hub.extraction.fences import split
from hub.scorers.base import Submission

SHOWN = 200  # characters of an answer that a reason quotes
_SHOWN_BEFORE = 30  # characters that a reason shows before the first difference of two texts
PATTERN_TIMEOUT_S = 2.0  # limit of a search for a pattern of a bundle in a text of a model


# Characters that models and editors write in place of plain ones, and that NFKC keeps.
_PLAIN = str.maketrans(dict.fromkeys("‘’‛′", "'") | dict.fromkeys("“”„‟", '"') | dict.fromkeys("‐‑‒–−", "-"))
_FRACTION = re.compile(r"(?<!\d)[¼-¾⅐-⅞]")  # 1/2, but 2½ is not 21/2
_POWER = re.compile(r"(?<=\d)(?=[⁰¹²³⁴-⁹⁺⁻])")  # 5² is not 52; a unit such as m² may be written as m2
# The power of a variable or of a bracket, which may be written x^2 instead.
_LETTER_POWER = re.compile(r"(?<=[A-Za-zα-ω)\]}])(?=[⁰¹²³⁴-⁹⁺⁻])")
# A part in bold, not the powers in 2**3**2 or the arguments in f(**a, **b).
_BOLD = re.compile(r"(?<![\w)\]*])(?<!\w\()\*\*(?=[^\s*])([^*\n]+)(?<=[^\s*])\*\*(?![\w*])")
_SIGN = re.compile(r"(?<![\w.)\]])-(?=[$€£]?\.?\d)")
_SIGN_AT_END = re.compile(r"(?:^|[\s(\[{=:,<>≤≥$*_\"'])-\Z")  # of -5, not of 3-5 and COVID-19
# After a number: 10^3, 5e3, 5 × 10^3.
_POWER_MARK = re.compile(r"(?:\^|\*\*)\{?-?\d|[eE][-+]?\d{1,3}(?!\w)|\s?(?:[×·*]|\\times|\\cdot)\s?10(?:\^|\*\*)")
_EXPONENT_MARK = re.compile(r"(?<![\w.])\d+(?:\.\d+)?[eE][-+]?\Z")  # before the 10 of 1e10, not that of S01E10
# 5/6, 2 5/6 and \frac{5}{6}, but not dates and years such as 5/6/2024 and 2023/24.
_FRACTION_OF_DIGITS = re.compile(
    r"(?<![\w/.,])(?:\d{1,3} )?\d{1,3}\s?[/⁄]\s?\d{1,3}(?![\w/⁄]|[.,]\d)|\\[dtc]?frac\{\d+\}\{\d+\}"
)
_LEADING_POINT = re.compile(r"(?<![\w.)\]])\.(?=\d)")  # .5 is not 5
_COMPARISON = re.compile(r"(?<![<>=!-])[<>]=(?![=>])")  # >= is ≥; the arrows => and <=> stay
_CODE_SPAN = re.compile(r"(?<![\w`])`([^`\n]+)`(?![\w`])")
_MATHS = re.compile(r"(?<![\w\\$])\$(?![\s$])([^$\n]+)(?<![\s\\])\$(?![\w$])|\\\(([^\n]{1,400}?)\\\)")
_TEX_TEXT = re.compile(r"\\(?:text|mathrm|ce)\{([^{}]*)\}")
_SUBSCRIPT = re.compile(r"(?<=[A-Za-z)\]}])_(?:(\d)|\{(\d+)\})")
_SUBSCRIPT_TAG = re.compile(r"<sub>(\d+)</sub>")
_NUMERALS = "0123456789.,'"
_IN_NUMBER = 40  # characters beside a target that may belong to the same number
_NUMBER = re.compile(r"\d+(?:\.\d+)?|\d{1,3}(?:[,']\d{3})+(?:\.\d+)?")


def spellings(value: object) -> list[str]:
    """Return the texts of the targets; a target that is no text may be written in two ways: true or True, 3 or 3.0."""
    items = value if isinstance(value, list) else [value]
    more = [str(item).lower() for item in items if isinstance(item, bool)]
    more += [str(int(item)) for item in items if isinstance(item, float) and item.is_integer()]
    more += [f"{item}.0" for item in items if isinstance(item, int) and not isinstance(item, bool)]
    return targets(value) + more


def targets(value: object) -> list[str]:
    """Return one or several targets as a list of texts."""
    items = value if isinstance(value, list) else [value]
    return [item if isinstance(item, str) else str(item) for item in items if item is not None]


def require_targets(value: object) -> object:
    """Return *value* if it has a target and none is empty, because an empty answer would pass. Raises ValueError."""
    found = targets(value)
    if not found or not all(extraction.clean(target).strip() for target in found):
        raise ValueError("a target is missing or empty; give each case a non-empty text, or the rule a `target`")
    return value


def quoted(text: str, *, exactly: bool = False) -> str:
    """Return *text* for a reason: quoted, on one line, shortened. *exactly*: with its white space and line breaks."""
    flat = text if exactly else " ".join(text.split())
    return repr(flat if len(flat) <= SHOWN else flat[: SHOWN - 1] + "…")


def quoted_difference(expected: str, found: str) -> tuple[str, str]:
    """Return two texts that differ for a reason: only the parts around the difference if they would look the same."""
    if quoted(expected) != quoted(found):
        return quoted(expected), quoted(found)
    return excerpt(expected, found), excerpt(found, expected)


def excerpt(text: str, other: str) -> str:
    """Return the part of *text* around the first difference from *other*, with all characters visible."""
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))
    start = max(equal - _SHOWN_BEFORE, 0)
    return f"{'…' if start else ''}{text[start : start + 2 * _SHOWN_BEFORE]!a}"


def compared_text(submission: Submission, extract: str) -> str:
    """Return the part of the answer to compare: `answer` (what is marked as final, else all of it) or `whole`."""
    text = extraction.answer_text(submission.text)
    if extract == "answer":
        return (extraction.final_answer(submission.text) or text).strip()
    return text


def without_emphasis(text: str) -> str:
    """Return *text* without the marks around parts in bold."""
    return _BOLD.sub(r"\1", text)


def forms(text: str, *, ignore_case: bool, ignore_punctuation: bool) -> set[str]:
    """Return the normalized text, also with each power as in TeX: x² may be written x^2, and m² as m2 and m^2."""
    return {
        normalized(written, ignore_case=ignore_case, ignore_punctuation=ignore_punctuation)
        for written in (text, _LETTER_POWER.sub("^", text))
    }


_ESCAPED = re.compile(r"\\(?=[_*%$#&~])")  # a mark that Markdown or TeX would read otherwise: foo\_bar, 50\%


def prose_as_shown(text: str) -> str:
    """Return the prose of *text* as a reader sees it: without fenced blocks, marks of bold parts, of code in sentences
    and of formulas, without backslashes before marks (foo\\_bar), and with subscripts as digits ($H_2O$ is H2O).
    """
    _, prose = split(text)
    prose = _SUBSCRIPT_TAG.sub(r"\1", _MATHS.sub(lambda found: _shown_formula(found[1] or found[2]), prose))
    return _CODE_SPAN.sub(r"\1", _ESCAPED.sub("", without_emphasis(prose)))


def _shown_formula(formula: str) -> str:
    text = _SUBSCRIPT.sub(r"\1\2", _TEX_TEXT.sub(r"\1", formula))
    return re.sub(r"\\(?=[%$&#])", "", re.sub(r"\^\{(-?\w)\}", r"^\1", text.replace("{,}", ",")))


def contains(text: str, target: str) -> bool:
    """Return whether *text* contains *target*, but not as a part of another number.

    "15 km", "-5 km" and "1/5 km" lack "5 km".
    """
    return any(
        not (
            target[:1].isdigit()
            and (
                _is_within_number(text, start)
                or _SIGN_AT_END.search(text[max(start - 2, 0) : start])
                or _EXPONENT_MARK.search(text[max(start - _IN_NUMBER, 0) : start])
            )
        )
        and not (target[-1:].isdigit() and (_is_within_number(text, end) or _POWER_MARK.match(text, end)))
        for match in re.finditer(f"(?={re.escape(target)})", text)
        for start, end in [(match.start(), match.start() + len(target))]
    )


def _is_within_number(text: str, position: int) -> bool:
    """Return whether *position* is within a fraction, or between two digits of a number.

    The zeros of 05, 5.0 and 0.50 change no value. Dates and lists such as 1.2.2024 and 1,2,3 are several numbers.
    """
    start = max(position - _IN_NUMBER, 0)
    if any(
        start + found.start() < position < start + found.end()
        for found in _FRACTION_OF_DIGITS.finditer(text[start : position + _IN_NUMBER])
    ):
        return True
    before, after = text[max(position - _IN_NUMBER, 0) : position], text[position : position + _IN_NUMBER]
    head = before[len(before.rstrip(_NUMERALS)) :].lstrip(".,'")
    tail = after[: len(after) - len(after.lstrip(_NUMERALS))].rstrip(".,'")
    if not head.strip("0") or not tail or re.fullmatch(r"\.0+", tail) or (head.count(".") == 1 and not tail.strip("0")):
        return False
    between_digits = head[-1].isdigit() and tail[0].isdigit()
    return between_digits or _NUMBER.fullmatch(head + tail) is not None


def normalized(text: str, *, ignore_case: bool, ignore_punctuation: bool) -> str:
    """Return *text* normalized: Unicode NFKC, plain quotes and hyphens, single spaces, optionally without case and
    punctuation. Invisible characters are removed. The sign of a number is no punctuation; a text of punctuation
    alone stays.
    """
    text = _FRACTION.sub(lambda found: unicodedata.normalize("NFKC", found[0]).replace("⁄", "/"), text)
    text = unicodedata.normalize("NFKC", _POWER.sub("^", extraction.clean(text))).translate(_PLAIN)
    text = _COMPARISON.sub(lambda found: "≤" if found[0] == "<=" else "≥", text)
    if ignore_punctuation and any(map(str.isalnum, text)):
        text = _LEADING_POINT.sub("0.", _SIGN.sub("−", text))
        text = "".join(" " if unicodedata.category(c).startswith("P") else c for c in text)
    if ignore_case:
        text = text.casefold()
    return re.sub(r"\s+", " ", text).strip()
