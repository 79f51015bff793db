"""Messages of a conversation prepared for reading: rendered text, folded reasoning, tool calls as cards."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.safestring import SafeString, mark_safe

from hub.extraction.normalization import reasoning_spans
from hub.protocols.messages import call_text, calls_of, parts_without_text, text_of
from hub.web.reading.characters import escaped
from hub.web.reading.highlighting import classes_of_blocks, classes_of_code, is_bare_code, lexer_name
from hub.web.reading.json_layout import lay_out_json
from hub.web.reading.markdown import MAX_RENDERED, code_block, markdown_to_html
from hub.web.reading.spans import MarkedSpan, SpanWriter, line_starts

MAX_SHOWN = 200_000  # characters of one text on a page; the rest is in the raw JSON
_LONG = (2400, 40)  # characters and lines from which a text is folded
MAX_IMAGE = 6_000_000  # characters of the data URL of an image that is shown
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
_TAG = re.compile(r"<[^<>]{1,30}>|◁/?think▷|\[/?THINK\]")

Marks = Mapping[tuple[int, int | None], Sequence[MarkedSpan]]  # key: message index, and tool call index or None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """How texts are prepared. source: as they were written, not rendered. positions: see `SpanWriter`."""

    source: bool = False
    positions: bool = False


RENDERED = ReadingOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Text prepared for reading. `source` says that it is shown as it was written; `hidden` are marks not visible."""

    html: SafeString
    size: int
    source: bool
    long: bool = False
    cut: bool = False
    hidden: list[MarkedSpan] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCard:
    """Tool call. `text` is the call as it is quoted: `name(arguments)`."""

    index: int
    id: str
    name: str
    name_html: SafeString
    arguments: Text
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPart:
    """Part of a message that is no text. `image` is its data URL if the page can show it, `address` one on the web."""

    type: str
    image: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptTurn:
    """Message of a conversation. `answers` is the id of the tool call whose result it is, `tool` its name."""

    number: int
    role: str
    text: str
    content: Text | None
    calls: list[CallCard]
    answers: str = ""
    tool: str = ""
    parts: list["OtherPart"] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not self.text.strip() and not self.calls and not self.parts


def read_messages(
    messages: Sequence[Mapping[str, object]],
    options: ReadingOptions = RENDERED,
    *,
    first: int = 0,
    marks: Marks | None = None,
) -> list[TranscriptTurn]:
    """Return the messages from index *first* on, prepared for reading."""
    names = {str(call.get("id")): _function_name(call) for message in messages for call in calls_of(message)}
    marks = marks or {}
    return [_turn(i, message, names, options, marks) for i, message in enumerate(messages) if i >= first]


def _turn(
    index: int, message: Mapping[str, object], names: Mapping[str, str], options: ReadingOptions, marks: Marks
) -> TranscriptTurn:
    text, role = text_of(message), str(message.get("role", ""))
    answers = str(message.get("tool_call_id") or "")
    read = read_result if role == "tool" else read_text
    return TranscriptTurn(
        number=index,
        role=role,
        text=text,
        content=read(text, options, marks=marks.get((index, None), ())) if text else None,
        calls=[_card(i, call, options, marks.get((index, i), ())) for i, call in enumerate(calls_of(message))],
        answers=answers,
        tool=names.get(answers, "") if answers else "",
        parts=[_other_part(part) for part in parts_without_text(message)],
    )


def _other_part(part: Mapping[str, object]) -> OtherPart:
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else None
    kind = str(part.get("type", "part"))
    if isinstance(url, str) and len(url) <= MAX_IMAGE and _IMAGE.fullmatch(url):
        return OtherPart(type=kind, image=url)
    return OtherPart(type=kind, address=url if isinstance(url, str) and url.startswith("https://") else "")


# ---- texts -----------------------------------------------------------------------------------------------------------


def read_text(text: str, options: ReadingOptions = RENDERED, *, marks: Sequence[MarkedSpan] = ()) -> Text:
    """Return a text rendered as Markdown with its reasoning folded; as it was written if it is too long for that."""
    writer = SpanWriter(marks, options.positions)
    html = None if options.source or len(text) > MAX_RENDERED else _rendered(text, writer)
    if html is None:
        return _as_written(text, options, marks)
    return _finished(f'<div class="rendered">{html}</div>', text, writer, source=False)


