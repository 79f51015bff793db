"""Markdown as models write it, rendered to HTML with the position of every text in the source.

Raw HTML is text, images are not loaded, links lead only to http, https and mailto. Formulas in LaTeX are shown as
they are written. Line breaks of models and datasets are kept, because these use them without the two spaces of
Markdown; only lines that were wrapped are joined.
"""

import re
from bisect import bisect_right
from functools import lru_cache
from html import escape

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from hub.web.reading.highlighting import classes_of_code, lexer_name
from hub.web.reading.spans import SpanWriter, line_starts

MAX_RENDERED = 50_000  # characters; longer texts are shown as they are, because parsing would take seconds
_MAX_NESTING = 60
_MAX_FORMULA = 4000  # characters
_MAX_BRACKETS = 8000
_WRAPPED = 60  # characters of a line from which its text may have been wrapped
_LINKED = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_LANGUAGE = re.compile(r"[\w+#-]*")
# The rest of a link after its words: `](address "title")`, `][label]` or `]`.
_LINK_END = re.compile(
    r"\](?:\(\s*(?:<[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)"
    r"(?:\s+(?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\)))?\s*\)|\[[^\]\n]*\])?",
    re.DOTALL,
)
_TAGS = {"em": "em", "strong": "strong", "s": "s"}
_BLOCK_TAGS = ("blockquote", "ul", "ol", "li", "thead", "tbody", "tr", "th", "td", "p")


def markdown_to_html(
    source: str, writer: SpanWriter, offset: int = 0, *, heading: int = 4, document: bool = False
) -> str | None:
    """Return *source* rendered, or None if it is nested too deeply. *offset*: where it begins in the writer's text.

    heading: level of the topmost headings. document: whether *source* is a document and not a text of a model. The line
    breaks of a document are spaces, and the address of a link may be defined elsewhere in it.
    """
    if source.count("[") > _MAX_BRACKETS:  # the time for unclosed ones grows with their square
        return None
    # The parser would drop `\r` and NUL; both are replaced one by one, so that offsets stay.
    tokens = _parser(document).parse(source.replace("\r", " ").replace("\0", "\ufffd"))
    if any(token.level >= _MAX_NESTING - 2 for token in tokens):
        return None
    return _Renderer(source, writer, offset, heading, document).render(tokens)


@lru_cache(maxsize=128)
def markdown_html(text: str) -> SafeString:
    """Return a text of the product's own users, such as a README, as HTML; headings begin one level below the page."""
    html = markdown_to_html(text, SpanWriter(), heading=2, document=True)
    return SafeString(f"<pre>{escape(text)}</pre>" if html is None else html)


@lru_cache(maxsize=2)
def _parser(document: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_NESTING}).enable(["table", "strikethrough"])
    parser.disable("text_join")  # keeps escapes and entities apart, whose source differs from their text
    if not document:
        parser.disable("reference")
    parser.inline.ruler.before("escape", "formula", _inline_formula)
    parser.block.ruler.before("fence", "formula", _block_formula, {"alt": ["paragraph", "blockquote", "list"]})
    return parser


# ---- formulas --------------------------------------------------------------------------------------------------------


def _inline_formula(state: StateInline, silent: bool) -> bool:
    r"""Parse `\(…\)`, `\[…\]`, `$$…$$` and `$…$`. A dollar sign before a digit or after a space closes nothing."""
    source, start = state.src, state.pos
    opening = source[start : start + 2]
    if opening not in ("\\(", "\\[", "$$"):
        opening = "$" if source[start] == "$" else ""
    if not opening:
        return False
    closing = {"\\(": "\\)", "\\[": "\\]"}.get(opening, opening)
    inner = start + len(opening)
    end = source.find(closing, inner, min(state.posMax, inner + _MAX_FORMULA))
    if end <= inner or (opening == "$" and not _is_dollar_formula(source, inner, end)):
        return False
    if not silent:
        state.push("formula", "code", 0).content = source[start : end + len(closing)]
    state.pos = end + len(closing)
    return True


def _is_dollar_formula(source: str, inner: int, end: int) -> bool:
    return not (source[inner].isspace() or source[end - 1].isspace() or source[end + 1 : end + 2].isdigit())


