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
