"""Expected tool calls of a rule, in three notations, and their comparison with the calls made. No side effects.

Names of functions and arguments are composed (é is one code point) on both sides, see `composed`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hub.common.documents.validation import describe_error
from hub.harnesses.steps.tool_calls import ParsedCall
from hub.protocols.messages import JSON
from hub.scorers.comparison.equality import composed_keys, composed_name, json_equal
from hub.scorers.comparison.texts import excerpt

ABSENT = ""  # among the acceptable values of the leaderboard's notation: the argument may be left out


class ExpectedCall(BaseModel):
    """One expected call. `arguments` must be given with that value, `accept` with any of the listed values.

    `optional` names those that may be left out. `defaults` are left out or given with that value. `free`
    arguments may be left out or have any value. No other argument may be given.
    """

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1)]
    arguments: dict[str, JSON] = Field(default_factory=dict)
    accept: dict[str, Annotated[list[JSON], Field(min_length=1)]] = Field(default_factory=dict)
    optional: list[str] = Field(default_factory=list)
    defaults: dict[str, JSON] = Field(default_factory=dict)
    free: list[str] = Field(default_factory=list)

    @field_validator("name", "optional", "free")
    @classmethod
    def _compose_names(cls, value: str | list[str]) -> str | list[str]:
        return composed_name(value) if isinstance(value, str) else list(map(composed_name, value))

    @field_validator("arguments", "accept", "defaults")
    @classmethod
    def _compose_keys(cls, value: dict[str, JSON]) -> dict[str, JSON]:
        return dict(composed_keys(value))

    @model_validator(mode="after")
    def _once(self) -> "ExpectedCall":
        places = [*self.arguments, *self.accept, *self.defaults, *self.free]
        twice = sorted({name for name in places if places.count(name) > 1})
        if twice:
            raise ValueError(f"{self.name}: {', '.join(twice)} is named in more than one place")
        unknown = sorted(set(self.optional) - set(self.arguments) - set(self.accept))
        if unknown:
            raise ValueError(f"{self.name}: optional names {', '.join(unknown)}, of which no value is given")
        return self

    @property
    def names(self) -> set[str]:
        return {self.name}

    def difference(self, call: ParsedCall, *, folded: bool) -> str:
        """Return how *call* differs from this one, as a clause; "" if it matches."""
        if problem := _other_call(self.name, call):
            return problem
        accepted = {
            **{name: [value] for name, value in (*self.arguments.items(), *self.defaults.items())},
            **self.accept,
        }
        missing = [
            name for name in (*self.arguments, *self.accept) if name not in call.arguments and name not in self.optional
        ]
        if missing:
            return (
                f"argument {missing[0]} is missing"
                if len(missing) == 1
                else f"arguments {', '.join(missing)} are missing"
            )
        for name, value in call.arguments.items():
            if name in accepted:
                if not any(json_equal(value, wanted, folded=folded) for wanted in accepted[name]):
                    return _differs(name, accepted[name], value)
            elif name not in self.free:
                return f"argument {name} was not expected"
        return ""

    def __str__(self) -> str:
        parts = [f"{name}={_short(value)}" for name, value in self.arguments.items()]
        parts += [f"{name}={' or '.join(map(_short, values))}" for name, values in self.accept.items()]
        return f"{self.name}({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class LeaderboardCall:
    """One call in the notation of the Berkeley Function-Calling Leaderboard: `{name: {argument: [accepted values]}}`.

    An empty text among the values means that the argument may be left out. Within an accepted object, each key again
    has a list of values.
    """

    name: str
    arguments: Mapping[str, Sequence[JSON]]

    @property
    def names(self) -> set[str]:
        return {self.name}

    def difference(self, call: ParsedCall, *, folded: bool) -> str:
        """Return how *call* differs from this one, as a clause; "" if it matches."""
        if problem := _other_call(self.name, call):
            return problem
        for name, values in self.arguments.items():
            if name not in call.arguments and ABSENT not in values:
                return f"argument {name} is missing"
        for name, value in call.arguments.items():
            if name not in self.arguments:
                return f"argument {name} was not expected"
            if not any(_acceptable(value, wanted, folded) for wanted in self.arguments[name]):
                given = [one for one in self.arguments[name] if one != ABSENT]
                return _differs(name, given, value) if given else f"argument {name} was not expected"
        return ""

    def __str__(self) -> str:
        parts = [f"{name}={' or '.join(map(_short, values))}" for name, values in self.arguments.items()]
        return f"{self.name}({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Alternative calls of which one must be made."""

    calls: Sequence[ExpectedCall | LeaderboardCall]

    @property
    def names(self) -> set[str]:
        return {call.name for call in self.calls}

    def difference(self, call: ParsedCall, *, folded: bool) -> str:
        """Return the difference from the most similar alternative; "" if one matches."""
        found = [(one.name != call.name, one.difference(call, folded=folded)) for one in self.calls]
        return "" if any(not text for _, text in found) else min(found, key=lambda item: item[0])[1]

    def __str__(self) -> str:
        return " or ".join(map(str, self.calls))


