"""Removal of wrappers around code in a model's answer: chat markers, tags, JSON, entities, prompts."""

import ast
import html
import json
import re
import textwrap
from collections.abc import Iterator

from hub.extraction.fences import fences, language, split_lines
from hub.extraction.json_values import json_values
from hub.extraction.python_code.syntax import compiles, undefined_names

_MARKER = (
    r"<\|(?:im_end|im_start|endoftext|end_of_text|begin_of_text|eot_id|eom_id|eos|end|start|return|assistant|user|system"
    r"|start_header_id|end_header_id)\|>|</?s>|<(?:eos|bos|end_of_turn|start_of_turn)>|<｜[^｜\n]{1,40}｜>|\[/?INST\]"
)
_ENDS = re.compile(rf"(?:(?<![\"'`\\])|(?<=^```))(?:{_MARKER})(?![\"'`\\])", re.MULTILINE)
_BEGINS = re.compile(rf"\A\s*(?:{_MARKER})[ \t]*(?:assistant|model)?[ \t]*\n?")
_FINAL_CHANNEL = "<|channel|>final<|message|>"

_TAG_NAMES = r"pre|code|python|solution|program|answer"
_OPEN_TAG = rf"(?:<(?:{_TAG_NAMES})(?:[ ][^>\n]*)?>|\[(?:PYTHON|CODE|BEGIN|SOLUTION)\])"
_CLOSE_TAG = rf"(?:</(?:{_TAG_NAMES})>|\[/(?:PYTHON|CODE|SOLUTION)\]|\[(?:DONE|END)\])"
_TAGGED = re.compile(
    rf"^(?P<before>[^\n\"'`<\[]*)(?:{_OPEN_TAG}[ \t]*\n?)+(?P<body>.*?)(?:(?:{_CLOSE_TAG}\s*)+|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_TAG_LINE = re.compile(rf"\s*(?:{_OPEN_TAG}|{_CLOSE_TAG})\s*", re.IGNORECASE)
_QUOTED_FENCE = re.compile(r"[ \t]*(?P<mark>'''|\"\"\")(?:python3?|py)[ \t]*", re.IGNORECASE)
_LANGUAGE_FENCE = re.compile(r"```[ \t]*(?:python3?|py)[ \t]*", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{2}")
_STRAY_WORDS = {"python", "py", "code", "solution"}
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,5}|#x[0-9a-fA-F]{1,4});")
_ENTITY_NAMES = {"lt", "gt", "amp", "quot", "apos", "nbsp"}
_PROMPT = re.compile(r"^(?:>>>|In ?\[\d*\]:)(?: |$)")
_CONTINUATION_PROMPT = re.compile(r"^(?:\.\.\.|[ ]+\.\.\.:)(?: |$)")
_DEFINITION = re.compile(r"[ \t]*(?:def|class|async[ \t]+def)[ \t]+\w+[ \t]*[(:]")
_CODE_KEYS = (
    "code",
    "solution",
    "program",
    "python",
    "python_code",
    "implementation",
    "function",
    "answer",
    "completion",
)
_TRIPLE_QUOTED = re.compile(
    rf"""\{{\s*["'](?:{"|".join(_CODE_KEYS)})["']\s*:\s*(?P<mark>\"\"\"|''')\n?""", re.IGNORECASE
)
_NUMBERED_LINE = re.compile(r"[ \t]*(?P<number>\d{1,5})(?:[ \t]*[|│:.)]|(?=\s|$))(?P<code>.*)")
_MAX_UNESCAPED = 100_000  # characters of one line that may be a program with `\n` escapes for its line ends


def without_chat_markers(text: str) -> str:
    """Return *text* without markers of a chat template, cut after the marker that ends the turn."""
    text = text.rpartition(_FINAL_CHANNEL)[2]
    while (begins := _BEGINS.match(text)) is not None:
        text = text[begins.end() :]
    end = _ENDS.search(text)
    return text[: end.start()] if end else text


def with_fences(text: str) -> str:
    """Return *text* with tags around code, and quotation marks used as fences, replaced by Markdown fences."""
    lines = text.split("\n")
    if "```" in text:
        return "\n".join(_split_before_fence(line) if "```" in line else line for line in lines)
    for i, line in enumerate(lines):
        opening = _QUOTED_FENCE.fullmatch(line)
        if opening:
            ends = (j for j in range(i + 1, len(lines)) if lines[j].strip() == opening["mark"])
            end = next(ends, len(lines))
            return "\n".join([*lines[:i], "```python", *lines[i + 1 : end], "```", *lines[end + 1 :]])
    return _TAGGED.sub(_fenced, text)


def _split_before_fence(line: str) -> str:
    """Return a line in which a fence follows prose as two lines."""
    before, mark, rest = line.partition("```")
    follows = _WORD.search(before) is not None and _LANGUAGE_FENCE.fullmatch(mark + rest) is not None
    return f"{before}\n{mark}{rest}" if follows else line


def _fenced(match: re.Match[str]) -> str:
    body = match["body"]
    if "\n" not in body.strip("\n") and not compiles(body):
        return match[0]
    return f"{match['before']}\n```python\n{body.rstrip()}\n```\n"


def code_strings(text: str) -> Iterator[str]:
    """Yield the strings of JSON in *text* that are code: `{"code": "def f(): ..."}`, or a single string."""
    if "{" not in text and not text.strip().startswith('"'):
        return
    for value in [*json_values(text, strict=False), *_literal_values(text)]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            folded = {str(key).lower(): item for key, item in value.items()}
            if cells := _notebook_cells(value):
                yield "\n\n".join(cells)
            for key in _CODE_KEYS:
                if isinstance(folded.get(key), str):
                    yield folded[key]


def _notebook_cells(value: dict[str, object]) -> list[str]:
    """Return the sources of the code cells if *value* is a Jupyter notebook; a source is a text or a list of lines."""
    cells = value.get("cells")
    if not isinstance(cells, list):
        return []
    code = [cell.get("source") for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]
    return ["".join(map(str, source)) if isinstance(source, list) else str(source or "") for source in code]


def _literal_values(text: str) -> Iterator[object]:
    """Yield mappings written as Python literals, or with a triple-quoted value that may contain triple quotes."""
    quoted = _TRIPLE_QUOTED.search(text)
    end = text.rfind(quoted["mark"]) if quoted else -1
    if quoted and end >= quoted.end():
        yield {"code": text[quoted.end() : end]}
    for candidate in [text, *(block.text for block in fences(text))]:
        if candidate.strip().startswith("{") and compiles(candidate.strip()):
            try:
                yield ast.literal_eval(candidate.strip())
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue


def repair_source(source: str) -> str:
    """Return *source* without prompts, a language's name, tags, entities, line numbers and indentation of the code."""
    source = _without_stray_lines(without_prompts(source))
    if compiles(source):
        return _unescaped(source) if _reads_entities(source) else source
    for form in (
        textwrap.dedent(source),
        _unescaped(source),
        textwrap.dedent(_unescaped(source)),
        _with_line_ends(source),
        *_without_line_numbers(source),
    ):
        if form != source and compiles(form):
            return form
    return source


def without_prompts(source: str) -> str:
    """Return the statements of a pasted session (`>>> def f():`) without prompts and output; other source unchanged.

    A session that only uses what the lines outside of it define is an example of use, so it is not the source.
    """
    lines = split_lines(source)
    if not any(_PROMPT.match(line) for line in lines) or compiles(source):
        return source
    kept, others = [], []
    in_input = False
    for line in lines:
        prompt = _PROMPT.match(line) or (_CONTINUATION_PROMPT.match(line) if in_input else None)
        in_input = prompt is not None
        if prompt:
            kept.append(line[prompt.end() :])
        else:
            others.append(line)
    if any(map(_DEFINITION.match, others)) and not any(map(_DEFINITION.match, kept)):
        return source
    return "\n".join(kept) + "\n"


def _without_stray_lines(source: str) -> str:
    """Return *source* with empty lines in place of a first line with the language, and of tags at either end."""
    lines = source.split("\n")
    filled = [i for i, line in enumerate(lines) if line.strip()]
    while filled and _is_stray(lines[filled[0]]):
        lines[filled.pop(0)] = ""
    while filled and _TAG_LINE.fullmatch(lines[filled[-1]]):
        lines[filled.pop()] = ""
    return "\n".join(lines) if filled else ""


def _is_stray(line: str) -> bool:
    """Return whether the first line of a block is only the language's name (`python`, `py:`) or a tag."""
    word = line.strip().rstrip(":")
    return _TAG_LINE.fullmatch(line) is not None or (word.isidentifier() and language(word) in _STRAY_WORDS)


def _reads_entities(source: str) -> bool:
    """Return whether code that compiles contains entities, so that `a &lt; b` is parsed as `a & lt; b`."""
    return _ENTITY.search(source) is not None and not undefined_names(source).isdisjoint(_ENTITY_NAMES)


def _unescaped(source: str) -> str:
    return html.unescape(source).replace("\u00a0", " ") if _ENTITY.search(source) else source


def _without_line_numbers(source: str) -> list[str]:
    """Return what *source* may be without line numbers: `1  def f():`, ` 2 |     x = 1`, `3: return x`.

    The numbers are those of successive lines. If they are not aligned to the right, shorter ones may be padded.
    """
    lines = [line for line in split_lines(source) if line.strip()]
    numbered = [match for line in lines if (match := _NUMBERED_LINE.fullmatch(line))]
    numbers = [int(match["number"]) for match in numbered]
    if len(lines) != len(numbers) or len(numbers) < 2 or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return []
    width = max(match.start("code") for match in numbered)
    forms = ([match["code"] for match in numbered], [match[0][width:] for match in numbered])
    return [textwrap.dedent("\n".join(form)) + "\n" for form in forms]


def _with_line_ends(source: str) -> str:
    r"""Return a program on one line with its `\n` escapes replaced by line ends."""
    text = source.strip().strip("\"'`")
    if "\n" in text or "\\n" not in text or len(text) > _MAX_UNESCAPED:
        return source
    try:
        return str(json.loads('"' + re.sub(r'(?<!\\)"', r'\\"', text) + '"')) + "\n"
    except ValueError:
        return source
