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


def said(**given: object) -> str:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(given)
    (error,) = caught.value.errors()
    return describe_error(error, Outer)


@pytest.mark.parametrize("given", [{"many": [{"color": 1}]}, {"named": {"x": [{"color": 1}]}}, {"maybe": {"color": 1}}])
def test_an_unknown_key_is_compared_with_those_at_its_place(given: dict[str, object]) -> None:
    assert said(**given) == "unknown key; did you mean 'colour'?"


def test_keys_are_named_as_they_are_written() -> None:
    assert said(maybe={"zzz": 1}) == "unknown key; known are colour, pass"
    assert keys_at(Outer, ["many", 0]) == ["colour", "pass"]


def test_what_should_be_a_mapping_is_told_by_the_keys_it_has() -> None:
    assert said(maybe=3) == "must be a mapping with `colour`, `pass` (found 3)"
    assert said(named=3) == "must be a mapping such as `key: value` (found 3)"


def test_a_word_that_is_none_of_the_choices_is_compared_with_them() -> None:
    assert said(maybe={"colour": "gren"}) == "must be 'red' or 'green'; did you mean 'green'? (found \"gren\")"
    assert said(maybe={"colour": 3}) == "must be 'red' or 'green' (found 3)"


def test_what_was_found_is_shown_as_it_was_written_and_cut() -> None:
    assert [format_value(value) for value in (True, None, "x", [1], {})] == [
        "true",
        "nothing",
        '"x"',
        "a list",
        "a mapping",
    ]
    assert len(format_value("x" * 500)) == 60
