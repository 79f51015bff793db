"""Syntax highlighting: the styled tokens of code, and the code blocks of a text."""

import re
from functools import lru_cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Error, Generic, Keyword, Name, Number, Operator, String

MAX_HIGHLIGHTED = 20_000  # longer texts are not highlighted; highlighting this many characters takes about 50 ms
# Names of languages, as models write them after a fence, and the lexers of Pygments. Others are shown plain: a model
# could name any of 500 lexers, some of which need seconds for unusual text.
_LANGUAGES = {
    **dict.fromkeys(("py", "python", "python3", "pycon"), "python"),
    **dict.fromkeys(("sh", "bash", "shell", "zsh", "console"), "bash"),
    **dict.fromkeys(("js", "javascript", "jsx"), "javascript"),
    **dict.fromkeys(("ts", "typescript", "tsx"), "typescript"),
    **dict.fromkeys(("c++", "cpp", "cc"), "cpp"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("md", "markdown"), "markdown"),
    **dict.fromkeys(("go", "golang"), "go"),
    **dict.fromkeys(("rs", "rust"), "rust"),
    **{name: name for name in ("json", "sql", "html", "css", "xml", "toml", "ini", "c", "java", "kotlin", "diff")},
}
# Token types with a style, and their class names. Other tokens, which are most of a text, get no element.
_CLASSES = (
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Tag, "k"),
    (String, "s"),
    (Comment, "c"),
    (Number, "m"),
    (Name.Function, "nf"),
    (Name.Class, "nc"),
    (Generic.Inserted, "gi"),
    (Generic.Deleted, "gd"),
    (Error, "err"),
)
_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:^[ \t]*\2[`~]*[ \t]*$|\Z)", re.M | re.S)
_CODE_START = re.compile(r"\s*(?:from \w|import \w|def \w|class \w|async def |@\w|#!)")

TokenClass = tuple[int, int, str]  # start, end, class


def lexer_name(language: str) -> str | None:
    """Return the lexer for a language as it is named after a fence; None if it is shown plain."""
    return _LANGUAGES.get(language.lower())


def is_bare_code(text: str) -> bool:
    """Return whether *text* is Python code without a fence around it."""
    return bool(_CODE_START.match(text)) and not _FENCE.search(text)


def code_blocks(text: str) -> list[tuple[int, str, str | None]]:
    """Return (offset, code, lexer or None) of each fenced block, or of *text* if it is bare code."""
    blocks = [(m.start(4), m.group(4), lexer_name(m.group(3) or "python")) for m in _FENCE.finditer(text)]
    return [(0, text, "python")] if not blocks and _CODE_START.match(text) else blocks


def classes_of_blocks(text: str) -> list[TokenClass]:
    """Return the styled tokens in the code blocks of *text*, in order; none if it is long."""
    if len(text) > MAX_HIGHLIGHTED:
        return []
    found: list[TokenClass] = []
    for offset, code, lexer in code_blocks(text):
        found += [(offset + start, offset + end, name) for start, end, name in classes_of_code(code, lexer)]
    return found


def classes_of_code(code: str, lexer: str | None) -> list[TokenClass]:
    """Return the styled tokens of *code*, in order; none if there is no lexer or the code is long."""
    found: list[TokenClass] = []
    if lexer is None or len(code) > MAX_HIGHLIGHTED:
        return found
    for start, token, value in _lexer(lexer).get_tokens_unprocessed(code):
        name = _class_of(token)
        if not name or not value:
            continue
        if found and found[-1][1] == start and found[-1][2] == name:
            found[-1] = (found[-1][0], start + len(value), name)
        else:
            found.append((start, start + len(value), name))
    return found


@lru_cache(maxsize=32)
def _lexer(name: str) -> Lexer:
    return get_lexer_by_name(name)


@lru_cache(maxsize=512)
def _class_of(token: tuple[str, ...]) -> str:
    return next((name for kind, name in _CLASSES if token in kind), "")
