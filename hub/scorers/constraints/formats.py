"""Constraints on form: bullets, highlights, sections, titles, JSON, tables, code."""

import json
import re
from typing import Annotated

from pydantic import Field

from hub import extraction
from hub.extraction.fences import split
from hub.scorers.constraints.base import Constraint, Count, Relation, Text, Texts, counted
from hub.scorers.constraints.keywords import compared

_QUOTE = re.compile(r"\A[ \t]*(?:>[ \t]?)+")  # the marks of a line in a block quote
_BULLET = re.compile(r"\s*[*-]\s+\S")
_HIGHLIGHT = re.compile(r"\*{1,3}+[^\s*](?:[^\n*]*[^\s*])?\*{1,3}")
_NUMBERED = re.compile(r"\s*(?:\*\*|__)?\d{1,4}[.)](?:\*\*|__)?\s")
_NUMBERED_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?:\*\*|__)?\d{1,4}[.)](?:\*\*|__)?\s")
_NESTED = 3  # columns by which a list within a numbered item is indented
_RULE = re.compile(r"\s*(?:(?:\*\s*){3,}|(?:-\s*){3,})$")  # a horizontal line


def prose_lines(text: str) -> list[str]:
    """Return the lines outside of code blocks; all lines if the entire text is in one. Markdown is no code.

    Lines in block quotes are without their marks.
    """
    _, prose = split(text)
    lines = [_QUOTE.sub("", line, count=1) for line in prose.split("\n")]
    for block in extraction.fences(text, unwrap=False):
        if block.language.lower() in ("markdown", "md"):
            lines += prose_lines(block.text)
    return lines if any(map(str.strip, lines)) else text.split("\n")


class Bullets(Constraint):
    id = "detectable_format:number_bullet_lists"
    summary = "The text has exactly this number of bullets, lines outside of code that begin with * or - and a space."
    num_bullets: Count

    def problem(self, text: str) -> str:
        lines = prose_lines(text)
        bullets = [line for line in lines if _BULLET.match(line) and not _RULE.match(line)]
        return counted("bullets", len(bullets), "exactly", self.num_bullets)


class ConstrainedResponse(Constraint):
    id = "detectable_format:constrained_response"
    summary = 'The text contains "My answer is yes.", "My answer is no." or "My answer is maybe." verbatim.'

    def problem(self, text: str) -> str:
        options = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
        return "" if any(option in text for option in options) else "it contains none of " + ", ".join(options)


class Highlights(Constraint):
    id = "detectable_format:number_highlighted_sections"
    summary = "The text has at least this number of highlighted passages, such as *this one*."
    num_highlights: Count

    def problem(self, text: str) -> str:
        return counted("highlighted passages", self.count(text), "at least", self.num_highlights)

    def count(self, text: str) -> int:
        """Return the number of passages between asterisks that touch them, so bullets and products do not count."""
        return len(_HIGHLIGHT.findall(text))


class Sections(Constraint):
    id = "detectable_format:multiple_sections"
    summary = "The text has at least this number of sections, each headed by the splitter and a number: Section 1."
    section_spliter: Text = "Section"
    num_sections: Count

    def problem(self, text: str) -> str:
        count = len(re.findall(rf"{re.escape(self.section_spliter.strip())}\s?\d+", text))
        return counted(f"headings {self.section_spliter} N", count, "at least", self.num_sections)


def without_backticks(text: str) -> str:
    """Return *text* without three backticks at its beginning and its end, as IFEval's checker removes them."""
    return re.sub(r"^```(?:json)?|```$", "", text.strip(), flags=re.IGNORECASE).strip()


class JsonFormat(Constraint):
    id = "detectable_format:json_format"
    summary = "The whole text is JSON, optionally in a fence."

    def problem(self, text: str) -> str:
        try:
            json.loads(self.content(text), parse_constant=self.constant)
        except (ValueError, RecursionError) as error:
            return f"it is not JSON ({error})"
        return ""

    def content(self, text: str) -> str:
        """Return *text*, or the content of the fenced block that it consists of."""
        blocks, outside = split(text)
        if len(blocks) == 1 and blocks[0].language in ("", "json") and not outside.strip():
            return blocks[0].text
        return without_backticks(text)

    def constant(self, name: str) -> float:
        """Return the value of NaN or an infinity, which Python reads. Raises ValueError if *name* is not allowed."""
        raise ValueError(f"{name} is not JSON")