def _block_formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    r"""Parse lines between `\[` and `\]`, or between two `$$`, so that nothing in them is taken for Markdown."""
    first = _line(state, start)
    opening = first[:2]
    if opening not in ("\\[", "$$") or state.is_code_block(start):
        return False
    closing = "\\]" if opening == "\\[" else "$$"
    for number in range(start, min(end, start + 200)):
        line = first[2:] if number == start else _line(state, number)
        if line.endswith(closing) and (number > start or len(line) > 2):
            if not silent:
                token = state.push("formula_block", "pre", 0)
                token.map = [start, number + 1]
                token.content = state.getLines(start, number + 1, state.blkIndent, False)
                state.line = number + 1
            return True
        if closing in line:
            return False  # text follows on the same line, so this is a paragraph
    return False


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()


# ---- rendering -------------------------------------------------------------------------------------------------------


class _Renderer:
    """Renderer of the tokens of one source text."""

    def __init__(self, source: str, writer: SpanWriter, offset: int, heading: int, document: bool) -> None:
        self.source_lines = source.split("\n")
        self.starts = line_starts(f"{source}\n", offset)
        self.writer = writer
        self.heading = heading
        self.document = document
        self.cell: int | None = None  # in a table: where the next cell begins in its line

    def render(self, tokens: list[Token]) -> str:
        return "".join(map(self._block, tokens))

    def _block(self, token: Token) -> str:
        if token.type == "inline":
            return _Inline(self, token).render()
        if token.type in ("fence", "code_block", "formula_block"):
            return self._code(token)
        if token.type == "hr":
            return "<hr>\n"
        if token.hidden:
            return ""
        # Each block of a model's text has its own direction: answers mix languages, and code is written from the left.
        direction = ' dir="auto"' if token.level == 0 and not self.document else ""
        if token.tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            level = min(int(token.tag[1]) - 1 + self.heading, 6)
            return f"<h{level}{direction}>" if token.nesting == 1 else f"</h{level}>\n"
        if token.tag == "table":
            # No region: answers side by side would have landmarks of the same name.
            opened = f'<div class="table" tabindex="0" role="group" aria-label="Table"{direction}><table>'
            return opened if token.nesting == 1 else "</table></div>\n"
        if token.tag not in _BLOCK_TAGS:
            return ""
        if token.tag == "tr":
            self.cell = 0 if token.nesting == 1 else None
        if token.nesting == -1:
            return f"</{token.tag}>\n"
        start = f' start="{int(token.attrs["start"])}"' if token.tag == "ol" and "start" in token.attrs else ""
        aligned = ' class="num"' if str(token.attrs.get("style", "")).endswith("right") else ""
        return f"<{token.tag}{start}{aligned}{direction}>"

    def _code(self, token: Token) -> str:
        first = (token.map or [0])[0] + (token.type == "fence")
        content = token.content or "\n"
        lines = content.removesuffix("\n").split("\n")
        starts = [self._start_of_code_line(first + i, line) for i, line in enumerate(lines)]
        if token.type == "formula_block":
            return f'<pre class="formula">{self.writer.lines(content.removesuffix(chr(10)), starts)}</pre>\n'
        found = _LANGUAGE.match(token.info.strip())
        language = found[0] if found else ""
        classes = classes_of_code(content, lexer_name(language))
        return code_block(self.writer.lines(content, starts, classes), language)

    def _start_of_code_line(self, number: int, line: str) -> int | None:
        """Return where a line of code begins in the source, without the indentation and quote signs before it."""
        if number >= len(self.source_lines):
            return None
        source = self.source_lines[number].replace("\r", " ").replace("\0", "\ufffd")
        return self.starts[number] + len(source) - len(line) if source.endswith(line) else None


def code_block(lines: str, language: str) -> str:
    """Return highlighted lines as a block of code; a script adds a button that copies it."""
    name = f'<span class="language">{escape(language)}</span>' if language else ""
    return f'<div class="code-block">{name}<pre class="hl"><code>{lines}</code></pre></div>\n'


