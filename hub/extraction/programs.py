"""The program that a model's answer holds, wherever in the answer it stands and however it is dressed."""

import ast
import re
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hub.extraction.fencing import Fence, split
from hub.extraction.python import (
    bound,
    compiles,
    defined,
    defines,
    does_something,
    lacking,
    parsed,
    regions,
)
from hub.extraction.reading import clean, without_reasoning

_PYTHON = {"python", "py", "python3", "py3", "ipython", "ipython3", "pycon", "python2", "sage", "cython"}
_UNMARKED = {"", "text", "txt", "plaintext", "code", "solution", "answer"}
_CONSOLE = re.compile(r"^(>>> |\.\.\. |\$ |In \[\d+\]:)", re.MULTILINE)
_DEFINITION = re.compile(r"^(?:def|class|async\s+def)\s", re.MULTILINE)
_INDENTATION = re.compile(r"^[ \t\u00a0]+", re.MULTILINE)
_FUTURE = re.compile(r"^from __future__ import .*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Code:
    """A program and where it came from.

    `found` is `fence`, `last_fence` (of several), `joined_fences`, `unfenced` (out of prose), `whole`, `continued` (the
    prefix with the answer as its body), or `nothing`. `with_prefix` says that the prefix's imports and helpers were put
    in front, because the program leans on them.
    """

    text: str
    found: str
    with_prefix: bool = False


def code(text: str, *, entry_point: str | None = None, prefix: str = "", wanted: Collection[str] = ()) -> Code:
    """The program that *text* holds.

    *entry_point* is the name that it should define (`wanted`, the names, where there is no single one); *prefix* the
    code that a body-only completion continues. Of several blocks the last that defines what is wanted is taken, else
    the last; blocks that define what it leans on are put with it, in their order, unless they define what is wanted as
    well. Fenced blocks come first; where they do not define what is wanted, unfenced code out of prose may, and then
    the answer as a continuation of the prefix.
    """
    names = {entry_point.rpartition(":")[2].split(".")[0]} if entry_point else set(wanted)
    text = _INDENTATION.sub(lambda match: match[0].replace("\u00a0", " "), without_reasoning(clean(text)))
    fenced, outside = split(text)
    blocks = _python_blocks(fenced)
    if blocks and (not names or any(_count(block, names) for block in blocks)):
        return _with_prefix(_chosen(blocks, names, fenced=True), prefix, names)
    if not fenced and compiles(text) and (_count(text, names) if names else does_something(text)):
        return _with_prefix(Code(text, "whole"), prefix, names)
    unfenced = regions(outside)
    if any(_count(block, names) for block in unfenced):
        return _with_prefix(_chosen(unfenced, names, fenced=False), prefix, names)
    for body in [*reversed(blocks), outside]:
        joined = continued(prefix, body) if prefix else None
        if joined is not None:
            return Code(joined, "continued")
    if blocks or unfenced:
        return _with_prefix(_chosen(blocks or unfenced, names, fenced=bool(blocks)), prefix, names)
    return Code("", "nothing")


# ---- which blocks ----------------------------------------------------------------------------------------------------


def _python_blocks(fenced: Sequence[Fence]) -> list[str]:
    """The blocks that hold Python: those marked so, and unmarked ones that look like it."""
    found = []
    for block in fenced:
        text = _without_prompts(block.text)
        # A block that only shows a session or a shell is not the answer; a function pasted from a session is.
        shows = _CONSOLE.search(block.text) is not None and not _DEFINITION.search(text)
        marked = block.language in _PYTHON
        looks = block.language in _UNMARKED and (
            does_something(text) or _DEFINITION.search(text) or _is_body(block.text)
        )
        if text.strip() and not shows and (marked or looks):
            found.append(text)
    return found


def _without_prompts(text: str) -> str:
    """A block pasted from a session (`>>> def f():`) without its prompts."""
    if re.match(r"\s*>>> ", text) and not compiles(text):
        kept = [line[4:] for line in text.splitlines() if line.startswith((">>> ", "... "))]
        return "\n".join(kept) + "\n"
    return text


def _is_body(text: str) -> bool:
    """Whether *text* would do as the body of a function."""
    return does_something("def _():\n" + textwrap.indent(textwrap.dedent(text), "    ")) and "return" in text


def _count(block: str, names: Collection[str]) -> int:
    """How many of *names* the block defines."""
    return sum(defines(block, name) for name in names)


def _chosen(blocks: Sequence[str], names: Collection[str], *, fenced: bool) -> Code:
    counts = [_count(block, names) for block in blocks]
    chosen = max(range(len(blocks)), key=lambda i: (counts[i], i))
    kept = {chosen}
    have = defined(blocks[chosen])
    missing = lacking(blocks[chosen]).union(names) - have
    # The nearest block before the chosen one first: a correction comes later than what it corrects.
    others = [*reversed(range(chosen)), *range(chosen + 1, len(blocks))]
    added = True
    while missing and added:
        added = False
        for i in others:
            gives = defined(blocks[i])
            if i not in kept and gives & missing and not gives & have & set(names):
                kept.add(i)
                have |= gives
                missing = (missing | lacking(blocks[i])) - have
                added = True
    source = joined([blocks[i] for i in sorted(kept)])
    if not fenced:
        return Code(source, "unfenced")
    if len(kept) > 1:
        return Code(source, "joined_fences")
    return Code(source, "fence" if len(blocks) == 1 else "last_fence")


def joined(sources: Sequence[str]) -> str:
    """One program of several, imports from `__future__` first, as Python wants them."""
    if len(sources) == 1:
        return sources[0]
    futures = dict.fromkeys(line.rstrip("\n") for source in sources for line in _FUTURE.findall(source))
    return "\n\n".join([*futures, *(_FUTURE.sub("", source) for source in sources)])


# ---- the prefix ------------------------------------------------------------------------------------------------------


def _with_prefix(found: Code, prefix: str, names: Collection[str]) -> Code:
    """*found* behind what the prefix imports and defines besides the entry point, where it leans on any of that."""
    if not prefix.strip():
        return found
    whole = next((source for source in (prefix, _with_body(prefix, "pass")) if parsed(source)), "")
    tree = parsed(whole) if whole else None
    if tree is None:
        return found
    kept = [node for node in tree.body if getattr(node, "name", None) not in names]
    if not bound(ast.Module(kept, [])) & lacking(found.text):
        return found
    around = "\n".join(_source(whole, node) for node in kept)
    return Code(joined([around, found.text]), found.found, with_prefix=True)


def _source(text: str, node: ast.stmt) -> str:
    """The lines of *node*, decorators included."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def continued(prefix: str, body: str) -> str | None:
    """*prefix* (a signature and docstring) with *body* under it; None where that does not compile.

    A body may be indented, not indented at all or indented except in its first line; prose before and after it falls
    away.
    """
    body = body.strip("\n")
    if not body.strip():
        return None
    if not prefix.endswith("\n") and compiles(prefix + body) and defined(prefix + body):
        return prefix + body + "\n"  # it goes on in the middle of a line
    for part in (body, _before_prose(body), _before_prose(_after_prose(body))):
        if not part.strip():
            continue
        flush = textwrap.indent(textwrap.dedent(part), _indent(prefix))
        first, _, rest = part.partition("\n")
        hanging = f"{_indent(prefix)}{first.strip()}\n{rest}"
        forms = (part, flush) if part[0] in " \t" else (flush, hanging)
        for form in forms:
            source = f"{prefix.rstrip()}\n{form}\n"
            if compiles(source):
                return source
    return None


def _with_body(prefix: str, body: str) -> str:
    return f"{prefix.rstrip()}\n{_indent(prefix)}{body}\n"


def _indent(prefix: str) -> str:
    """What the body of the prefix's last function is indented by."""
    last = prefix.rstrip().rpartition("\n")[2]
    margin = last[: len(last) - len(last.lstrip())]
    return margin + "    " if last.endswith(":") or not margin else margin


def _before_prose(text: str) -> str:
    """*text* up to the first line that is not indented and no Python; unchanged where it begins without indentation."""
    lines = text.splitlines()
    if not lines or lines[0][:1] not in (" ", "\t"):
        return _first_paragraph(text)
    for i, line in enumerate(lines):
        if line.strip() and line[0] not in " \t" and not does_something("\n".join(lines[i:])):
            return "\n".join(lines[:i])
    return text


def _first_paragraph(text: str) -> str:
    return re.split(r"\n[ \t]*\n(?=[^ \t\n])", text, maxsplit=1)[0]


def _after_prose(text: str) -> str:
    """*text* from the first indented line on, where prose stands before it."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line[:1] in (" ", "\t") and line.strip()), 0)
    return "\n".join(lines[start:])
