"""Tests of rendered texts of models: Markdown, reasoning, formulas, hostile input, and positions in the source."""

import re
from html import unescape
from typing import Any

import pytest

from hub.web.reading.markdown import markdown_html, markdown_to_html
from hub.web.reading.spans import MarkedSpan, SpanWriter
from hub.web.reading.transcripts import MAX_SHOWN, ReadingOptions, read_messages, read_result, read_text
from tests.browser.tricks import TRICKS

TAGS = """a blockquote br code del details div em h4 h5 h6 hr li mark ol p pre s span strong summary table tbody td th
    thead tr ul"""
ALLOWED = set(TAGS.split())
ATTRIBUTES = {"class", "dir", "href", "rel", "title", "start", "tabindex", "role", "aria-label"}
ATTRIBUTES |= {"data-at", "data-size", "data-note"}
MANY = "Some **bold** and `code`, a [link b](https://x.test/b 'b') b &amp; \\*.\n\n"
MANY += "> - 2. 2\n>   ```py\n>   x = 1\n>   ```\n"


def texts_with_positions(html: str) -> list[tuple[int, int | None, str]]:
    """Return (position, size, text) of each element that names its position in the source."""
    found = re.findall(r'<span[^>]* data-at="(\d+)"(?: data-size="(\d+)")?>(.*?)(?=<span[^>]* data-at|\Z)', html, re.S)
    plain = [(int(at), int(size) if size else None, re.sub(r"<[^>]*>", "", text)) for at, size, text in found]
    return [(at, size, unescape(text)) for at, size, text in plain]


def outside_of_vocabulary(html: str) -> list[str]:
    """Return tags, attributes and addresses that rendered text must not have."""
    found = []
    for tag, attributes in re.findall(r"<([a-zA-Z][^\s/>]*)([^>]*)>", html):
        found += [] if tag in ALLOWED else [tag]
        found += [name for name in re.findall(r'([^\s="]+)="[^"]*"', attributes) if name not in ATTRIBUTES]
    found += [a for a in re.findall(r'href="([^"]*)"', html) if not re.match("https?://|mailto:", a)]
    return found


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("**b** and *i*", "<strong>b</strong> and <em>i</em>"),
        ("# Title", '<h4 dir="auto">Title</h4>'),
        ("a\nb", "a<br>\nb"),
        ("word " * 13 + "the\nend", "the\nend"),
        ("word " * 13 + "the\nEnd", "the<br>\nEnd"),
        ("| a |\n| - |\n| 1 |", "<td>1</td>"),
        ("```python\nx = 1\n```", 'x = <span class="m">1</span>'),
        ("def f():\n    return 1", '<span class="k">def</span> <span class="nf">f</span>'),
        ("<think>hm</think>four", "<summary>Reasoning, 2 characters</summary>"),
        ("hm</think>\nfour", "<summary>Reasoning, 2 characters</summary>"),
        ("\\(a_1 * b_2 * c\\)", '<code class="formula">\\(a_1 * b_2 * c\\)</code>'),
        ("so $a_1 * b_2 * c$ is", '<code class="formula">$a_1 * b_2 * c$</code>'),
        ("\\[\na\n- b\n\\]", "- b\n"),
        ("$5 and *six* $7", "$5 and <em>six</em> $7"),
        ("[x](https://a.test/)", '<a href="https://a.test/" rel="noopener noreferrer nofollow">x</a>'),
        ("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"),
        ("1. a\n2. b", '<ol dir="auto"><li>a</li>\n<li>b</li>'),
    ],
)
def test_text_is_rendered(text: str, part: str) -> None:
    assert part in read_text(text).html


@pytest.mark.parametrize("text", [*TRICKS, "\n".join(TRICKS), "\n\n".join(TRICKS), "a\x00b", "\u202eabc"])
def test_hostile_text_stays_text(text: str) -> None:
    for html in (read_text(text).html, read_text(text, ReadingOptions(source=True)).html, read_result(text).html):
        assert outside_of_vocabulary(html) == []
        assert not set(html) & set("\x00\u202e\x1b\u200b")


def test_line_breaks_of_documents_are_spaces_and_those_of_models_are_kept() -> None:
    text = "one\n(2) two  \nthree"
    assert markdown_html(text) == "<p>one\n(2) two<br>\nthree</p>\n"
    assert markdown_to_html(text, SpanWriter()) == '<p dir="auto">one<br>\n(2) two<br>\nthree</p>\n'


@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert(1))", "[x](data:text/html,x)", "[x](/logout/)", "[x](//evil.test/)", "[x](vbscript:x)",
        "![x](data:image/png;base64,AA)", "![x](https://evil.test/pixel.png)", "<javascript:alert(1)>",
    ],
)  # fmt: skip
def test_links_into_the_site_scripts_and_images_are_not_followed(text: str) -> None:
    html = read_text(text).html
    assert "href" not in html
    assert "<img" not in html


