"""Rendering of untrusted text as safe HTML: Markdown of READMEs and highlighted code. No script, no external load."""

from collections.abc import Sequence
from functools import lru_cache

from django.utils.html import escape
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

MAX_HIGHLIGHTED = 100_000  # characters; longer text is not highlighted, which would take seconds
_FORMATTER = HtmlFormatter(nowrap=True)


def code_html(text: str, language: str) -> SafeString:
    """Return *text* escaped and highlighted with Pygments' short classes; plain if the language is unknown."""
    if len(text) <= MAX_HIGHLIGHTED:
        try:
            lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
        except ClassNotFound:
            pass
        else:
            return SafeString(highlight(text, lexer, _FORMATTER))  # Pygments escapes the text
    return escape(text)


@lru_cache(maxsize=128)
def markdown_html(text: str) -> SafeString:
    """Return Markdown *text* as HTML, headings one level deeper. Raw HTML and images are not rendered."""
    return SafeString(_MARKDOWN.render(text))  # raw HTML is off


class _MarkdownRenderer(RendererHTML):
    def heading_open(self, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType) -> str:
        return f"<{_deeper(tokens[i].tag)}>"

    def heading_close(self, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType) -> str:
        return f"</{_deeper(tokens[i].tag)}>\n"

    def image(self, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType) -> str:
        return f"<em>{escape(tokens[i].content)}</em>"

    def fence(self, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType) -> str:
        language = tokens[i].info.split(maxsplit=1)[0] if tokens[i].info.strip() else ""
        return f'<pre class="hl"><code>{code_html(tokens[i].content, language)}</code></pre>\n'

    def table_open(self, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="table" tabindex="0" role="region" aria-label="Table"><table>\n'

    def table_close(self, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"


def _deeper(tag: str) -> str:
    return f"h{min(int(tag[1]) + 1, 6)}"


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_MarkdownRenderer).enable("table")
