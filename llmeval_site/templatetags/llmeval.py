"""`{% load llmeval %}`: formatting of numbers, times, statuses, model output and messages, shared by all pages."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from django import template
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.http import HttpRequest
from django.template import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from hub.common.output.foreign_text import clean
from hub.common.web.pagination import Order
from hub.web.reading.transcripts import Marks, ReadingOptions, TranscriptTurn, code_html, read_messages, read_text
from hub.web.reading.view_mode import shows_source
from preferences.sides import tokens_to_phrases
from preferences.spans import text_hash
from runs.reports import formats
from runs.reports.comparison.files import ratio_text

register = template.Library()

FOLDED_LENGTH = 2400  # characters of a long text that are visible before it is unfolded
FOLDED_LINES = 40
UNFOLDED_ANSWER = 20_000  # characters; the last answer of a transcript is folded only if it is longer

_LANGUAGES = {"py": "python", "js": "javascript", "md": "markdown", "yml": "yaml", "jsonl": "json", "cfg": "ini"}

register.filter("percent", formats.percent)
register.filter("score", formats.score)
register.filter("points", formats.points)
register.filter("method", formats.method)
register.filter("money", formats.money)
register.filter("tokens", formats.tokens)
register.filter("ms", formats.milliseconds)
register.filter("p_value", formats.p_value)
register.filter("duration", formats.duration)
register.filter("ratio", ratio_text)
register.filter("side_phrases", tokens_to_phrases)
register.filter("text_hash", text_hash)


# ---- text ------------------------------------------------------------------------------------------------------------


@register.filter
def foreign(text: object) -> str:
    """Return text of a model or a dataset without characters that hide or reorder other text. Line breaks are kept."""
    return clean(str(text), lines=True)


@register.filter
def one_line(text: object, size: int = 200) -> str:
    """Return text of a model or a dataset as one line of at most *size* characters."""
    return formats.cut(clean(str(text)), size)


@register.filter
def pretty(value: object) -> str:
    """Return indented JSON. A string that is JSON is indented too; any other string is returned as it is."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return clean(str(value), lines=True)
    return clean(json.dumps(value, indent=2, ensure_ascii=False), lines=True)


@register.filter
def code(text: object, language: str = "json") -> SafeString:
    """Return text of a model or a dataset with highlighted syntax."""
    return code_html(clean(str(text), lines=True), language)


@register.filter
def language(path: str) -> str:
    """Return the language of a file for the `code` filter, from the suffix of its name."""
    suffix = path.rpartition(".")[2]
    return _LANGUAGES.get(suffix, suffix)


class FoldedText(TypedDict):
    """Context of parts/folded.html."""

    whole: str
    head: str
    cut: bool
    size: int
    language: str


@register.inclusion_tag("parts/folded.html")
def folded(text: object, language: str = "") -> FoldedText:
    """Show a text in a block. A long text is cut; the block states its length and can be unfolded."""
    whole = clean(str(text), lines=True)
    head = "\n".join(whole[:FOLDED_LENGTH].split("\n")[:FOLDED_LINES])
    return {"whole": whole, "head": head, "cut": len(head) < len(whole), "size": len(whole), "language": language}


# ---- values ----------------------------------------------------------------------------------------------------------


@register.filter
def thousands(value: float | None) -> str:
    """Return a number with thousands separators."""
    return formats.UNDEFINED if value is None else f"{value:,}"


@register.filter
def item(mapping: Mapping[object, object], key: object) -> object:
    """Return `mapping[key]`, or None if there is no such key."""
    return mapping.get(key)


@register.simple_tag
def interval(bounds: Sequence[float] | None) -> str:
    """Return an interval of proportions as `[low, high]` in percent."""
    return formats.interval(*bounds) if bounds else formats.UNDEFINED


@register.simple_tag
def score_interval(bounds: Sequence[float] | None) -> str:
    """Return an interval of a figure of at most 1, such as kappa, as `[low, high]`."""
    return formats.score_interval(*bounds) if bounds else formats.UNDEFINED


@register.simple_tag
def when(moment: datetime | None) -> SafeString | str:
    """Return a time relative to now ("3 minutes ago"), with the exact time as its tooltip."""
    if moment is None:
        return formats.UNDEFINED
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        moment.isoformat(),
        moment.astimezone(timezone.get_default_timezone()).strftime("%Y-%m-%d %H:%M:%S"),
        naturaltime(moment),
    )


@register.simple_tag
def badge(status: str, word: str = "") -> SafeString:
    """Return a status as a badge: a shape, a word and a colour."""
    return format_html('<span class="badge {}">{}</span>', status, word or status.replace("_", " "))


class GateResult(TypedDict):
    """The result of one gate in a certificate."""

    name: str
    status: str


class Certificate(TypedDict):
    """The results of all gates, as far as the badge needs them."""

    gates: list[GateResult]