class JsonKeys(Constraint):
    id = "detectable_format:json_keys"
    summary = "The text contains a JSON object with exactly these keys."
    in_ifeval = False
    keys: Texts

    def problem(self, text: str) -> str:
        try:
            value: object = extraction.json_value(text)
        except extraction.NoJSON as error:
            return str(error)
        if any(isinstance(found, dict) and found.keys() == set(self.keys) for found in extraction.json_values(text)):
            return ""
        if not isinstance(value, dict):
            return "its JSON is not an object"
        missing = [key for key in self.keys if key not in value]
        more = [key for key in value if key not in self.keys]
        differences = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(more)} besides"] * bool(more)
        return f"its JSON object {' and '.join(differences)}"


class Title(Constraint):
    id = "detectable_format:title"
    summary = "The text has a title in double angle brackets, such as <<a title>>."

    def problem(self, text: str) -> str:
        for line in text.splitlines():
            start, end = line.find("<<"), line.rfind(">>")
            if 0 <= start < end and line[start:end].strip("<> \t"):
                return ""
        return "it has no title in <<double angle brackets>>"


class NumberedList(Constraint):
    id = "detectable_format:numbered_list"
    summary = "The text has a number of numbered lines, such as 1. or 2), without lists within items."
    in_ifeval = False
    num_items: Count
    relation: Relation = "exactly"

    def problem(self, text: str) -> str:
        lines = prose_lines(text)
        items = [line.expandtabs(4) for line in lines if _NUMBERED.match(line)]
        # With lists below them, numbered headings are those of sections.
        items = items or [line.lstrip() for line in lines if _NUMBERED_HEADING.match(line)]
        indents = [len(line) - len(line.lstrip()) for line in items]
        count = sum(indent < min(indents) + _NESTED for indent in indents)
        return counted("numbered lines", count, self.relation, self.num_items)


class Table(Constraint):
    id = "detectable_format:table"
    summary = "The text has a Markdown table with these columns, in this order."
    in_ifeval = False
    columns: Texts
    min_rows: Count = 1

    def problem(self, text: str) -> str:
        lines = [line.strip() for line in text.splitlines()]
        wanted = [compared(column) for column in self.columns]
        for i, line in enumerate(lines[:-1]):
            if [compared(cell) for cell in _cells(line)] != wanted or not _is_rule(lines[i + 1], len(wanted)):
                continue
            rows = 0
            while i + 2 + rows < len(lines) and "|" in lines[i + 2 + rows]:
                rows += 1
            return counted("rows in the table", rows, "at least", self.min_rows)
        return f"it has no Markdown table with the columns {', '.join(self.columns)}"


def _cells(line: str) -> list[str]:
    if "|" not in line:
        return []
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.strip(" *`").replace("\\|", "|") for cell in cells]


def _is_rule(line: str, columns: int) -> bool:
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    return len(cells) == columns and all(re.fullmatch(r":?-+:?", cell) for cell in cells)


class CodeBlocks(Constraint):
    id = "detectable_format:code_block"
    summary = "The text has a number of fenced code blocks, all in the given language if there is one."
    in_ifeval = False
    num_blocks: Annotated[int, Field(ge=0)] = 1
    relation: Relation = "at least"
    language: str = ""

    def problem(self, text: str) -> str:
        language = self.language.lower()
        blocks = extraction.fences(text, unwrap=language != "markdown")
        other = sorted({block.language or "no language" for block in blocks if block.language.lower() != language})
        if self.language and other:
            return f"a code block is marked {other[0]}, not {self.language}"
        return counted("code blocks", len(blocks), self.relation, self.num_blocks)
