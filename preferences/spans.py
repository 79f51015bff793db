"""Places in a response's text: code-point offsets, quotes found again, and the texts that can be quoted. Pure."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hub.protocols.calls import Message

CONTEXT = 32  # code points of prefix and suffix


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A place in the text of `messages[message]`: offsets in code points, with the W3C text-quote selector."""

    message: int
    start: int
    end: int
    quote: str
    prefix: str
    suffix: str
    text_hash: str


def text_of(message: Message) -> str:
    """What a message says, as text; content parts are joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in content)
    return content if isinstance(content, str) else ""


def text_hash(text: str) -> str:
    """SHA-256 of *text*; halves of surrogate pairs, which UTF-8 cannot carry, count as their escapes."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def span_at(text: str, start: int, end: int, message: int) -> Span:
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
    )


def find_quote(messages: Sequence[Message], quote: str) -> Span | None:
    """Where an assistant's turn says *quote*, the last turn first; None where none does.

    Verbatim, and failing that with any run of white space for any other: models wrap lines anew when they quote.
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
    return None
