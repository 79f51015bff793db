"""Extraction of the program in a model's answer: from fences, prose, JSON or as a continuation of a prefix."""

import ast
import re
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from hub.extraction.counterexamples import is_counterexample
from hub.extraction.fences import Fence, language, split, split_lines
from hub.extraction.normalization import clean, with_line_feeds, without_reasoning
from hub.extraction.python_code.dependencies import describe_line, without_usage
from hub.extraction.python_code.prefixes import continue_prefix, with_body
from hub.extraction.python_code.syntax import (
    assigned_values,
    bound,
    code_regions,
    compiles,
    corrects,
    defined_names,
    defines,
    definitions,
    does_something,
    elided_names,
    implemented_names,
    implemented_names_in,
    indented_code_regions,
    lacks_function_body,
    only_shows_data,
    parsed,
    undefined_names,
    without_last_statement,
)
from hub.extraction.python_code.unwrapping import (
    code_strings,
    repair_source,
    with_fences,
    without_chat_markers,
    without_prompts,
)

_PYTHON = {"python", "py", "python3", "py3", "ipython", "ipython3", "pycon", "python2", "sage", "cython", "tool_code"}
_TEXT = {"text", "txt", "plaintext"}
_UNMARKED = {"", "code", "solution", "answer"} | _TEXT
_CONSOLE = re.compile(r"^(>>> |\.\.\. |\$ |In \[\d+\]:)", re.MULTILINE)
_DEFINITION = re.compile(r"^(?:def|class|async\s+def)\s", re.MULTILINE)
_SPACES = re.compile(r"^[ \t\u00a0]+|(?<![ \t\u00a0])[ \t\u00a0]+$", re.MULTILINE)  # that indent or end a line
_ESCAPE = re.compile(r"\\(?=[_*\[\]])")  # of Markdown
_STREAMS = 2  # standard input and output
_MAX_ENDS = 5  # fences tried, from the last on, as the end of a program that contains fences
_READS = re.compile(r"\binput\b(?=\s*[(),])|\bstdin\b|\bopen\(0\b|\bos\.read\(0\b|\bfileinput\b")
_WRITES = re.compile(r"\bprint\s*\(|\bstdout\b|\bos\.write\(")
_INLINE = re.compile(r"(?<!`)(?P<mark>`{1,2})(?P<code>[^`\n]+)(?P=mark)(?!`)")
_FUTURE = re.compile(r"^from __future__ import .*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Code:
    """An extracted program and where it was found.

    `found` is `fence`, `last_fence` (of several), `joined_fences`, `unfenced` (from prose), `whole` (the entire text),
    `json` (a string in JSON), `continued` (the prefix with the answer as its body), `inline` (from a sentence), or
    `nothing`. `with_prefix`: the imports and helpers of the prefix were added in front, because the program depends on
    them. `dropped` lists statements of the answer that only use the wanted names, such as examples, and are not part of
    `text`.
    """

    text: str
    found: str
    with_prefix: bool = False
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Block:
    """Part of an answer that may be the program.

    `cut`: the answer ends before the block is closed. `is_text`: its fence says that it is text.
    """

    text: str
    cut: bool = False
    is_text: bool = False


def code(text: str, *, entry_point: str | None = None, prefix: str = "", wanted: Collection[str] = ()) -> Code:
    """Return the program in *text*.

    *entry_point* is the name that the program should define; *wanted* has the names if there are several. *prefix* is
    the code that a body-only completion continues.

    Of several blocks, the last that implements the wanted names is used (stubs and truncated versions do not count), or
    the last block if none does. A block that only shows data, such as an output, is used only if there is no other.
    Blocks with names that it depends on are joined with it, in order, unless they define wanted names as well, and so
    are later blocks that only correct its helpers. Sources are tried in this order: fenced blocks, unfenced code in
    prose, code in JSON, the answer as a continuation of the prefix, and inline code that defines the wanted names.

    Statements that only use the wanted names are dropped. Without wanted names, the program is not changed.
    """
    names = {entry_point.rpartition(":")[2].split(".")[0]} if entry_point else set(wanted)
    text = with_line_feeds(text)
    cleaned = _with_plain_spaces(text)
    found = _code(cleaned, names, prefix)
    if text != cleaned:  # the same code compiles with these characters if they are in its strings
        unchanged = _code(text, names, prefix)
        if compiles(unchanged.text) and _with_plain_spaces(unchanged.text) == found.text:
            return unchanged
    return found


def _with_plain_spaces(text: str) -> str:
    """Return *text* without invisible characters, and with spaces for no-break spaces that indent or end lines."""
    return _SPACES.sub(lambda match: match[0].replace("\u00a0", " "), clean(text))


def _code(text: str, names: Collection[str], prefix: str) -> Code:
    """Return the program in *text*, without statements that only use *names*, and with what it needs of the prefix."""
    text = without_reasoning(text)
    found = _found(with_fences(without_chat_markers(text)), names, prefix)
    kept, dropped = without_usage(found.text, names)
    return _with_prefix(replace(found, text=kept, dropped=(*found.dropped, *dropped)), prefix, names)


def _found(text: str, names: Collection[str], prefix: str, *, within_json: bool = False) -> Code:
    """Return the program in *text*, from the first source that has one; see `code` for their order."""
    fenced, outside = split(text)
    if fenced and compiles(text) and _is_usable(_Block(text), names):
        return Code(text, "whole")  # the fences are in docstrings or strings
    enclosing = _program_with_fences(text, fenced)
    if enclosing and _is_usable(_Block(enclosing), names):
        return Code(enclosing, "fence")
    blocks = _without_counterexamples(fenced, names)
    if blocks and (not names or _any_implemented(blocks, names)):
        return _chosen(blocks, names, fenced=True)
    whole = repair_source(text) if not fenced else ""
    if compiles(whole) and _is_usable(_Block(whole), names):
        return Code(whole, "whole")
    unfenced = _unfenced_blocks(outside, names)
    if _any_implemented(unfenced, names):
        return _chosen(unfenced, names, fenced=False)
    for string in () if within_json else code_strings(text):
        inner = _found(with_fences(string), names, prefix, within_json=True)
        if _any_implemented([_Block(inner.text)], names) if names else inner.found != "nothing":
            return replace(inner, found="json")
    mislabelled = [_block(block) for block in fenced if compiles(block.text)]
    for candidates in (mislabelled, blocks, unfenced):
        if any(_count_defined(block, names) for block in candidates):
            return _chosen(candidates, names, fenced=candidates is not unfenced)
    for body in [*(block.text for block in reversed(blocks)), *dict.fromkeys((outside, _ESCAPE.sub("", outside)))]:
        completed = continue_prefix(prefix, body) if prefix else None
        if completed is not None:
            return Code(completed, "continued")
    inline = _inline_blocks(outside, names)
    if inline and (names or not unfenced):
        return replace(_chosen(inline, names, fenced=False), found="inline")
    if blocks or unfenced:
        return _chosen(blocks or unfenced, names, fenced=bool(blocks))
    return Code("", "nothing")


# ---- which blocks ----------------------------------------------------------------------------------------------------


def _python_blocks(fenced: Sequence[Fence]) -> list[_Block]:
    """Return the blocks of Python: those marked as such, and unmarked ones that look like it."""
    found = []
    for fence in fenced:
        block = _block(fence)
        # A block with only a console session is not the answer; a function pasted from a session is.
        shows = _CONSOLE.search(fence.text) is not None and not _DEFINITION.search(block.text)
        marked = fence.language in _PYTHON
        looks = fence.language in _UNMARKED and (
            does_something(block.text) or _DEFINITION.search(block.text) or _is_body(fence.text)
        )
        if block.text.strip() and not shows and (marked or looks):
            found.append(block)
    return found


def _program_with_fences(text: str, fenced: Sequence[Fence]) -> str:
    """Return the program in the first block of Python if fences in its strings seem to end it; "" for other texts."""
    first = next((fence for fence in fenced if fence.language in _PYTHON), None)
    if first is None or not re.search(r"\"\"\"|'''", first.text) or compiles(repair_source(first.text)):
        return ""
    lines = split_lines(text)
    marks = [i for i, line in enumerate(lines) if line.lstrip().startswith(("```", "~~~"))]
    start = next((i for i in marks if language(lines[i].strip().lstrip("`~")) in _PYTHON), len(lines))
    for end in [i for i in reversed(marks) if i > start][:_MAX_ENDS]:
        program = repair_source("\n".join(lines[start + 1 : end]) + "\n")
        if compiles(program):
            return program
    return ""


def _without_counterexamples(fenced: Sequence[Fence], names: Collection[str]) -> list[_Block]:
    """Return the blocks of Python, without those shown as examples of what is wrong if another one can be used."""
    meant = [fence for fence in fenced if not is_counterexample(fence.introduction, fence.text)]
    right = _python_blocks(meant)
    if len(meant) == len(fenced):
        return right
    usable = _any_implemented(right, names) if names else any(does_something(block.text) for block in right)
    return right if usable else _python_blocks(fenced)


def _block(fence: Fence) -> _Block:
    return _Block(repair_source(fence.text), cut=not fence.closed, is_text=fence.language in _TEXT)


def _is_body(text: str) -> bool:
    """Return whether *text* can be the body of a function."""
    return does_something("def _():\n" + textwrap.indent(textwrap.dedent(text), "    ")) and "return" in text


def _unfenced_blocks(outside: str, names: Collection[str]) -> list[_Block]:
    """Return code in prose, without the escapes of Markdown if it does not compile with them: `my\\_sum = 0`."""
    found = _blocks_in_prose(outside, names)
    plain = _ESCAPE.sub("", outside)
    if plain == outside or _any_usable(found, names):
        return found
    without_escapes = _blocks_in_prose(plain, names)
    return without_escapes if _any_usable(without_escapes, names) else found


def _any_usable(blocks: Sequence[_Block], names: Collection[str]) -> bool:
    return any(compiles(block.text) and _is_usable(block, names) for block in blocks)


def _is_usable(block: _Block, names: Collection[str]) -> bool:
    """Return whether the block implements some of *names*, or does something if there are none."""
    return _count_implemented(block, names) > 0 if names else does_something(block.text)


def _blocks_in_prose(outside: str, names: Collection[str]) -> list[_Block]:
    """Return code in prose: statements, else text indented as Markdown code, else an interpreter session."""
    statements = without_prompts(outside)
    found = [_Block(repair_source(text)) for text in code_regions(statements)]
    if not any(_count_defined(block, names) for block in found):
        indented = [_Block(repair_source(text)) for text in indented_code_regions(statements)]
        found = indented if any(_count_defined(block, names) for block in indented) else found
    if found and statements.rstrip().endswith(found[-1].text.rstrip()):
        found[-1] = _Block(found[-1].text, cut=True)
    return found


def _inline_blocks(outside: str, names: Collection[str]) -> list[_Block]:
    """Return the code within sentences that implements any of *names*: "Use `add = lambda a, b: a + b`.".

    Without *names*, it is a program that reads input and prints.
    """
    found = [_Block(match["code"].strip()) for match in _INLINE.finditer(outside)]
    return [
        block
        for block in found
        if compiles(block.text)
        and (_count_implemented(block, names) if names else _count_streams(block.text) == _STREAMS)
    ]


# ---- names that a block defines --------------------------------------------------------------------------------------


def _count_defined(block: _Block, names: Collection[str]) -> int:
    """Return how many of *names* the block defines, imports or begins to define."""
    return sum(defines(block.text, name) for name in names)


def _count_implemented(block: _Block, names: Collection[str]) -> int:
    """Return how many of *names* the block implements; stubs, imports and truncated code do not count."""
    tree = parsed(block.text)
    if tree is None:
        return 0 if block.cut or lacks_function_body(block.text) else _count_defined(block, names)
    if block.cut and undefined_names(block.text):
        return 0
    return len((implemented_names(tree, returning=block.cut) & set(names)) - elided_names(block.text, tree))


def _count_values(block: _Block, names: Collection[str]) -> int:
    """Return how many of *names* the block assigns a value that is no function, as explanations often do."""
    tree = parsed(block.text)
    return len(assigned_values(tree) & set(names)) if tree else 0


def _count_streams(text: str) -> int:
    """Return how many of the standard input and output a program uses. A part of it, or a test of it, uses fewer."""
    return sum(pattern.search(text) is not None for pattern in (_READS, _WRITES))


def _any_implemented(blocks: Sequence[_Block], names: Collection[str]) -> bool:
    return any(_count_implemented(_compilable_part(block, names), names) for block in blocks)


def _compilable_part(block: _Block, names: Collection[str]) -> _Block:
    """Return *block*, or the part of it that compiles if that defines the wanted names.

    The part lacks lines that are not Python, such as an explanation or output within the fence, and the last statement
    of a truncated block. A block with a mistake in a wanted function is returned unchanged.
    """
    if not names or compiles(block.text):
        return block
    texts = [block.text]
    if block.cut:
        texts.append(without_last_statement(block.text))
    for text in texts:
        part = join_sources(code_regions(text)) if text.strip() else ""
        if not compiles(part):
            continue
        lost = {name for name in undefined_names(part) if defines(block.text, name)}
        if not lost and len(implemented_names_in(part) & set(names)) == _count_defined(block, names):
            in_place = _in_place(part, block.text)
            return replace(block, text=in_place if compiles(in_place) else part, cut=False)
    return block


def _in_place(part: str, whole: str) -> str:
    """Return *whole* with the lines that are not in *part* left empty, so that line numbers stay the same."""
    wanted = iter(line for line in split_lines(part) if line.strip())
    following = next(wanted, None)
    lines = []
    for line in split_lines(whole):
        is_part = line == following
        lines.append(line if is_part or not line.strip() else "")
        following = next(wanted, None) if is_part else following
    return "\n".join(lines) + "\n"


def _chosen(blocks: Sequence[_Block], names: Collection[str], *, fenced: bool) -> Code:
    written, blocks = blocks, [_compilable_part(block, names) for block in blocks]
    chosen = max(
        range(len(blocks)),
        key=lambda i: (
            _count_implemented(blocks[i], names),
            _count_defined(blocks[i], names),
            -_count_values(blocks[i], names),
            0 if names else _count_streams(blocks[i].text),
            not only_shows_data(blocks[i].text),
            not blocks[i].is_text,
            i,
        ),
    )
    texts = [block.text for block in blocks]
    kept = {chosen}
    have = defined_names(texts[chosen]) | {name for name in names if defines(texts[chosen], name)}
    missing = undefined_names(texts[chosen]).union(names) - have
    # The nearest block before the chosen one comes first, because corrections follow the code that they correct.
    others = [*reversed(range(chosen)), *range(chosen + 1, len(blocks))]
    added = True
    while missing and added:
        added = False
        for i in others:
            gives = defined_names(texts[i])
            if i not in kept and gives & missing and not gives & have & set(names):
                kept.add(i)
                have |= gives
                missing = (missing | undefined_names(texts[i])) - have
                added = True
    if fenced and names:
        defined = {name: node for i in sorted(kept) for name, node in definitions(texts[i]).items()}
        for i in range(chosen + 1, len(blocks)):
            if i in kept or blocks[i].cut or blocks[i].is_text or not defined_names(texts[i]).isdisjoint(names):
                continue
            if undefined_names(texts[i]) <= have and corrects(texts[i], defined):
                kept.add(i)
                have |= defined_names(texts[i])
                defined |= definitions(texts[i])
    source = join_sources([texts[i] for i in sorted(kept)])
    dropped = tuple(line for i in sorted(kept) for line in _describe_left_out(written[i].text, texts[i]))
    if not fenced:
        return Code(source, "unfenced", dropped=dropped)
    if len(kept) > 1:
        return Code(source, "joined_fences", dropped=dropped)
    return Code(source, "fence" if len(blocks) == 1 else "last_fence", dropped=dropped)


def _describe_left_out(written: str, taken: str) -> list[str]:
    """Return the lines of a block that are not in the part of it that is used, each with its number."""
    lines = set(split_lines(taken))
    return [
        describe_line(i, line) for i, line in enumerate(split_lines(written), 1) if line.strip() and line not in lines
    ]


def join_sources(sources: Sequence[str]) -> str:
    """Return one program of several, with imports from `__future__` first, as Python requires."""
    if len(sources) <= 1:
        return "".join(sources)
    futures = dict.fromkeys(line.rstrip("\n") for source in sources for line in _FUTURE.findall(source))
    return "\n\n".join([*futures, *(_FUTURE.sub("", source) for source in sources)])


# ---- the prefix ------------------------------------------------------------------------------------------------------


def _with_prefix(found: Code, prefix: str, names: Collection[str]) -> Code:
    """Return *found* with the imports and helpers of the prefix in front, if it uses any of them."""
    if not prefix.strip():
        return found
    complete = next((source for source in (prefix, with_body(prefix, "pass")) if parsed(source)), "")
    tree = parsed(complete) if complete else None
    if tree is None:
        return found
    kept = [node for node in tree.body if getattr(node, "name", None) not in names]
    if not bound(ast.Module(kept, [])) & undefined_names(found.text):
        return found
    around = "\n".join(_source(complete, node) for node in kept)
    return replace(found, text=join_sources([around, found.text]), with_prefix=True)


def _source(text: str, node: ast.stmt) -> str:
    """Return the lines of *node*, decorators included."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "\n".join(split_lines(text)[first - 1 : node.end_lineno])
