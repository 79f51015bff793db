"""Parser of fenced Markdown blocks as models write them: nested, indented, quoted, on one line or unclosed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FENCE = re.compile(
    r"^(?P<indent>[ \t]*(?:(?:>|[-*](?=[ \t])|\d{1,9}\.(?=[ \t]))[ \t]*)?)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$"
)
_SUFFIX = re.compile(r"[\w./-]+\.(?P<suffix>[a-z]+)")
_PROSE_WORDS = 3  # after a fence: "``` This adds them up." closes a block, "```python title=a.py" begins one
_ONE_LINE = re.compile(r"^[ \t]*```(?P<language>[A-Za-z]\w*)[ \t]+(?P<code>[^`\n]+)```[ \t]*$")
_MARKDOWN = {"markdown", "md", "mdx"}
# Code on the opening line, after the language.
_CODE = re.compile(r"(?:def|class|import|from|async\s+def|@)\s*\w")


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block: its language in lower case, and its text without the indentation of the fence.

    `closed` is False for a block that runs to the end of the text. `introduction` is the last line before the block
    that is not blank, unless another block comes between.
    """

    language: str
    text: str
    closed: bool = True
    introduction: str = ""


@dataclass(slots=True)
class _OpenBlock:
    """A block that is not closed yet."""

    mark: str
    indent: str
    language: str
    lines: list[str]
    introduction: str = ""

    def closed_by(self, match: re.Match[str]) -> bool:
        mark = match["mark"]
        return mark[0] == self.mark[0] and len(mark) >= len(self.mark) and not match["info"].strip()

    def block(self, *, closed: bool) -> Fence:
        lines = self.lines
        if ">" in self.indent:
            lines = [re.sub(r"^[ \t]*>[ \t]?", "", line) for line in lines]
        else:
            lines = _dedented(lines, len(self.indent.expandtabs(4)))
        return Fence(self.language, "\n".join(lines) + "\n" if lines else "", closed, self.introduction)


def split_lines(text: str) -> list[str]:
    """Return the lines of *text* as Python and Markdown count them: only a line feed ends a line.

    `str.splitlines` also splits at form feeds and Unicode separators, which may be part of a string in code.
    """
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def fences(text: str, *, unwrap: bool = True) -> list[Fence]:
    """Return the fenced blocks of *text*, in order; an unclosed block runs to the end.

    A block in Markdown is replaced by the blocks in it, unless *unwrap* is false.
    """
    blocks, _ = _parse(text)
    return _unwrapped(blocks) if unwrap else blocks


def split(text: str) -> tuple[list[Fence], str]:
    """Return the fenced blocks of *text*, and the text outside of them."""
    blocks, outside = _parse(text)
    return _unwrapped(blocks), outside


def _unwrapped(blocks: Sequence[Fence]) -> list[Fence]:
    return [inner for block in blocks for inner in (fences(block.text) if block.language in _MARKDOWN else [block])]


def _parse(text: str) -> tuple[list[Fence], str]:
    """Return the fenced blocks of *text* as they are written, and the text outside of them.

    A fence with an info word within an open block begins another block, because models leave blocks unclosed and
    enclose entire answers in ```markdown. One that is indented further than the open block belongs to a docstring.
    """
    blocks: list[Fence] = []
    outside: list[str] = []
    current: _OpenBlock | None = None
    introduction = ""
    for line in split_lines(text):
        match = _FENCE.match(line)
        if current is None:
            one_line = _ONE_LINE.match(line)
            if match:
                current = _open_block(match)
                current.introduction, introduction = introduction, ""
            elif one_line:
                blocks.append(Fence(one_line["language"].lower(), one_line["code"] + "\n", introduction=introduction))
                introduction = ""
            else:
                outside.append(line)
                introduction = line if line.strip() else introduction
        elif match and _width(line) <= len(current.indent.expandtabs(4)) + 3 and current.closed_by(match):
            _close_block(current, blocks)
            current = None
        elif match and match["mark"] == current.mark and _is_prose(match["info"]):
            _close_block(current, blocks)
            current = None
            introduction = match["info"]
            outside.append(introduction)
        elif match and _begins_another(current, match):
            _close_block(current, blocks)
            current = _open_block(match)
        elif not match and line.rstrip().endswith(current.mark) and line.count(current.mark[0]) == len(current.mark):
            current.lines.append(line.rstrip()[: -len(current.mark)])
            _close_block(current, blocks)
            current = None
        else:
            current.lines.append(line)
    if current is not None:
        _close_block(current, blocks, closed=False)
    return blocks, "\n".join(outside)


def _open_block(match: re.Match[str]) -> _OpenBlock:
    info = match["info"].strip()
    word, _, rest = info.partition(" ")
    if _CODE.match(info):
        word, rest = "", info
    lines = [match["indent"] + rest] if _CODE.match(rest) else []
    return _OpenBlock(match["mark"], match["indent"], language(word), lines)


def language(info: str) -> str:
    """Return the language of an info string in lower case: of `python:a.py`, `{.python}`, `a.py` or `Python3.11`."""
    words = info.lstrip("#/ ").split()
    word = re.split(r"[:,={(\[\"']", words[0].strip("{}.[]<>").lower())[0] if words else ""
    file = _SUFFIX.fullmatch(word)
    if file:
        return "python" if file["suffix"] == "py" else file["suffix"]
    return re.sub(r"(?<=python)[\d.]+$", "", word)


def _is_prose(info: str) -> bool:
    """Return whether the fence is followed by a sentence, rather than by a language and its options."""
    words = info.split()
    return len(words) >= _PROSE_WORDS and not re.search(r"[={}:]", info) and not _CODE.search(info)


def _begins_another(current: _OpenBlock, match: re.Match[str]) -> bool:
    info = match["info"].strip()
    near = _width(match["indent"] + "x") <= _width(current.indent + "x")
    return bool(info) and near and match["mark"] == current.mark and re.match(r"[\w{.]", info) is not None


def _close_block(current: _OpenBlock, blocks: list[Fence], *, closed: bool = True) -> None:
    blocks.append(current.block(closed=closed))


def _dedented(lines: Sequence[str], width: int) -> list[str]:
    if not width:
        return list(lines)
    return [line.lstrip() if _width(line) < width else _drop(line, width) for line in lines]


def _width(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _drop(line: str, width: int) -> str:
    return line.expandtabs(4)[width:] if "\t" in line[:width] else line[width:]