class _Inline:
    """Renderer of the inline content of one block. `at` is the position in the content that is reached."""

    def __init__(self, renderer: _Renderer, token: Token) -> None:
        self.renderer, self.writer = renderer, renderer.writer
        self.token, self.content = token, token.content
        self.at = 0
        self.open_links: list[bool] = []
        self.lines = self._locate_lines()

    def _locate_lines(self) -> list[tuple[int, int | None]]:
        """Return for each line of the content where it begins there, and where in the source, if that is known."""
        located: list[tuple[int, int | None]] = []
        at, first = 0, (self.token.map or [0])[0]
        for i, line in enumerate(self.content.split("\n")):
            located.append((at, self._start_of_line(first + i, line)))
            at += len(line) + 1
        return located

    def _start_of_line(self, number: int, line: str) -> int | None:
        renderer, text = self.renderer, line.strip()
        if number >= len(renderer.source_lines) or not text:
            return None
        source = renderer.source_lines[number].replace("\r", " ").replace("\0", "\ufffd")
        if renderer.cell is not None:
            found = source.find(text, renderer.cell)
            renderer.cell = max(found + len(text), renderer.cell)
        else:
            found = len(source.rstrip()) - len(text) if source.rstrip().endswith(text) else source.find(text)
        if found < 0:
            return None
        return renderer.starts[number] + found - (len(line) - len(line.lstrip()))

    def render(self) -> str:
        return "".join(map(self._leaf, self.token.children or []))

    def _leaf(self, leaf: Token) -> str:
        match leaf.type:
            case "text" | "formula":
                html = self._found(leaf.content)
                return html if leaf.type == "text" else f'<code class="formula">{html}</code>'
            case "text_special":
                return self._special(leaf)
            case "softbreak" | "hardbreak":
                return self._line_break(hard=leaf.type == "hardbreak")
            case "code_inline":
                return f"<code>{self._code(leaf)}</code>"
            case "image":
                self._skip_link()
                return f'<span class="image">{self.writer.text(leaf.content or "image", None)}</span>'
            case "link_open":
                return self._open_link(str(leaf.attrs.get("href", "")))
            case "link_close":
                if leaf.info != "auto":
                    self._skip_link()
                return "</a>" if self.open_links.pop() else ""
        tag = _TAGS.get(leaf.tag)
        if tag is None:
            return self.writer.text(leaf.content, None)
        return f"<{tag}>" if leaf.nesting == 1 else f"</{tag}>"

    def _line_break(self, hard: bool) -> str:
        """Return a line break; a space after a long line that continues with a small letter, since it was wrapped."""
        end = self.content.find("\n", self.at)
        end = len(self.content) if end < 0 else end
        length = end - self.content.rfind("\n", 0, end) - 1
        self.at = end + 1
        wrapped = not hard and length >= _WRAPPED and self.content[end : end + 80].lstrip()[:1].islower()
        joined = wrapped or (self.renderer.document and not hard)
        return "\n" if joined else "<br>\n"

    def _open_link(self, address: str) -> str:
        linked = bool(_LINKED.match(address))
        self.open_links.append(linked)
        return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">' if linked else ""

    def _skip_link(self) -> None:
        """Continue behind the address of a link, in which the following text might occur too."""
        bracket = self.content.find("]", self.at)
        if bracket >= 0 and (end := _LINK_END.match(self.content, bracket)):
            self.at = end.end()

    def _found(self, text: str) -> str:
        start = self.content.find(text, self.at)
        if start < 0:
            return self.writer.text(text, None)
        self.at = start + len(text)
        return self._range(start, self.at)

    def _special(self, leaf: Token) -> str:
        start = self.content.find(leaf.markup, self.at)
        if start < 0:
            return self.writer.text(leaf.content, None)
        self.at = start + len(leaf.markup)
        return self.writer.text(leaf.content, self._source(start), len(leaf.markup))

    def _code(self, leaf: Token) -> str:
        start = self.content.find(leaf.markup, self.at)
        inner = start + len(leaf.markup)
        for begin in (inner, inner + 1):  # one space on each side may have been removed
            end = begin + len(leaf.content)
            if start >= 0 and self.content[begin:end].replace("\n", " ") == leaf.content:
                self.at = self.content.find(leaf.markup, end) + len(leaf.markup)
                return self._range(begin, end)
        return self.writer.text(leaf.content, None)

    def _range(self, start: int, end: int) -> str:
        """Return a part of the content, line by line."""
        html = []
        for part in self.content[start:end].split("\n"):
            html.append(self.writer.text(part, self._source(start)))
            start += len(part) + 1
        return "\n".join(html)

    def _source(self, at: int) -> int | None:
        """Return the position in the source of a position in the content."""
        begin, source = self.lines[bisect_right(self.lines, at, key=lambda line: line[0]) - 1]
        return None if source is None else source + at - begin
