"""Answers in a format: \\boxed{42}, <answer>42</answer>, {"answer": 42}, #### 42."""

import json
import re
from bisect import bisect
from collections.abc import Iterator

from hub.extraction.marks import Marker, Statement

_TAGS = ("answer", "final_answer", "final-answer")
_TAG = re.compile(rf"<(?P<tag>{'|'.join(_TAGS)})>(?P<text>.*?)(?:</(?P=tag)>|\Z)", re.IGNORECASE | re.DOTALL)
_KEY = re.compile(
    r"[\"'](?P<key>(?:(?:final|correct|selected|chosen|best|my|your)[_ -]?)?(?:answer|choice|option|letter"
    r"|response|result))[\"']\s{0,9}:\s{0,9}"
    r"(?P<value>\"(?:[^\"\\\n]|\\.){0,4000}\"|'[^'\n]{0,4000}'"
    r"|\[[^\]]{0,400}\]|\{[^{}]{0,400}\}|[^\s,}\]\"'][^,}\]\n]{0,200})",
    re.IGNORECASE,
)
_LONGEST_OBJECT = 4000  # characters between two keys of an object
_KEYS = ("answer", "choice", "option", "letter", "response", "result")
_HASHES = re.compile(r"^####[ \t]*(?P<rest>[^\n#]+)$", re.MULTILINE)
_HASHED_NUMBER = re.compile(r"[-−$€£]*\d[\d,.]*\s*%?\s*")


def formatted_answers(text: str) -> Iterator[Statement]:
    """Yield the answers in *text* that are in one of the formats, in no particular order."""
    yield from _boxed(text)
    yield from _tagged(text)
    yield from _keyed(text)
    yield from _hashed(text)


def _boxed(text: str) -> Iterator[Statement]:
    end = len(text)
    for _ in range(2):  # the last one, and one before it that may be an alternative
        start = max(text.rfind("\\boxed", 0, end), text.rfind("\\fbox", 0, end))
        if start < 0:
            return
        opened = re.compile(r"\\(?:boxed|fbox)\s*(?:(\{)|([^\s{}$\\]+))").match(text, start)
        if opened and opened[1]:
            close = _closing_brace(text, opened.start(1))
            content = re.sub(r"^\s*([-−])\s+(?=[\d.$\\])", r"\1", text[opened.end() : close])  # a sign, not a bullet
            yield Statement(Marker.FORMAT, start, close + 1, content)
        elif opened:
            yield Statement(Marker.FORMAT, start, opened.end(), opened[2])
        end = start


def _closing_brace(text: str, open_at: int) -> int:
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, open_at):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    return len(text)


def _tagged(text: str) -> Iterator[Statement]:
    folded = text.lower()
    start = max(folded.rfind(f"<{tag}>") for tag in _TAGS)
    match = _TAG.match(text, start) if start >= 0 else None
    if match:
        yield Statement(Marker.FORMAT, match.start("text"), match.end(), match["text"])


def _keyed(text: str) -> Iterator[Statement]:
    """Yield the values of keys such as "answer" in JSON, complete or not, and in Python literals.

    A null is no answer if another key has a value, and neither is an object that has such a key itself. A key such as
    "option" or "result" marks its value less strongly if the same object has an answer.
    """
    if ":" not in text or not any(key in text.casefold() for key in _KEYS):
        return
    found: list[re.Match[str]] = []
    for match in _KEY.finditer(text):
        inner = list(_KEY.finditer(text, *match.span("value"))) if match["value"].startswith("{") else []
        found += inner or [match]
    given = [match for match in found if match["value"].strip() != "null"]
    given = given or found
    answers = [match for match in given if "answer" in match["key"].casefold()]
    starts = [match.start() for match in answers]
    for match in given:
        nearest = bisect(starts, match.start())
        around = answers[max(nearest - 1, 0) : nearest + 1]
        beside = match not in around and any(_same_object(text, match, answer) for answer in around)
        mark = Marker.LABEL if beside else Marker.FORMAT
        yield Statement(mark, match.start("value"), match.end(), _value(match["value"].strip()))


def _same_object(text: str, a: re.Match[str], b: re.Match[str]) -> bool:
    """Return whether no bracket between two keys ends or begins an object."""
    first, second = sorted((a, b), key=lambda match: match.start())
    if second.start() - first.end() > _LONGEST_OBJECT:
        return False
    return not re.search(r"[{}]", text[first.end() : second.start()])


def _value(written: str) -> str:
    if written[0] == "'":
        return written[1:-1]
    try:
        value = json.loads(written)
    except ValueError:
        return written
    if isinstance(value, list):
        return ", ".join(item if isinstance(item, str) else json.dumps(item) for item in value)
    return value if isinstance(value, str) else written


def _hashed(text: str) -> Iterator[Statement]:
    """Yield answers after GSM8K's ####. As it is also a heading, a text counts only on the last line."""
    for match in _HASHES.finditer(text):
        if _HASHED_NUMBER.fullmatch(match["rest"]):
            yield Statement(Marker.FORMAT, match.start("rest"), match.end(), match["rest"])
        elif not text[match.end() : match.end() + 1000].strip():
            yield Statement(Marker.HEADING_HASHES, match.start("rest"), match.end(), match["rest"])
