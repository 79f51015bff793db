"""Normalization of a model's text: line ends, invisible characters, reasoning."""

import re
from collections.abc import Iterator
from functools import lru_cache

from hub.extraction import fences

# Scripts that are written without spaces, as ranges of a regular expression: Thai, Japanese, Chinese, Korean.
UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_INVISIBLE = dict.fromkeys(map(ord, "\ufeff\u200b\u2060\u00ad"))
_REASONING_TAGS = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis"
_OPEN = rf"<(?:{_REASONING_TAGS})>|◁think▷|\[THINK\]|<\|begin_of_thought\|>"
_CLOSE = rf"</(?:{_REASONING_TAGS})>|◁/think▷|\[/THINK\]|<\|end_of_thought\|>"
_MARKS = "<◁["  # all of these tags begin with one of these characters
# A tag after a quotation mark is mentioned in code or prose, and does not begin reasoning.
_OPENING = re.compile(rf"(?<![\"'`\\])(?:{_OPEN})", re.IGNORECASE)
_CLOSING = re.compile(_CLOSE, re.IGNORECASE)
_ORPHAN = re.compile(rf"^[ \t]*(?:{_CLOSE})|(?<![\"'`\\])(?:{_CLOSE})[ \t]*$", re.IGNORECASE | re.MULTILINE)


def clean(text: str) -> str:
    """Return *text* with `\\n` line ends, without byte order marks, zero-width spaces and soft hyphens."""
    return with_line_feeds(text).translate(_INVISIBLE)


def with_line_feeds(text: str) -> str:
    """Return *text* with `\\n` line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def without_reasoning(text: str) -> str:
    """Return *text* without reasoning blocks.

    A block ends at its first closing tag, or at the end of the text if there is none. A closing tag without an
    opening one, at the beginning or end of a line, ends reasoning that began with the text (some endpoints omit the
    opening tag). Tags in quotes are ignored, and so is a tag without a closing one in a code block.
    """
    if not any(mark in text for mark in _MARKS):
        return text.strip("\n")
    kept: list[str] = []
    position = 0
    for start, end in _blocks(text):
        kept.append(text[position:start])
        position = end
    rest = "".join([*kept, text[position:]])
    orphans = list(_ORPHAN.finditer(rest))
    return (rest[orphans[-1].end() :] if orphans else rest).strip("\n")


def reasoning_spans(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of the reasoning that `without_reasoning` leaves out, tags included."""
    spans = list(_blocks(text))
    if not spans:
        orphans = list(_ORPHAN.finditer(text))
        return [(0, orphans[-1].end())] if orphans else []
    return spans


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the blocks that begin with an opening tag."""
    position = 0
    while opening := _OPENING.search(text, position):
        closing = _CLOSING.search(text, opening.end())
        if closing is None:
            before, _ = fences.split(text[position : opening.start()])
            if not before or before[-1].closed:
                yield opening.start(), len(text)
            return
        position = closing.end()
        yield opening.start(), position


@lru_cache(maxsize=64)  # several rules read the same answer, some of them more than once
def answer_text(text: str) -> str:
    """Return *text* cleaned, without reasoning and outer white space, as answers are extracted from it."""
    return without_reasoning(clean(text)).strip()


_STRUCK = re.compile(r"(?<![~\w])~~(?=[^\s~])[^~\n]{1,400}(?<!\s)~~(?![~\w])")


def without_struck(text: str) -> str:
    """Return *text* without parts that are struck through, which the answer withdraws: "~~41~~ 42"."""
    return _STRUCK.sub("", text) if "~~" in text else text