def read_result(text: str, options: ReadingOptions = RENDERED, *, marks: Sequence[MarkedSpan] = ()) -> Text:
    """Return the result of a tool: JSON laid out, other texts as they were written."""
    pieces = None if options.source else lay_out_json(text)
    if pieces is None:
        return _as_written(text, options, marks)
    writer = SpanWriter(marks, options.positions)
    html = "".join(_piece(writer, piece, 0) for piece in pieces)
    return _finished(f'<pre class="hl json">{html}</pre>', text, writer, source=False)


def code_html(text: str, language: str) -> SafeString:
    """Return *text* escaped and highlighted; plain if the language is unknown or the text long."""
    html = SpanWriter().code(text, classes_of_code(text, lexer_name(language)))
    return mark_safe(html)  # noqa: S308 - escaped by the writer


def _as_written(text: str, options: ReadingOptions, marks: Sequence[MarkedSpan]) -> Text:
    writer, shown = SpanWriter(marks, options.positions), text[:MAX_SHOWN]
    html = writer.lines(shown, line_starts(shown), classes_of_blocks(shown))
    return _finished(f'<pre class="source hl" dir="auto">{html}</pre>', text, writer, source=True)


def _finished(html: str, text: str, writer: SpanWriter, *, source: bool) -> Text:
    return Text(
        html=mark_safe(html),  # noqa: S308 - the writer escapes every text
        size=len(text),
        source=source,
        long=len(text) > _LONG[0] or text.count("\n") >= _LONG[1],
        cut=source and len(text) > MAX_SHOWN,
        hidden=[mark for mark in writer.marks if mark not in writer.placed],
    )


def _rendered(text: str, writer: SpanWriter) -> str | None:
    html, at = [], 0
    for start, end in [*reasoning_spans(text), (len(text), len(text))]:
        answer = _segment(text[at:start], writer, at)
        thought = _thought(text[start:end], writer, start) if end > start else ""
        if answer is None or thought is None:
            return None
        html += [answer, thought]
        at = end
    return "".join(html)


def _segment(text: str, writer: SpanWriter, offset: int) -> str | None:
    if is_bare_code(text):
        starts = line_starts(text, offset)
        return code_block(writer.lines(text, starts, classes_of_code(text, "python")), "python")
    return markdown_to_html(text, writer, offset) if text.strip() else ""


def _thought(text: str, writer: SpanWriter, offset: int) -> str | None:
    opening = _TAG.match(text)
    start = opening.end() if opening else 0
    closings = list(_TAG.finditer(text, start))
    end = closings[-1].start() if closings and closings[-1].end() == len(text.rstrip()) else len(text)
    inner = _segment(text[start:end], writer, offset + start)
    if inner is None:
        return None
    return (
        f'<details class="reasoning"><summary>Reasoning, {end - start:,} characters</summary>'
        f"<div>{inner}</div></details>"
    )


# ---- calls -----------------------------------------------------------------------------------------------------------


def _card(index: int, call: Mapping[str, object], options: ReadingOptions, marks: Sequence[MarkedSpan]) -> CallCard:
    text, name = call_text(call), _function_name(call)
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    writer = SpanWriter(marks, options.positions)
    name_html = writer.text(name, 0)
    offset = len(name) + 1
    pieces = None
    if not options.source:
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        pieces = lay_out_json(written)
    if pieces is None:
        return CallCard(
            index=index,
            id=str(call.get("id") or ""),
            name=name,
            name_html=mark_safe(escaped(name)),  # noqa: S308 - the text below has the name with its position
            arguments=_as_written(text, options, marks),
            text=text,
        )
    known = offset if isinstance(arguments, str) else None  # others are quoted in another form than they are laid out
    html = "".join(_piece(writer, piece, known) for piece in pieces)
    return CallCard(
        index=index,
        id=str(call.get("id") or ""),
        name=name,
        name_html=mark_safe(name_html),  # noqa: S308 - escaped by the writer
        arguments=_finished(f'<pre class="hl json">{html}</pre>', text, writer, source=False),
        text=text,
    )


def _piece(writer: SpanWriter, piece: tuple[str, int | None, str], offset: int | None) -> str:
    text, start, name = piece
    html = writer.text(text, None if start is None or offset is None else start + offset)
    return f'<span class="{name}">{html}</span>' if name else html


def _function_name(call: Mapping[str, object]) -> str:
    function = call.get("function")
    return str(function.get("name")) if isinstance(function, dict) else "None"
