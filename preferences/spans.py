"""Spans of a response: code-point offsets, finding quotes, and the texts that can be quoted. Pure functions."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hub.protocols.messages import Message, call_text, calls_of, text_of

CONTEXT = 32  # code points of prefix and suffix
_LONGEST_CALL_QUOTE = 2000  # characters; longer quotes would make too large a regular expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Span in the text of `messages[message]`: offsets in code points, with the W3C text-quote selector.

    If `call` is set, the span is in the text of that tool call of the message, as returned by `call_text`.
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
    """Return the text of a message or of one of its tool calls. Raises ValueError if it does not exist."""
    if not 0 <= message < len(messages):
        raise ValueError("A mark refers to a message that does not exist. Reload the page and mark again.")
    if call is None:
        return text_of(messages[message])
    calls = calls_of(messages[message])
    if not 0 <= call < len(calls):
        raise ValueError("A mark refers to a tool call that does not exist. Reload the page and mark again.")
    return call_text(calls[call])


def text_hash(text: str) -> str:
    """Return the SHA-256 of *text*. Lone surrogates, which UTF-8 cannot encode, are hashed as escapes."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def span_at(text: str, start: int, end: int, message: int, call: int | None = None) -> Span:
    """Return the span from *start* to *end*. Raises ValueError if it is empty or outside the text."""
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


def find_quote(messages: Sequence[Message], quote: str, *, start: int = 0) -> Span | None:
    """Return the span of *quote* in the assistant's messages, or None. The last message is searched first.

    Messages before *start*, the first one of the response, belong to the task and are not searched: an example in the
    prompt may be a message of the assistant.
    The text is searched literally, then with any white space matching any other, because models reflow lines that they
    quote. In tool calls white space is ignored, because models reformat JSON.
    """
    if not quote.strip():
        return None
    turns = [(i, m) for i, m in enumerate(messages) if i >= start and m.get("role") == "assistant"]
    texts = [(i, text_of(message)) for i, message in reversed(turns)]
    for index, text in texts:
        at = text.find(quote)
        if at >= 0:
            return span_at(text, at, at + len(quote), index)
    pattern = re.compile(r"\s+".join(re.escape(word) for word in quote.split()))
    for index, text in texts:
        match = pattern.search(text)
        if match:
            return span_at(text, match.start(), match.end(), index)
    return _find_in_calls(turns, quote)


def _find_in_calls(turns: Sequence[tuple[int, Message]], quote: str) -> Span | None:
    words = re.sub(r"^\s*calls\s+", "", quote)  # the word before a call in the judge's prompt
    characters = "".join(words.split())
    if not characters or len(characters) > _LONGEST_CALL_QUOTE:
        return None
    pattern = re.compile(r"\s*".join(map(re.escape, characters)))
    for index, message in reversed(turns):
        for number, call in enumerate(calls_of(message)):
            text = call_text(call)
            match = pattern.search(text)
            if match:
                return span_at(text, match.start(), match.end(), index, number)
    return None
