"""Answers that continue a prefix (a signature and docstring): the body of its function alone."""

import ast
import re
import textwrap

from hub.extraction.fences import split_lines
from hub.extraction.python_code.syntax import compiles, defined_names, does_something, parsed, undefined_names

_HEADER = re.compile(r"(?:def|class|async\s+def)\s+\w+\s*[(:]")
_HEADER_NAME = re.compile(r"^[ \t]*(?:def|class|async\s+def)\s+(\w+)", re.MULTILINE)
_MARKED_HEADER = re.compile(r"[*_`>]{1,6}[ \t]*(?:def|class|async\s+def)\s+(\w+)\s*[(:]")


def continue_prefix(prefix: str, body: str) -> str | None:
    """Return *prefix* (a signature and docstring) followed by *body*; None if that does not compile.

    A body may be indented, not indented at all or indented except in its first line. Prose before and after it is
    removed. A program that does without the parameters of the prefix's function is no body.
    """
    body = body.strip("\n")
    if not body.strip():
        return None
    if not prefix.endswith("\n") and compiles(prefix + body) and defined_names(prefix + body):
        return prefix + body + "\n"  # the body continues the last line of the prefix
    for part in (body, _before_prose(body), _before_prose(_after_prose(body, prefix))):
        if not part.strip():
            continue
        if _stands_alone(part, prefix):
            return None
        flush = textwrap.indent(textwrap.dedent(part), _indent(prefix))
        first, _, rest = part.partition("\n")
        hanging = f"{_indent(prefix)}{first.strip()}\n{rest}"
        forms = (part, flush) if part[0] in " \t" else (flush, hanging)
        for form in forms:
            source = f"{prefix.rstrip()}\n{form}\n"
            if compiles(source):
                return source
    return None


def _stands_alone(body: str, prefix: str) -> bool:
    """Return whether *body* is a program with definitions of its own, or a value, and reads none of the parameters."""
    source = textwrap.dedent(body)
    tree, begun = parsed(source), parsed(with_body(prefix, "pass"))
    if tree is None or begun is None or not begun.body:
        return False
    function = begun.body[-1]
    parameters = {part.arg for part in ast.walk(function) if isinstance(part, ast.arg)}
    if not parameters or not undefined_names(source).isdisjoint(parameters):
        return False
    has_definitions = any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in tree.body)
    return has_definitions or not does_something(source)


def with_body(prefix: str, body: str) -> str:
    """Return *prefix* followed by *body*, a line, as the body of its last function."""
    return f"{prefix.rstrip()}\n{_indent(prefix)}{body}\n"


def _indent(prefix: str) -> str:
    """Return the indentation of the body of the prefix's last function."""
    last = prefix.rstrip().rpartition("\n")[2]
    margin = last[: len(last) - len(last.lstrip())]
    return margin + "    " if last.endswith(":") or not margin else margin


def _before_prose(text: str) -> str:
    """Return *text* up to the first line that is neither indented nor Python.

    If it begins without indentation, its first paragraph is returned.
    """
    lines = split_lines(text)
    if not lines or lines[0][:1] not in (" ", "\t"):
        return _first_paragraph(text)
    for i, line in enumerate(lines):
        if line.strip() and line[0] not in " \t" and not does_something("\n".join(lines[i:])):
            return "\n".join(lines[:i])
    return text


def _first_paragraph(text: str) -> str:
    return re.split(r"\n[ \t]*\n(?=[^ \t\n])", text, maxsplit=1)[0]


def _after_prose(text: str, prefix: str) -> str:
    """Return *text* from the first indented line on, without prose before it.

    If that line is the body of a definition, *text* is returned, unless the definition is the last one of *prefix*,
    written with Markdown: `**def add(a, b):**`.
    """
    lines = split_lines(text)
    start = next((i for i, line in enumerate(lines) if line[:1] in (" ", "\t") and line.strip()), 0)
    marked = {match[1] for line in lines[:start] if (match := _MARKED_HEADER.match(line))}
    if any(map(_HEADER.match, lines[:start])) or not marked <= set(_HEADER_NAME.findall(prefix)[-1:]):
        return text
    return "\n".join(lines[start:])
