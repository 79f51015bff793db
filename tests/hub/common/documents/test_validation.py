"""Descriptions of pydantic's errors."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hub.common.documents.validation import describe_error, format_value, keys_at


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    colour: Literal["red", "green"] = "red"
    passing: float = Field(default=1.0, alias="pass")


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    many: list[Annotated[Inner, "noted"]] = []
    named: dict[str, list[Inner]] = {}
    maybe: Inner | None = None
    pair: tuple[int, int] = (0, 1)


def said(**given: object) -> str:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(given)
    (error,) = caught.value.errors()
    return describe_error(error, Outer)


@pytest.mark.parametrize("given", [{"many": [{"color": 1}]}, {"named": {"x": [{"color": 1}]}}, {"maybe": {"color": 1}}])
def test_unknown_key_suggests_the_closest_key_at_its_place(given: dict[str, object]) -> None:
    assert said(**given) == "unknown key; did you mean 'colour'?"


def test_known_keys_are_listed_by_alias() -> None:
    assert said(maybe={"zzz": 1}) == "unknown key; known are colour, pass"
    assert keys_at(Outer, ["many", 0]) == ["colour", "pass"]


def test_error_for_a_missing_mapping_lists_its_keys() -> None:
    assert said(maybe=3) == "must be a mapping with `colour`, `pass` (found 3)"
    assert said(named=3) == "must be a mapping such as `key: value` (found 3)"


def test_tuple_is_called_a_list() -> None:
    assert said(pair=4) == "must be a list (found 4)"


def test_invalid_choice_suggests_the_closest_one() -> None:
    assert said(maybe={"colour": "gren"}) == "must be 'red' or 'green'; did you mean 'green'? (found \"gren\")"
    assert said(maybe={"colour": 3}) == "must be 'red' or 'green' (found 3)"


def test_values_are_formatted_as_yaml_and_shortened() -> None:
    assert [format_value(value) for value in (True, None, "x", [1], {})] == [
        "true",
        "nothing",
        '"x"',
        "a list",
        "a mapping",
    ]
    assert len(format_value("x" * 500)) == 60