@pytest.mark.parametrize(
    "text",
    [
        "word " * 200_000, ("> " * 100 + "\n") * 240, "\n".join("  " * i + "- x" for i in range(150)), "- " * 20_000,
        "[" * 49_000, "![" * 24_000, "*a **b " * 7000, "$a " * 16_000, "\\(" * 24_000, "```py\n" * 8000, "<" * 49_000,
        "<think>" * 7000, "</think>\n" * 5000, "]((" * 16_000, "~~a" * 16_000, "[a](" + "(" * 40_000,
    ],
)  # fmt: skip
def test_long_and_deeply_nested_texts_are_shown_completely(text: str) -> None:
    shown = read_text(text)
    assert outside_of_vocabulary(shown.html) == []
    if shown.source:
        assert unescape(re.sub(r"<[^>]*>", "", shown.html)) == text[:MAX_SHOWN]
        assert shown.cut == (len(text) > MAX_SHOWN)
    else:
        letters = re.findall(r"[a-z]", re.sub(r"</?think>|```py", "", text))
        assert len(re.findall(r"[a-z]", unescape(re.sub(r"<details.*?</summary>|<[^>]*>", "", shown.html)))) >= len(
            letters
        )


@pytest.mark.parametrize(
    "text", [MANY, MANY.replace("\n", "\r\n"), "👩‍👩‍👧 *Zoë*\n\n| a\t| a |\n|-|-|\n| `a` | a |", *TRICKS]
)
def test_every_rendered_text_names_its_place_in_the_source(text: str) -> None:
    for at, size, shown in texts_with_positions(read_text(text, ReadingOptions(positions=True)).html):
        if size is None:
            first = shown.split("\n")[0].rstrip()
            assert [a == b or not b.isprintable() for a, b in zip(first, text[at:], strict=False)] == [True] * len(
                first
            )
        else:
            assert text[at] in "&\\"


@pytest.mark.parametrize(
    ("text", "quote", "shown"),
    [
        (MANY, "bold** and `co", ["bold", " and ", "co"]),
        (MANY, " b &amp;", [" b ", "&amp;"]),
        (MANY, "x = 1", ["x = ", "1"]),
        ("a 🏙️\tbad\nword", "🏙️\tbad\nword", ["🏙️\tbad", "word"]),
        ("<think>no *x*</think>yes", "x*</think>y", ["x", "y"]),
    ],
)
def test_marks_are_on_the_rendered_words(text: str, quote: str, shown: list[str]) -> None:
    start = text.index(quote)
    read = read_text(text, marks=[MarkedSpan(start, start + len(quote), "judge", "why")])
    marked = [re.sub(r"<[^>]*>", "", m) for m in re.findall(r'<mark class="judge"[^>]*>(.*?)</mark>', read.html, re.S)]
    assert marked == shown
    assert read.hidden == []


def test_mark_on_an_address_is_hidden_and_reported() -> None:
    start = MANY.index("https")
    mark = MarkedSpan(start, start + 5, "judge", "why")
    assert read_text(MANY, marks=[mark]).hidden == [mark]
    assert read_text(MANY, ReadingOptions(source=True), marks=[mark]).hidden == []


# ---- messages --------------------------------------------------------------------------------------------------------


def conversation(arguments: Any) -> list[dict[str, Any]]:
    call = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": arguments}}
    return [
        {"role": "user", "content": "Refund it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": '{"ok":true,"n":1.50}'},
    ]


def test_calls_and_results_are_cards_with_indented_json() -> None:
    call, result = read_messages(conversation('{"order":7,"why":"a\\u00e9"}'))[1:]
    text = unescape(re.sub(r"<[^>]*>", "", call.calls[0].arguments.html))
    assert text == '{\n  "order": 7,\n  "why": "a\\u00e9"\n}'
    assert (result.answers, result.tool) == ("1", "refund")
    assert result.content is not None
    assert unescape(re.sub(r"<[^>]*>", "", result.content.html)) == '{\n  "ok": true,\n  "n": 1.50\n}'


def test_mark_in_a_call_is_on_the_indented_json() -> None:
    text = 'refund({"order":7,"why":"late"})'
    start = text.index('"order"')
    marks = {(1, 0): [MarkedSpan(start, start + len('"order":7'), "judge", "why")]}
    arguments = read_messages(conversation('{"order":7,"why":"late"}'), marks=marks)[1].calls[0].arguments
    assert re.findall(r"<mark[^>]*>(.*?)</mark>", arguments.html) == ["&quot;order&quot;", ":", "7"]


@pytest.mark.parametrize("arguments", ["{broken", {"order": 7}, None, "[" * 5000, 7])
def test_calls_of_any_shape_are_shown(arguments: Any) -> None:
    card = read_messages(conversation(arguments))[1].calls[0]
    assert outside_of_vocabulary(card.arguments.html) == []
    assert "7" in card.arguments.html or arguments not in (7, {"order": 7})
