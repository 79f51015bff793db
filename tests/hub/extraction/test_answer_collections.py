"""Collected answers of models, annotated with the expected number or choice; null if there is no single answer."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hub.extraction import choice, read_number

DATA = Path(__file__).parents[1] / "data"


def rows(name: str) -> list[Any]:
    return [
        pytest.param(row, id=row["id"])
        for row in map(json.loads, (DATA / f"answers_{name}.jsonl").read_text().splitlines())
    ]


@pytest.mark.parametrize("row", rows("numbers"))
def test_number_equals_the_annotated_one(row: dict[str, Any]) -> None:
    found = read_number(row["answer"]).quantity
    if row["expected"] is None:
        assert found is None
    else:
        assert found is not None
        assert Fraction(row["expected"]) in {found.value, found.value * found.scale}


@pytest.mark.parametrize("row", rows("choices"))
def test_choice_equals_the_annotated_one(row: dict[str, Any]) -> None:
    assert choice(row["answer"], row["labels"], row["choices"]) == row["expected"]
