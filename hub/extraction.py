"""What a model meant as its answer: code, numbers, letters, JSON and text out of prose. Pure."""

import ast
import json
import re
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

# ---- reasoning -------------------------------------------------------------------------------------------------------

_TAG = re.compile(
    r"<(?P<close>/?)(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis)>", re.IGNORECASE
)
_INVISIBLE = dict.fromkeys(map(ord, "\ufeff\u200b\u200c\u200d\u2060\u00ad"))


def without_reasoning(text: str) -> str:
    """*text* without reasoning blocks.

    A block that never closes is reasoning to the end. One that was never opened (the endpoint kept the opening tag to
    itself) is reasoning from the beginning.
    """
    kept: list[str] = []
    depth = position = 0
    for tag in _TAG.finditer(text):
        if not tag["close"]:
            if depth == 0:
                kept.append(text[position : tag.start()])
            depth += 1
            continue
        if depth == 0:
            kept = []
        depth = max(depth - 1, 0)
        position = tag.end()
    if depth == 0:
        kept.append(text[position:])
    return "".join(kept).strip("\n")


# ---- code ------------------------------------------------------------------------------------------------------------

_FENCE = re.compile(
    r"^(?P<indent>[ \t]*(?:>[ \t]?|[-*][ \t]|\d+\.[ \t])?[ \t]*)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$"
)
_PYTHON = {"", "python", "py", "python3", "py3", "ipython", "pycon", "python2", "sage", "cython"}
_CONSOLE = re.compile(r"^(>>> |\.\.\. |\$ |In \[\d+\]:)", re.MULTILINE)
_STARTS = re.compile(
    r"^(?:from\s+[\w.]+\s+import\s|import\s+\w|def\s+\w|async\s+def\s+\w|class\s+\w|@\w)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Code:
    """A program and where it came from: `fence`, `last_fence`, `joined_fences`, `unfenced`, `continued` or `whole`."""

    text: str
    found: str


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block: its info word in lower case, and its text with the fence's own indentation taken off."""

    language: str
    text: str


def fences(text: str) -> list[Fence]:
    """The fenced blocks of Markdown, in order; one that is never closed runs to the end."""
    blocks: list[Fence] = []
    mark = language = indent = ""
    lines: list[str] = []
    for line in text.splitlines():
        match = _FENCE.match(line)
        if not mark:
            if match:
                mark, indent = match["mark"], match["indent"]
                language = match["info"].strip().split(" ")[0].strip("{}.").lower()
                lines = []
        elif match and match["mark"][0] == mark[0] and len(match["mark"]) >= len(mark) and not match["info"].strip():
            blocks.append(Fence(language, _dedented(lines, indent)))
            mark = ""
        else:
            lines.append(line)
    if mark:
        blocks.append(Fence(language, _dedented(lines, indent)))
    return blocks


def _dedented(lines: Sequence[str], indent: str) -> str:
    width = len(indent.expandtabs(4))
    if width:
        lines = [
            line[len(line) - len(line.lstrip()) :] if _width(line) < width else _drop(line, width) for line in lines
        ]
    return "\n".join(lines) + "\n" if lines else ""


def _width(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _drop(line: str, width: int) -> str:
    return line.expandtabs(4)[width:] if "\t" in line[:width] else line[width:]


def code(text: str, *, entry_point: str | None = None, prefix: str = "") -> Code:
    """The program that *text* holds.

    *entry_point* is the name it should define, *prefix* the code that a body-only completion continues. In order: the
    last fenced block that defines the entry point; all Python blocks joined, where only together they define it or the
    chosen one leans on names of earlier ones; the last Python block; the unfenced text from its first statement on; the
    text as a continuation of the prefix.
    """
    text = without_reasoning(text.translate(_INVISIBLE)).replace("\r\n", "\n").replace("\r", "\n")
    blocks = [_plain(block.text) for block in fences(text) if _is_python(block)]
    if blocks:
        return _from_blocks(blocks, entry_point, prefix)
    return _from_prose(text, entry_point, prefix)


def _is_python(block: Fence) -> bool:
    if block.language not in _PYTHON:
        return False
    # A block that only shows a session or a shell is not the answer; a function pasted from a session is.
    shows = _CONSOLE.search(block.text) and not _STARTS.search(_plain(block.text))
    return bool(block.text.strip()) and not shows


def _plain(text: str) -> str:
    """A block pasted from a session (`>>> def f():`) without its prompts."""
    if re.match(r"\s*>>> ", text) and not _compiles(text):
        kept = [line[4:] for line in text.splitlines() if line.startswith((">>> ", "... "))]
        return "\n".join(kept) + "\n"
    return text


def _from_blocks(blocks: list[str], entry_point: str | None, prefix: str) -> Code:
    name = (entry_point or "").rpartition(":")[2].split(".")[0]
    defining = [i for i, block in enumerate(blocks) if name and defines(block, name)]
    if defining:
        chosen = defining[-1]
        missing = _needed(blocks[chosen]) - _defined(blocks[chosen])
        helpers = [
            block for i, block in enumerate(blocks) if i != chosen and i not in defining and missing & _defined(block)
        ]
        if helpers:
            return Code("\n\n".join([*helpers, blocks[chosen]]), "joined_fences")
        return Code(blocks[chosen], "fence" if len(blocks) == 1 else "last_fence")
    if name and prefix:
        for block in reversed(blocks):
            joined = continued(prefix, block)
            if joined is not None and defines(joined, name):
                return Code(joined, "continued")
    if len(blocks) > 1 and not name:
        return (
            Code("\n\n".join(blocks), "joined_fences")
            if _compiles("\n\n".join(blocks))
            else Code(blocks[-1], "last_fence")
        )
    return Code(blocks[-1], "fence" if len(blocks) == 1 else "last_fence")


def _from_prose(text: str, entry_point: str | None, prefix: str) -> Code:
    name = (entry_point or "").rpartition(":")[2].split(".")[0]
    if _compiles(text) and (not name or defines(text, name)):
        return Code(text, "whole")
    unfenced = _statements(text)
    if unfenced and (not name or defines(unfenced, name)):
        return Code(unfenced, "unfenced")
    if prefix:
        joined = continued(prefix, text)
        if joined is not None:
            return Code(joined, "continued")
    return Code(unfenced or text, "unfenced" if unfenced else "whole")


def _statements(text: str) -> str:
    """The longest run of lines from the first statement on that compiles; prose before and after it falls away."""
    match = _STARTS.search(text)
    if match is None:
        return ""
    lines = text[match.start() :].splitlines()
    for end in range(len(lines), 0, -1):
        if end < len(lines) and not lines[end - 1].strip():
            continue
        candidate = "\n".join(lines[:end]) + "\n"
        if _compiles(candidate):
            return candidate
    return "\n".join(lines) + "\n"


def continued(prefix: str, body: str) -> str | None:
    """*prefix* (a signature and docstring) with *body* under it; None where that does not compile.

    A body may be indented, not indented at all, indented except in its first line, or repeat the signature.
    """
    body = body.strip("\n")
    if not body.strip():
        return None
    head = prefix if prefix.endswith("\n") else prefix + "\n"
    flush = textwrap.indent(textwrap.dedent(body), "    ")
    first, _, rest = body.partition("\n")
    hanging = f"    {first.strip()}\n{rest}"
    for candidate in (head + body + "\n", head + flush + "\n", head + hanging + "\n"):
        if _compiles(candidate):
            return candidate
    # Trailing prose: give up lines from the end until the rest compiles.
    lines = body.splitlines()
    for end in range(len(lines) - 1, 0, -1):
        for kept in ("\n".join(lines[:end]), textwrap.indent(textwrap.dedent("\n".join(lines[:end])), "    ")):
            if kept.strip() and _compiles(head + kept + "\n"):
                return head + kept + "\n"
    return None


def defines(source: str, name: str) -> bool:
    """Whether the top level of *source* binds *name*; by pattern where it does not parse."""
    tree = _parsed(source)
    if tree is None:
        return re.search(rf"^(?:async\s+)?(?:def|class)\s+{re.escape(name)}\b", source, re.MULTILINE) is not None
    return name in _bound(tree)


def _defined(source: str) -> set[str]:
    tree = _parsed(source)
    return _bound(tree) if tree else set()


def _bound(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        else:
            names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names


def _needed(source: str) -> set[str]:
    tree = _parsed(source)
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} if tree else set()


def _parsed(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model's "\\d" in a plain string is nobody's business here
            tree = ast.parse(source)
            compile(tree, "<answer>", "exec", dont_inherit=True)  # also refuses a `return` outside of a function
            return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _compiles(source: str) -> bool:
    return bool(source.strip()) and _parsed(source) is not None


# ---- the final answer ------------------------------------------------------------------------------------------------

_ANSWER = re.compile(
    r"(?:\*\*|__)?\b(?:final\s+)?answer\b(?:\s+is)?(?:\*\*|__)?\s*[:=]?\s*(?:\*\*|__)?[ \t]*\n?(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
_HASHES = re.compile(r"####[ \t]*(?P<rest>[^\n]+)")


def final_answer(text: str) -> str | None:
    """What follows the last `\\boxed{}`, `#### ` or "Answer:"; None where there is none of them."""
    text = without_reasoning(text.translate(_INVISIBLE))
    places: list[tuple[int, str]] = []
    boxed = _boxed(text)
    if boxed is not None:
        places.append(boxed)
    places += [(m.start(), m["rest"]) for m in _HASHES.finditer(text)]
    places += [(m.start(), m["rest"]) for m in _ANSWER.finditer(text) if m["rest"].strip() and _is_marked(m[0])]
    if not places:
        return None
    return _bare(max(places)[1])


def _is_marked(said: str) -> bool:
    """ "the answer is 4" and "Answer: 4", but not "answer the question"."""
    return re.match(r"(?:\*\*|__)?(?:final\s+)?answer(?:\s+is\b|(?:\*\*|__)?\s*[:=])", said, re.IGNORECASE) is not None


def _boxed(text: str) -> tuple[int, str] | None:
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if start < 0:
        return None
    open_at = text.index("{", start)
    depth = 0
    for i in range(open_at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return start, text[open_at + 1 : i]
    return start, text[open_at + 1 :]


def _bare(text: str) -> str:
    """Without emphasis, quotes, TeX's dress and a closing full stop."""
    text = text.strip()
    text = re.sub(r"^\\?\(|\\?\)$|^\$+|\$+$", "", text) if text.startswith(("\\(", "$")) else text
    text = re.sub(r"\\(?:text|mathrm|textbf|mathbf)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"^(\*\*|__|`|\"|')(.*)\1(\.?)$", r"\2\3", text)
    text = text.strip("*_` ").strip()
    return re.sub(r"(?<=[^.])\.$", "", text).strip("*_` ")


# ---- numbers ---------------------------------------------------------------------------------------------------------

_MINUS = str.maketrans({"−": "-", "–": "-", "‑": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[-+]?)\s?(?:[$€£¥]\s?)?(?P<inner>[-+]?)"
    r"(?P<whole>\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?:[ _]\d{3})+(?!\d)|\d+)?(?P<part>\.\d+)?"
    r"(?P<power>[eE][-+]?\d+|\s?(?:\*|x|×|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?\{?[-+]?\d+\}?)?"
    r"(?:\s?/\s?(?P<below>\d+(?:\.\d+)?)(?![\d/]))?(?P<percent>\s?\\?%)?"
)
_FRACTION = re.compile(r"(-?)\s*\\[dt]?frac\{\s*(-?[\d.]+)\s*\}\{\s*(-?[\d.]+)\s*\}")


def number(text: str) -> Fraction | None:
    """The number that *text* gives as its answer: the last one in the final answer, or else the last one of all."""
    marked = final_answer(text)
    if marked is not None:
        found = numbers(marked)
        if found:
            # "Answer: 42 km in 3 hours" means 42; "Answer: 6 * 7 = 42" means 42.
            return (
                numbers(marked.rpartition("=")[2])[0]
                if "=" in marked and numbers(marked.rpartition("=")[2])
                else found[0]
            )
    everything = numbers(without_reasoning(text))
    return everything[-1] if everything else None


def numbers(text: str) -> list[Fraction]:
    """Every number of *text*, in order; percent signs, currencies and units are not part of a number."""
    text = text.translate(_MINUS)
    text = (
        _FRACTION.sub(lambda m: f" {m[1]}{m[2]}/{m[3]} ", text)
        .replace("\\,", "")
        .replace("\\!", "")
        .replace("{,}", ",")
    )
    found = []
    for match in _NUMBER.finditer(text):
        if match["whole"] or match["part"]:
            value = _value(match)
            if value is not None:
                found.append(value)
    return found


def _value(match: re.Match[str]) -> Fraction | None:
    digits = re.sub(r"[,_ ]", "", match["whole"] or "0") + (match["part"] or "")
    power = re.search(r"[-+]?\d+\}?$", re.sub(r".*10\s?(?:\^|\*\*)", "", match["power"])) if match["power"] else None
    exponent = int(power[0].rstrip("}")) if power else 0
    if abs(exponent) > 400 or len(digits) > 400:
        return None
    try:
        value = Fraction(Decimal(digits)) * Fraction(10) ** exponent
        if match["below"]:
            value /= Fraction(Decimal(match["below"]))
    except (InvalidOperation, ZeroDivisionError):
        return None
    return -value if "-" in (match["sign"] + match["inner"]) else value


# ---- choices ---------------------------------------------------------------------------------------------------------


def choice(text: str, labels: Sequence[str], choices: Sequence[str] = ()) -> str | None:
    """The label that *text* chooses, or None: from the final answer, a marked letter, or an option's own text."""
    text = without_reasoning(text.translate(_INVISIBLE))
    marked = final_answer(text)
    if marked is not None:
        found = _label(marked, labels, choices)
        if found is not None:
            return found
    options = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    patterns = [
        rf"(?:correct|right|best)\s+(?:answer|option|choice)\s+(?:is|would be)\s*:?\s*[(\[*_\s]*({options})\b",
        rf"\b(?:option|choice)\s+[(\[*_]*({options})\b(?=[)\]*_.:]*\s+(?:is|as)\b|[)\]*_.]*\s*$)",
        rf"^\s*[(\[*_]*({options})[)\].:*_]*\s*$",
        rf"\*\*\(?({options})\)?[).:]?(?:\s[^*\n]*)?\*\*",
        rf"^\s*\(?({options})[).:]\s",
        rf"\(({options})\)",
    ]
    for pattern in patterns:
        matches = re.findall(pattern, text, re.MULTILINE)
        if matches:
            return str(matches[-1])
    return _label(text.strip(), labels, choices)


def _label(said: str, labels: Sequence[str], choices: Sequence[str]) -> str | None:
    """A label at the beginning of a short answer, or an option's own text."""
    said = _bare(said)
    for label in sorted(labels, key=len, reverse=True):
        if re.match(rf"[(\[*_\s]*{re.escape(label)}(?:[)\].:,*_]|\s*$|\s+[-–—(])", said):
            return label
        if re.fullmatch(rf"{re.escape(label)}", said, re.IGNORECASE):
            return label
    flat = _squeezed(said)
    for label, option in zip(labels, choices, strict=False):
        if _squeezed(option) == flat:
            return label
    return None


def _squeezed(text: str) -> str:
    return re.sub(r"[^\w]+", " ", text.casefold()).strip()


# ---- JSON ------------------------------------------------------------------------------------------------------------


_OPEN = re.compile(r"[\[{]")
_JSON_FENCES = ("", "json", "json5", "jsonc")
_MAX_FAILURES = 200  # brackets that begin no JSON, before a text of brackets alone is given up
_MAX_CUTS = 20  # places tried, from the end, at which a value that was cut may be closed


class NoJSON(ValueError):
    """No JSON value stands in the text; the message says where reading failed."""


def json_value(text: str) -> Any:
    """The JSON value that *text* gives: the first of `json_values`. Raises NoJSON."""
    values = json_values(text)
    if values:
        return values[0]
    bare = _spoken(text)
    try:
        json.loads(bare)
    except (ValueError, RecursionError) as error:
        raise NoJSON(f"no JSON value could be read ({error if bare else 'the answer is empty'})") from None
    raise NoJSON("no JSON value could be read (NaN and Infinity are not JSON)")


def json_values(text: str) -> list[Any]:
    """Every JSON value that *text* may mean, the likeliest first.

    That is the whole text; else what stands in fences, the last first; else the objects and arrays within prose, the
    last first.
    """
    text = _spoken(text)
    whole = _loaded([text])
    if whole:
        return whole
    fenced = _loaded([block.text for block in reversed(fences(text)) if block.language in _JSON_FENCES])
    return fenced + list(reversed(_within(text)))


def completed_json(text: str) -> Any | None:
    """An object or array that was cut off, closed after its last complete member; None where there is none.

    What was being written when it was cut is dropped: half a number or half a sentence would be another value.
    """
    text = _spoken(text)
    start = _next_open(text, 0)
    if start < 0:
        return None
    open_brackets: list[str] = []
    commas: list[tuple[int, str]] = []  # where a member ended, and what would close the value there
    in_string = escaped = False
    for i in range(start, len(text)):
        char = text[i]
        if in_string:
            escaped, in_string = (char == "\\" and not escaped), (char != '"' or escaped)
        elif char == '"':
            in_string = True
        elif char in "{[":
            open_brackets.append("}" if char == "{" else "]")
        elif char in "}]":
            if not open_brackets or open_brackets.pop() != char or not open_brackets:
                return None  # it is not cut, or not JSON
            commas.append((i + 1, "".join(reversed(open_brackets))))
        elif char == ",":
            commas.append((i, "".join(reversed(open_brackets))))
    for end, closing in reversed(commas[-_MAX_CUTS:]):
        values = _loaded([text[start:end] + closing])
        if values:
            return values[0]
    return None


def _spoken(text: str) -> str:
    return without_reasoning(text.translate(_INVISIBLE)).strip()


def _loaded(texts: Sequence[str]) -> list[Any]:
    values = []
    for text in texts:
        try:
            values.append(json.loads(text, parse_constant=_refuse))
        except (ValueError, RecursionError):
            continue
    return values


def _within(text: str) -> list[Any]:
    """The outermost objects and arrays of *text*, in order."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    values = []
    position = failures = 0
    while (start := _next_open(text, position)) >= 0 and failures < _MAX_FAILURES:
        try:
            value, position = decoder.raw_decode(text, start)
            values.append(value)
        except (ValueError, RecursionError):
            position = start + 1
            failures += 1
    return values


def _next_open(text: str, start: int) -> int:
    match = _OPEN.search(text, start)
    return match.start() if match else -1


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
