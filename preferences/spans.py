"""Places in a response's text: code-point offsets, quotes found again, and the texts that can be quoted. Pure."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hub.protocols.calls import Message
from hub.protocols.messages import call_text, text_of

CONTEXT = 32  # code points of prefix and suffix
_LONGEST_CALL_QUOTE = 2000  # characters; a pattern is made of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A place in the text of `messages[message]`: offsets in code points, with the W3C text-quote selector.

    `call`: the place is in the text of that tool call of the message, as `call_text` has it.
    """

    message: int
    start: int
    end: int
    quote: str
    prefix: str
    suffix: str
    text_hash: str
    call: int | None = None


def text_at(messages: Sequence[Message], message: int, call: int | None) -> str:
    """The text of a message, or of one of its calls. Raises ValueError where there is none."""
    if not 0 <= message < len(messages):
        raise ValueError("A mark is in a message that the response does not have.")
    if call is None:
        return text_of(messages[message])
    calls = messages[message].get("tool_calls") or []
    if not 0 <= call < len(calls):
        raise ValueError("A mark is in a tool call that the message does not have.")
    return call_text(calls[call])


def text_hash(text: str) -> str:
    """SHA-256 of *text*; halves of surrogate pairs, which UTF-8 cannot carry, count as their escapes."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def span_at(text: str, start: int, end: int, message: int, call: int | None = None) -> Span:
    """The span from *start* to *end*. Raises ValueError where it is empty or outside the text."""
    if not 0 <= start < end <= len(text):
        raise ValueError(f"There is no text from {start} to {end}; the answer has {len(text)} characters.")
    return Span(
        message=message,
        start=start,
        end=end,
        quote=text[start:end],
        prefix=text[max(0, start - CONTEXT) : start],
        suffix=text[end : end + CONTEXT],
        text_hash=text_hash(text),
        call=call,
    )


def find_quote(messages: Sequence[Message], quote: str) -> Span | None:
    """Where an assistant's turn says *quote*, the last turn first, its text before its calls; None where none does.

    Verbatim, and failing that with any run of white space for any other: models wrap lines anew when they quote. In
    calls white space does not count at all: models lay out JSON anew.
    """
    if not quote.strip():
        return None
    turns = [(i, text_of(m)) for i, m in enumerate(messages) if m.get("role") == "assistant"]
    for index, text in reversed(turns):
        at = text.find(quote)
        if at >= 0:
            return span_at(text, at, at + len(quote), index)
    pattern = re.compile(r"\s+".join(re.escape(word) for word in quote.split()))
    for index, text in reversed(turns):
        match = pattern.search(text)
        if match:
            return span_at(text, match.start(), match.end(), index)
    return _find_in_calls(messages, quote)


def _find_in_calls(messages: Sequence[Message], quote: str) -> Span | None:
    words = re.sub(r"^\s*calls\s+", "", quote)  # as the judge's prompt introduces a call
    characters = "".join(words.split())
    if not characters or len(characters) > _LONGEST_CALL_QUOTE:
        return None
    pattern = re.compile(r"\s*".join(map(re.escape, characters)))
    for index, message in reversed([*enumerate(messages)]):
        if message.get("role") != "assistant":
            continue
        for number, call in enumerate(message.get("tool_calls") or []):
            text = call_text(call)
            match = pattern.search(text)
            if match:
                return span_at(text, match.start(), match.end(), index, number)
    return None
