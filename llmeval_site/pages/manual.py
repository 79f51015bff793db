"""The manual: the project's docs/ as pages below /docs/, under the names of their files, so that their links work.

The texts are part of the product. Unlike in texts of models (hub/web/reading), links and images are kept.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import urlsplit

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from hub.web.reading.highlighting import classes_of_code, lexer_name
from hub.web.reading.markdown import code_block
from hub.web.reading.spans import SpanWriter

FOLDER: Path = settings.BASE_DIR / "docs"
INDEX = "index.md"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a page: its level from 1, its text, and its id in the page's address."""

    level: int
    text: str
    id: str


@dataclass(frozen=True, slots=True)
class ManualPage:
    """A page of the manual. The first heading is its title."""

    html: SafeString
    headings: tuple[Heading, ...]

    @property
    def title(self) -> str:
        return self.headings[0].text if self.headings else "Manual"

    @property
    def sections(self) -> list[Heading]:
        return [heading for heading in self.headings if heading.level == 2]


@require_safe
def manual(request: HttpRequest, path: str = INDEX) -> HttpResponse | FileResponse:
    """Show a page of the manual, a file that it links to, or an image."""
    if path not in _files():
        raise Http404(f"The manual has no page {path!r}.")
    file = FOLDER / path
    if file.suffix == ".png":
        return FileResponse(file.open("rb"), content_type="image/png")
    context = {"path": path, "pages": list_pages()}
    if file.suffix == ".md":
        return render(request, "site/manual.html", {**context, "page": get_page(path)})
    return render(request, "site/manual.html", {**context, "text": file.read_text(encoding="utf-8")})


@lru_cache(maxsize=1)
def _files() -> frozenset[str]:
    return frozenset(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*") if file.is_file())


@lru_cache(maxsize=1)
def list_pages() -> list[tuple[str, str]]:
    """Return (path, title) of each page, in the order of the index, which comes first."""
    linked = re.findall(r"\]\(([\w-]+\.md)\)", (FOLDER / INDEX).read_text(encoding="utf-8"))
    return [(path, get_page(path).title) for path in dict.fromkeys((INDEX, *linked))]


@cache
def get_page(path: str) -> ManualPage:
    """Return the page in the Markdown file *path*, which exists, below docs/."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    for name, rule in (("fence", _code), ("code_block", _code), ("table_open", _table), ("table_close", _table)):
        parser.add_render_rule(name, rule)
    tokens = parser.parse((FOLDER / path).read_text(encoding="utf-8"))
    headings = tuple(_number_headings(tokens))
    for number, token in enumerate(item for item in tokens if item.type == "table_open"):
        token.meta["number"] = number + 1
    for opened, content, closed in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opened.type == "th_open" and not content.content:  # an empty heading would be announced as one
            opened.tag = closed.tag = "td"
    for token in tokens:
        # The policy of the site forbids styles in attributes.
        if token.type in ("th_open", "td_open") and str(token.attrs.pop("style", "")).endswith("right"):
            token.attrSet("class", "num")
        if token.children:
            token.children = list(_without_links_to_other_folders(token.children, path))
    return ManualPage(SafeString(parser.renderer.render(tokens, parser.options, {})), headings)


def _number_headings(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Give each heading the id that code hosts give it, and yield the headings."""
    seen: Counter[str] = Counter()
    for token, content in pairwise(tokens):
        if token.type == "heading_open":
            leaves = content.children or []
            text = "".join(leaf.content for leaf in leaves if leaf.type in ("text", "code_inline"))
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            anchor = f"{name}-{seen[name]}" if seen[name] else name
            seen[name] += 1
            token.attrSet("id", anchor)
            yield Heading(int(token.tag[1]), text, anchor)


def _without_links_to_other_folders(leaves: Sequence[Token], path: str) -> Iterator[Token]:
    """Yield *leaves* without links to files outside docs/, which the site does not serve; their text is kept."""
    dropped = False
    for leaf in leaves:
        if leaf.type == "link_open":
            address = urlsplit(str(leaf.attrs["href"]))
            target = normpath(join(dirname(path), address.path))
            dropped = not address.scheme and bool(address.path) and target not in _files()
        if not (dropped and leaf.type in ("link_open", "link_close")):
            yield leaf
        if leaf.type == "link_close":
            dropped = False


def _code(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    text = tokens[at].content.removesuffix("\n")
    language = tokens[at].info.partition(" ")[0]
    lines = [None] * (text.count("\n") + 1)
    return code_block(SpanWriter().lines(text, lines, classes_of_code(text, lexer_name(language))), language)


def _table(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    if tokens[at].nesting == -1:
        return "</table></div>\n"
    return f'<div class="table" tabindex="0" role="region" aria-label="Table {tokens[at].meta["number"]}"><table>\n'