@register.simple_tag
def certificate_badge(certificate: Certificate | None) -> SafeString:
    """Return the overall result of the gates as a badge."""
    if not certificate:
        return badge("not_run", "gates not run")
    failed = [gate["name"] for gate in certificate["gates"] if gate["status"] == "failed"]
    return badge("failed", f"failed: {', '.join(failed)}") if failed else badge("passed", "gates passed")


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A message in a transcript; `folded` says whether its text is folded if it is long."""

    turn: TranscriptTurn
    folded: bool


# ---- parts of pages --------------------------------------------------------------------------------------------------


@register.inclusion_tag("parts/column.html", takes_context=True)
def column(context: Context, name: str, title: str, kind: str = "") -> dict[str, str]:
    """Show the heading of a sortable column. The first click sorts numbers and times in descending order."""
    order, request = context["order"], context["request"]
    assert isinstance(order, Order) and isinstance(request, HttpRequest)
    is_sorted = order.name == name
    descending = not order.descending if is_sorted else kind in ("num", "time")
    query = request.GET.copy()
    for cursor in ("after", "before"):
        query.pop(cursor, None)
    query["sort"] = f"-{name}" if descending else name
    direction = "" if not is_sorted else "descending" if order.descending else "ascending"
    return {"name": name, "title": title, "kind": kind, "url": f"?{query.urlencode()}", "direction": direction}


class TranscriptContext(TypedDict):
    """Context of parts/transcript.html. *prefix* keeps ids apart if a page shows several transcripts."""

    turns: list[ShownTurn]
    prefix: str


@register.inclusion_tag("parts/transcript.html", takes_context=True)
def transcript(
    context: Context, messages: Sequence[Mapping[str, object]] | None, prefix: str = "", marks: Marks | None = None
) -> TranscriptContext:
    """Show chat messages with their tool calls. All long texts but the last answer are folded."""
    turns = read_messages(messages or [], ReadingOptions(source=_source(context)), marks=marks)
    last = max((turn.number for turn in turns if turn.role == "assistant" and turn.content), default=-1)
    shown = [
        ShownTurn(turn, turn.number != last or (turn.content is not None and turn.content.size > UNFOLDED_ANSWER))
        for turn in turns
    ]
    return {"turns": shown, "prefix": prefix}


@register.inclusion_tag("parts/text.html", takes_context=True)
def answer(context: Context, text: object, fold: bool = True) -> dict[str, object]:
    """Show one text of a model."""
    return {"text": read_text(str(text), ReadingOptions(source=_source(context))), "fold": fold}


@register.inclusion_tag("parts/view_switch.html", takes_context=True)
def view_switch(context: Context) -> dict[str, object]:
    """Show the switch between rendered texts and texts as they were written."""
    return {"source": _source(context), "request": context.get("request")}


def _source(context: Context) -> bool:
    request = context.get("request")
    return isinstance(request, HttpRequest) and shows_source(request)


class Bar(TypedDict, total=False):
    """Positions on a bar in thousandths of its width, as text for SVG attributes."""

    low: str
    width: str
    point: str


class BarContext(TypedDict, total=False):
    """Context of parts/interval.html and parts/difference.html. They show nothing if `bar` is None."""

    bar: Bar | None
    label: str


@register.inclusion_tag("parts/interval.html")
def interval_bar(value: float | None, bounds: Sequence[float] | None, label: str = "") -> BarContext:
    """Draw a proportion and its interval on a bar from 0 to 1. Pages show the numbers next to it as text."""
    if value is None or not bounds:
        return {"bar": None}
    low, high = (round(1000 * bound) for bound in bounds)
    return {
        "bar": {"low": str(low), "width": str(max(high - low, 2)), "point": str(round(1000 * value))},
        "label": label,
    }


@register.inclusion_tag("parts/difference.html")
def difference_bar(value: float | None, low: float | None, high: float | None) -> BarContext:
    """Draw a difference and its interval on a bar from -1 to 1 with a line at zero."""
    if value is None or low is None or high is None:
        return {"bar": None}
    left, right, point = (round(500 + 500 * max(-1.0, min(1.0, bound))) for bound in (low, high, value))
    return {"bar": {"low": str(left), "width": str(max(right - left, 2)), "point": str(point)}}


@register.simple_tag
def manual(section: str) -> str:
    """Return the address of a section of the manual, such as "web.md#registering-a-model"."""
    page, mark, heading = section.partition("#")
    return f"{reverse('manual', args=[page])}{mark}{heading}"


@register.simple_tag
def crumbs(*steps: object) -> SafeString:
    """Return a breadcrumb navigation. *steps* alternates between titles and URLs; the last title may have no URL."""
    pairs = zip(steps[::2], [*steps[1::2], ""], strict=False)
    items = [
        format_html('<li title="{}"><a href="{}">{}</a></li>', title, url, title)
        if url
        else format_html('<li title="{}">{}</li>', title, title)
        for title, url in pairs
    ]
    return format_html(
        '<nav class="crumbs" aria-label="Breadcrumb"><ol>{}</ol></nav>',
        format_html_join("", "{}", ((item,) for item in items)),
    )
