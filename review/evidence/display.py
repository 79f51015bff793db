"""Responses as safe HTML that preserves the code-point offsets of the source text, so that spans stay valid.

Characters that hide or reorder text (controls, bidirectional marks, invisible characters) are each replaced by one
visible character with its name as tooltip. Nothing is dropped, so offsets do not change.
"""

import difflib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from itertools import pairwise

from django.utils.safestring import SafeString, mark_safe
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String

from hub.protocols.messages import Message, call_text, count_prompt_messages, text_of
from preferences.spans import text_hash
from runs.models import Response

MAX_HIGHLIGHTED = 20_000  # longer texts are not highlighted; highlighting this many characters takes about 50 ms
_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:^[ \t]*\2[`~]*[ \t]*$|\Z)", re.M | re.S)
_LANGUAGES = {
    "": "python",
    "py": "python",
    "python": "python",
    "python3": "python",
    "json": "json",
    "sql": "sql",
    "js": "javascript",
    "javascript": "javascript",
    "sh": "bash",
    "bash": "bash",
    "yaml": "yaml",
}
# Token types with a style, and their Pygments class names. Other tokens, which are most of a text, get no element.
_CLASSES = (
    (Keyword, "k"),
    (Operator.Word, "k"),
    (String, "s"),
    (Comment, "c"),
    (Number, "m"),
    (Name.Function, "nf"),
    (Name.Class, "nc"),
    (Error, "err"),
)
_CODE_START = re.compile(r"\s*(?:from \w|import \w|def \w|class \w|async def |@\w|#!)")


@dataclass(frozen=True, slots=True)
class Mark:
    """Highlighted span: `kind` is judge or blamed, `label` its description.

    The label of a blamed line is shown below the line by the stylesheet, from an attribute, so that offsets do not
    change.
    """

    start: int
    end: int
    kind: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Rendered tool call of a message."""

    index: int
    html: SafeString
    text_hash: str


Marks = Mapping[tuple[int, int | None], Sequence[Mark]]  # key: message index, and tool call index or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Rendered message of a response."""

    index: int
    role: str
    html: SafeString
    has_text: bool
    text_hash: str
    markable: bool
    calls: list["Call"] = field(default_factory=list)


def turns_of(response: Response, marks: Marks) -> list[Turn]:
    """Return the rendered messages of *response* after the prompt, from the first assistant message on."""
    first = count_prompt_messages(response.messages)
    return [_turn(i, message, marks) for i, message in enumerate(response.messages) if i >= first]


def _turn(index: int, message: Message, marks: Marks) -> Turn:
    text = text_of(message)
    called = [call_text(call) for call in message.get("tool_calls") or []]
    calls = [
        Call(index=i, html=text_html(call, marks.get((index, i), ())), text_hash=text_hash(call))
        for i, call in enumerate(called)
    ]
    return Turn(
        index=index,
        role=str(message.get("role", "")),
        html=text_html(text, marks.get((index, None), ())),
        has_text=bool(text),
        text_hash=text_hash(text),
        markable=message.get("role") == "assistant",
        calls=calls,
    )


def text_html(text: str, marks: Sequence[Mark] = ()) -> SafeString:
    """Return *text* as HTML: one `<span class="line">` for each line with its line break, tokens and marks inside."""
    classes = _token_classes(text) if len(text) <= MAX_HIGHLIGHTED else []
    cuts = sorted(
        {
            0,
            len(text),
            *(c[0] for c in classes),
            *(c[1] for c in classes),
            *(m.start for m in marks),
            *(m.end for m in marks),
        }
    )
    cuts = [cut for cut in cuts if 0 <= cut <= len(text)]
    pieces, at = [], 0
    for start, end in pairwise(cuts):
        while at < len(classes) and classes[at][1] <= start:
            at += 1
        token = classes[at][2] if at < len(classes) and classes[at][0] <= start else ""
        over = [mark for mark in marks if mark.start <= start and end <= mark.end]
        below = [mark for mark in marks if mark.kind == "blamed" and mark.end == end]
        pieces.append((text[start:end], token, over, below))
    return mark_safe(_lines(pieces))  # noqa: S308 - every piece is escaped in _piece


def _lines(pieces: list[tuple[str, str, list[Mark], list[Mark]]]) -> str:
    html = ['<span class="line">']
    open_line, below_line = True, ""
    for text, token, over, below in pieces:
        for part in re.split(r"(?<=\n)", text):
            if not part:
                continue
            if not open_line:
                html.append('<span class="line">')
                open_line = True
            html.append(_piece(part, token, over))
            if part.endswith("\n"):
                html += ["</span>", below_line]
                open_line, below_line = False, ""
        below_line += "".join(f'<span class="below-line" data-note="{escape(visible(m.label))}"></span>' for m in below)
    if open_line:
        html.append("</span>")
    return "".join([*html, below_line])


def _piece(text: str, token: str, over: list[Mark]) -> str:
    html = _escaped(text)
    if token:
        html = f'<span class="{token}">{html}</span>'
    for mark in over:
        html = f'<mark class="{mark.kind}" title="{escape(visible(mark.label))}">{html}</mark>'
    return html


def _escaped(text: str) -> str:
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return escape(text)
    return "".join(
        f'<span class="odd" title="{_name(c)}">{shown}</span>' if (shown := _shown(c)) != c else escape(c) for c in text
    )


def visible(text: str) -> str:
    """Return *text* with characters that hide or reorder text, or cannot be encoded, replaced by visible ones."""
    return "".join(map(_shown, text))


def _shown(c: str) -> str:
    if c in "\n\t" or c.isprintable():
        return c
    code = ord(c)
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode block Control Pictures
    category = unicodedata.category(c)
    if category in ("Zs", "Co") or c == "\u200d":  # spaces, private use, and the zero-width joiner of emoji
        return c
    return "\u2421" if code == 0x7F else "\ufffd"


def _name(c: str) -> str:
    return f"U+{ord(c):04X} {unicodedata.name(c, 'control')}"


def code_blocks(text: str) -> list[tuple[int, str, str | None]]:
    """Return (offset, code, Pygments language or None) of each fenced block, or of *text* if it is bare code."""
    blocks = [(m.start(4), m.group(4), _LANGUAGES.get(m.group(3).lower())) for m in _FENCE.finditer(text)]
    return [(0, text, "python")] if not blocks and _CODE_START.match(text) else blocks


def _token_classes(text: str) -> list[tuple[int, int, str]]:
    """Return (start, end, class) of each styled token in the code blocks of *text*, in order."""
    found: list[tuple[int, int, str]] = []
    for offset, code, language in code_blocks(text):
        if language is None:
            continue
        for at, token, value in _lexer(language).get_tokens_unprocessed(code):
            name = _class_of(token)
            start = offset + at
            if not name or not value:
                continue
            if found and found[-1][1] == start and found[-1][2] == name:
                start = found.pop()[0]
            found.append((start, offset + at + len(value), name))
    return found


@lru_cache(maxsize=16)
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language)


@lru_cache(maxsize=512)
def _class_of(token: tuple[str, ...]) -> str:
    return next((name for kind, name in _CLASSES if token in kind), "")


# ---- diff ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiffLine:
    """Line of a diff: `sign` is +, -, @ or a space."""

    sign: str
    text: str


MAX_DIFF_LINES = 3000


def diff_lines(a: str, b: str) -> list[DiffLine]:
    """Return the line diff from *a* to *b*; empty if the texts are equal or longer than MAX_DIFF_LINES in total."""
    left, right = visible(a).split("\n"), visible(b).split("\n")
    if len(left) + len(right) > MAX_DIFF_LINES:
        return []
    lines = difflib.unified_diff(left, right, lineterm="", n=3)
    return [DiffLine(line[0], line[1:]) for line in lines if not line.startswith(("---", "+++"))]


def final_text(response: Response) -> str:
    """Return the text of the last assistant message, or "" if there is none."""
    return next((text_of(m) for m in reversed(response.messages) if m.get("role") == "assistant"), "")
