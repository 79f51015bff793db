"""The codec: values that are encoded, values that are not, and safe decoding of arbitrary bytes."""

import datetime
import decimal
import enum
import fractions
import math
import uuid
from array import array
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import timedelta, timezone
from pathlib import PurePosixPath
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.engine.protocol import codec

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.complex_numbers(allow_nan=False)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.timedeltas()
    | st.uuids()
    | st.builds(range, st.integers(), st.integers(), st.integers(min_value=1))
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.sets(HASHABLE, max_size=4)
    ),
    max_leaves=12,
)


def through(value: Any) -> Any:
    return codec.decode(codec.loads(codec.dumps(codec.encode(value))))


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a == b and all(same(value, b[key]) for key, value in a.items())
    return bool(a == b)


@given(VALUES)
def test_round_trip_keeps_value_and_type_of_built_in_types(value: Any) -> None:
    assert same(through(value), value)


def test_round_trip_keeps_nan_infinity_and_negative_zero() -> None:
    assert math.isnan(through(math.nan))
    assert through([math.inf, -math.inf]) == [math.inf, -math.inf]
    assert math.copysign(1, through(-0.0)) == -1


class Liar(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __index__(self) -> int:
        return 5

    def __sub__(self, other: object) -> int:
        return 0

    __hash__ = int.__hash__


class Text(str):
    def __str__(self) -> str:
        return "right"

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class Items(list):
    def __iter__(self) -> Any:
        return iter([1])


class Colour(enum.IntEnum):
    RED = 3


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "flat"),
    [
        (Liar(7), 7),
        (Text("wrong"), "wrong"),
        (Items([7, 8]), [7, 8]),
        (Colour.RED, 3),
        (Point(1, 2), (1, 2)),
    ],
)
def test_subclass_is_encoded_by_its_real_content(value: Any, flat: Any) -> None:
    arrived = through(value)
    assert type(arrived) is type(flat)
    assert flat == arrived


@pytest.mark.parametrize(
    "value",
    [
        deque([1, (2,)]),
        deque([1, 2], maxlen=2),
        OrderedDict(a=1),
        Counter("aab"),
        defaultdict(None, {1: [2]}),
        {"b": 1, "a": 2}.keys(),
        {"a": [1]}.items(),
        slice(1, None, 2),
        datetime.UTC,
        timezone(timedelta(hours=2), "EET"),
        MappingProxyType({"a": 1}),
        ChainMap({"a": 1}, {"b": 2}),
        SimpleNamespace(a=[1]),
        PurePosixPath("/a/b"),
        array("i", [1, 2]),
        ...,
        NotImplemented,
    ],
)
def test_round_trip_keeps_types_of_the_standard_library(value: Any) -> None:
    arrived = through(value)
    assert type(arrived) is type(value)
    assert arrived == value


def test_round_trip_keeps_maxlen_of_deque_and_name_of_timezone() -> None:
    assert through(deque([1], 3)).maxlen == 3
    assert str(through(timezone(timedelta(hours=1), "CET"))) == "CET"
    assert list(through({"a": [1]}.values())) == [[1]]


class Anything:
    def __eq__(self, other: object) -> bool:
        return True


@pytest.mark.parametrize("value", [Anything(), object(), print, (x for x in "ab"), type, math, lambda: 1])
def test_opaque_value_is_unequal_to_everything_including_itself(value: Any) -> None:
    arrived = through(value)
    assert isinstance(arrived, codec.Opaque)
    assert arrived != arrived
    assert through([value]) != [value]
    assert not arrived == 5  # noqa: SIM201


def test_deep_nesting_ends_in_opaque_value_before_recursion_limit() -> None:
    value: Any = []
    for _ in range(200_000):
        value = [value]
    arrived = through(value)
    depth = 0
    while isinstance(arrived, list):
        arrived, depth = arrived[0], depth + 1
    assert isinstance(arrived, codec.Opaque)
    assert depth < 500
    while value:
        value = value.pop()  # freeing it in one go would recurse


def test_cycle_ends_in_opaque_value() -> None:
    value: list[Any] = []
    value.append(value)
    assert codec.encode(value)


def test_colliding_members_are_not_put_into_a_set() -> None:
    members = [i * (2**61 - 1) for i in range(5000)]
    assert isinstance(codec.decode({"s": [codec.encode(m) for m in members]}), codec.Opaque)
    assert isinstance(codec.decode({"d": [[codec.encode(m), 1] for m in members]}), codec.Opaque)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"t": [], "s": []},
        {"unknown": 1},
        {"t": 5},
        {"i": "zz"},
        {"n": "five"},
        {"b": "x"},
        {"x": ["Decimal", "1" * 100_000]},
        {"x": ["Fraction", "1 0"]},
        {"x": ["os.system", "true"]},
        {"x": ["range", "1 2 0"]},
        {"d": [[1]]},
        {"s": [[1]]},
        {"c": [1]},
        {"t": {"a": 1}},
        {"t": "ab"},
        {"s": {"a": 1}},
        {"f": "ab"},
        {"d": {"ab": 1}},
        {"d": ["ab"]},
        {"c": {"a": 1, "b": 2}},
        {"i": 5},
        {"o": ["A"]},
        {"x": {"range": 1, "0 1 1": 2}},
        {"x": ["deque", {"a": 1}]},
        {"x": ["Decimal", ["1"]]},
    ],
)
def test_values_that_the_encoder_never_writes_are_rejected(data: Any) -> None:
    with pytest.raises(codec.CodecError):
        codec.decode(data)


def test_bytes_that_are_not_json_are_rejected() -> None:
    for data in (b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5000):
        with pytest.raises(codec.CodecError):
            codec.decode(codec.loads(data))


def test_decimals_and_fractions_are_exact() -> None:
    values = [decimal.Decimal("1.10"), fractions.Fraction(2, 6), uuid.UUID(int=5)]
    assert repr(through(values)) == repr(values)
