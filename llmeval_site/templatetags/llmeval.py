"""`{% load llmeval %}`: how figures, times, statuses and foreign text are written on every page."""

import json
from typing import Any

from django import template
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from hub.common.rendering import code_html
from preferences.sides import tokens_to_phrases
from runs.reports import formats as write

register = template.Library()

FOLD = 2400  # characters of foreign text that are shown before the rest is folded
FOLD_LINES = 40

register.filter("percent", write.percent)
register.filter("points", write.points)
register.filter("method", write.method)
register.filter("money", write.money)
register.filter("tokens", write.tokens)
register.filter("ms", write.milliseconds)
register.filter("p_value", write.p_value)
register.filter("duration", write.duration)
register.filter("side_phrases", tokens_to_phrases)


@register.filter
def foreign(text: Any) -> str:
    """Text of a model or a dataset, without characters that hide or reorder what it says; lines are kept."""
    return write.clean(str(text), lines=True)


@register.filter
def one_line(text: Any, size: int = 200) -> str:
    """Foreign text as one line of at most *size* characters."""
    return write.cut(write.clean(str(text)), size)


@register.filter
def pretty(value: Any) -> str:
    """JSON to read; text stays as it is, and text that is JSON is laid out."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return write.clean(value, lines=True)
    return write.clean(json.dumps(value, indent=2, ensure_ascii=False), lines=True)


@register.filter
def code(text: Any, language: str = "json") -> SafeString:
    """Foreign text with its tokens marked."""
    return code_html(write.clean(str(text), lines=True), language)


@register.filter
def language(path: str) -> str:
    """A file's language for `code`, by the end of its name."""
    return {"py": "python", "js": "javascript", "md": "markdown", "yml": "yaml"}.get(
        path.rpartition(".")[2], path.rpartition(".")[2]
    )


@register.filter
def thousands(value: Any) -> str:
    return "-" if value is None else f"{value:,}"


@register.filter
def item(mapping: Any, key: Any) -> Any:
    """`mapping[key]`, or None."""
    return mapping.get(key)


@register.simple_tag
def interval(pair: Any) -> str:
    """`[low, high]` of shares, in percent."""
    return write.interval(*pair) if pair else write.UNDEFINED


@register.simple_tag
def when(moment: Any) -> SafeString | str:
    """A time as "3 minutes ago", the exact one on hover."""
    if moment is None:
        return write.UNDEFINED
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        moment.isoformat(),
        moment.astimezone(timezone.get_default_timezone()).strftime("%Y-%m-%d %H:%M:%S"),
        naturaltime(moment),
    )


@register.simple_tag
def badge(status: str, word: str = "") -> SafeString:
    """A status as a shape, a word and a colour."""
    return format_html('<span class="badge {}">{}</span>', status, word or status.replace("_", " "))


@register.simple_tag
def certificate_badge(certificate: Any) -> SafeString:
    """What the gates came to, in a word."""
    if not certificate:
        return badge("not_run", "gates not run")
    failed = [gate["name"] for gate in certificate["gates"] if gate["status"] == "failed"]
    return badge("failed", f"failed: {', '.join(failed)}") if failed else badge("passed", "gates passed")


@register.inclusion_tag("parts/column.html", takes_context=True)
def column(context: Any, name: str, title: str, kind: str = "") -> dict[str, Any]:
    """The head of a column that the list can be sorted by, as `order` says. Figures start with the largest."""
    order, query = context["order"], context["request"].GET.copy()
    sorted_by_it = order.name == name
    first = kind in ("num", "time")
    falling = not order.descending if sorted_by_it else first
    for gone in ("after", "before"):
        query.pop(gone, None)
    query["sort"] = f"-{name}" if falling else name
    direction = "" if not sorted_by_it else "descending" if order.descending else "ascending"
    return {"name": name, "title": title, "kind": kind, "url": f"?{query.urlencode()}", "direction": direction}


@register.inclusion_tag("parts/folded.html")
def folded(text: Any, language: str = "") -> dict[str, Any]:
    """Foreign text in a block; what is long is cut, its size named, the whole one click away."""
    whole = write.clean(str(text), lines=True)
    head = "\n".join(whole[:FOLD].split("\n")[:FOLD_LINES])
    return {"whole": whole, "head": head, "cut": len(head) < len(whole), "size": len(whole), "language": language}


@register.inclusion_tag("parts/transcript.html")
def transcript(messages: Any) -> dict[str, Any]:
    """Chat messages as turns, tool calls and their answers included."""
    return {"turns": [_turn(number, message) for number, message in enumerate(messages or [])]}


def _turn(number: int, message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):  # content parts
        content = "\n".join(str(part.get("text", part)) if isinstance(part, dict) else str(part) for part in content)
    calls = [
        {"id": call.get("id", ""), "name": "", "arguments": "", **call.get("function", {})}
        for call in message.get("tool_calls") or []
    ]
    return {
        "number": number,
        "role": str(message.get("role", "")),
        "content": "" if content is None else content,
        "calls": calls,
        "answers": message.get("tool_call_id", ""),
        "empty": not content and not calls,
    }


@register.inclusion_tag("parts/interval.html")
def interval_bar(value: float | None, pair: Any, label: str = "") -> dict[str, Any]:
    """A share from 0 to 1 and its interval, drawn; the figures stand beside it as text."""
    if value is None or not pair:
        return {"bar": None}
    low, high = (round(1000 * bound) for bound in pair)
    bar = {"low": str(low), "width": str(max(high - low, 2)), "point": str(round(1000 * value))}
    return {"bar": bar, "label": label}


@register.inclusion_tag("parts/difference.html")
def difference_bar(value: float | None, low: float | None, high: float | None) -> dict[str, Any]:
    """A difference from -1 to 1 and its interval, about a line at nought."""
    if value is None or low is None or high is None:
        return {"bar": None}
    left, right, point = (round(500 + 500 * max(-1.0, min(1.0, bound))) for bound in (low, high, value))
    return {"bar": {"low": str(left), "width": str(max(right - left, 2)), "point": str(point)}}


@register.simple_tag
def crumbs(*steps: Any) -> SafeString:
    """The breadcrumb: titles and addresses in turn; the last title may have none."""
    pairs = list(zip(steps[::2], [*steps[1::2], ""], strict=False))
    items = [
        format_html('<li><a href="{}">{}</a></li>', url, title) if url else format_html("<li>{}</li>", title)
        for title, url in pairs
    ]
    return format_html(
        '<nav class="crumbs" aria-label="Breadcrumb"><ol>{}</ol></nav>',
        format_html_join("", "{}", ((item,) for item in items)),
    )