Expected = ExpectedCall | LeaderboardCall | AnyOf


def expected(items: JSON) -> list[Expected]:
    """Return the expected calls of a rule's `expect`. Raises ValueError, naming the invalid item."""
    if isinstance(items, dict):
        items = [items]
    if not isinstance(items, list):
        raise ValueError('expect is a list of calls such as {name: "find", arguments: {city: "Paris"}}')
    return [_expected(item, f"expect[{number}]") for number, item in enumerate(items)]


def composed(call: ParsedCall) -> ParsedCall:
    """Return a call of a model as expected calls are compared with it."""
    return replace(call, name=composed_name(call.name), arguments=composed_keys(call.arguments))


def _expected(item: JSON, where: str) -> Expected:
    if isinstance(item, str):
        # A column of a table often has a call as JSON text.
        try:
            item = json.loads(item)
        except (ValueError, RecursionError):
            raise ValueError(f"{where} is text that is not JSON") from None
    if not isinstance(item, dict):
        raise ValueError(f"{where} is not a mapping")
    if "any_of" in item:
        options = item["any_of"]
        if len(item) > 1 or not isinstance(options, list) or not options:
            raise ValueError(f"{where}.any_of is a list of calls, with no key beside it")
        found = [_expected(option, f"{where}.any_of[{number}]") for number, option in enumerate(options)]
        return AnyOf([one for each in found for one in (each.calls if isinstance(each, AnyOf) else [each])])
    if "name" not in item:
        return _leaderboard_call(item, where)
    try:
        return ExpectedCall.model_validate(item)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join([where, *(str(part) for part in first["loc"])])
        raise ValueError(f"{place}: {describe_error(first, ExpectedCall)}") from None


def _leaderboard_call(item: Mapping[str, JSON], where: str) -> LeaderboardCall:
    name, arguments = next(iter(item.items()), ("", None))
    if len(item) != 1 or not isinstance(arguments, dict):
        raise ValueError(f"{where} is neither {{name, arguments}} nor {{function: {{argument: [values]}}}}")
    # A table has the arguments of all functions as columns; an argument that the function does not have is null.
    arguments = {key: values for key, values in arguments.items() if values is not None}
    for key, values in arguments.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{where}.{name}.{key} is a list of acceptable values")
    return LeaderboardCall(composed_name(name), composed_keys(arguments))


def _acceptable(value: JSON, wanted: JSON, folded: bool) -> bool:
    if isinstance(value, dict) and isinstance(wanted, dict):
        value, wanted = composed_keys(value), composed_keys(wanted)
        lists = {key: values for key, values in wanted.items() if isinstance(values, list)}
        if len(lists) < len(wanted):
            return json_equal(value, wanted, folded=folded)
        given = all(key in lists and any(_acceptable(value[key], one, folded) for one in lists[key]) for key in value)
        return given and all(key in value or ABSENT in values for key, values in lists.items())
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(_acceptable(a, b, folded) for a, b in zip(value, wanted, strict=True))
    return json_equal(value, wanted, folded=folded)


def _other_call(name: str, call: ParsedCall) -> str:
    """Return why *call* is no call of the function *name* with readable arguments; "" if it is."""
    return f"{call.name} was called, not {name}" if call.name != name else call.problem


def _differs(name: str, wanted: Sequence[JSON], value: JSON) -> str:
    listed = " or ".join(_short(one) for one in wanted[:4])
    shown = _short(value)
    if listed == shown:  # only the beginnings of long values are shown
        expected_text, text = _text(wanted[0]), _text(value)
        listed, shown = excerpt(expected_text, text), excerpt(text, expected_text)
    return f"argument {name} is {shown}, expected {listed}"


def _text(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(value: JSON) -> str:
    text = _text(value)
    return text if len(text) <= 80 else text[:77] + "..."
