"""Two hundred answers of models, annotated with the expected program."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from hub.extraction import code

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "data" / "answers_code.jsonl").read_text(encoding="utf-8").splitlines()
]


def normalized(source: str) -> str:
    """The syntax tree as text, so that blank lines and comments do not matter; broken source as it is."""
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return source.strip()


def test_collection_has_two_hundred_different_answers() -> None:
    assert len({row["answer"] for row in ROWS}) == 200


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_program_equals_the_annotated_one(row: dict[str, Any]) -> None:
    found = code(
        row["answer"],
        entry_point=row.get("entry_point"),
        prefix=row.get("prefix", ""),
        wanted=row.get("wanted", ()),
    )
    assert normalized(found.text) == normalized(row["expected"])


def test_code_cells_of_a_notebook_are_one_program() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Sum"]},
        {"cell_type": "code", "source": "import math"},
        {"cell_type": "code", "source": ["def add(a, b):\n", "    return math.fsum([a, b])\n"]},
    ]
    notebook = json.dumps({"cells": cells, "nbformat": 4})
    for text in (notebook, f"Here it is:\n\n```json\n{notebook}\n```"):
        program = " ".join(code(text, entry_point="add").text.split())
        assert program == "import math def add(a, b): return math.fsum([a, b])"


ADD = "def add(a, b):\n    total = a + b\n\n    return total\n"
PROGRAM = "n = int(input())\nprint(n * 2)\n"


@pytest.mark.parametrize("form", ["{}  ", "{:>2}  ", " {} | ", "{}: ", "{}:", "{}. ", "{:<3} "])
@pytest.mark.parametrize("language", ["python", ""])
@pytest.mark.parametrize("first", [1, 8])
def test_pasted_line_numbers_are_removed(form: str, language: str, first: int) -> None:
    lines = "".join(form.format(i) + line + "\n" for i, line in enumerate(ADD.splitlines(), first))
    found = code(f"Here:\n\n```{language}\n{lines}```\n", entry_point="add")
    assert normalized(found.text) == normalized(ADD)


@pytest.mark.parametrize("lines", ["1 def add(a, b):\n3     return a + b\n", "1 def add(a, b):\n    return a + b\n"])
def test_numbers_that_are_not_those_of_all_lines_stay(lines: str) -> None:
    assert code(f"```python\n{lines}```", entry_point="add").text == lines


@pytest.mark.parametrize("after", ["", "\nExample:\n\n```python\nadd(1, 2)\n```\n", "\nIt prints:\n```\n3\n```\n"])
def test_fence_in_a_docstring_does_not_end_the_program(after: str) -> None:
    program = f'"""Adds.\n\n```\nadd(1, 2)\n```\n"""\nimport math\n\n\n{ADD}'
    text = f"Here:\n\n```python\n{program}```\n{after}"
    assert code(text, entry_point="add").text == program
    assert code(text.replace("def add", "print(input())\n\n\ndef add")).text.startswith('"""Adds.')


def test_fence_after_a_finished_string_ends_the_program() -> None:
    text = f'```python\n"""Adds."""\n{ADD}```\nIt uses `"""`:\n```\n"""\n```\n'
    assert code(text, entry_point="add").text == f'"""Adds."""\n{ADD}'


@pytest.mark.parametrize("text", ["Use `print(int(input()) * 2)`.", "``print(int(input()) * 2)`` reads `n` first."])
def test_program_in_a_sentence_reads_input_and_prints(text: str) -> None:
    found = code(text)
    assert (found.text, found.found) == ("print(int(input()) * 2)", "inline")


@pytest.mark.parametrize("text", ["Call `input()` and then `print(x)`.", "Use `sum(values)`."])
def test_parts_of_a_program_in_sentences_are_no_program(text: str) -> None:
    assert code(text).found == "nothing"


def test_unfenced_program_comes_before_one_in_a_sentence() -> None:
    found = code(f"{PROGRAM}\nA shorter one is `print(2 * int(input()))`.")
    assert found.text.strip() == PROGRAM.strip()


def test_line_breaks_in_a_text_of_json_are_read() -> None:
    assert code('{"code": "' + ADD + '"}', entry_point="add").text == ADD
