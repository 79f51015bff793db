"""The fast path: which tests it takes apart, and that it judges answers as Python would."""

from typing import Any

import pytest

from sandbox.engine.protocol import codec
from sandbox.verdicts import literal


def verdicts(tests: str, *answers: Any, entry_point: str | None = "f") -> list[bool]:
    plan = literal.plan(tests, entry_point)
    assert plan is not None
    given = list(answers)
    return [test.holds([given.pop(0) for _ in test.calls]) for test in plan.tests]


@pytest.mark.parametrize(
    ("test", "right", "wrong"),
    [
        ("assert f(1) == 2", 2, 3),
        ("assert 2 == f(1)", 2, "2"),
        ("assert f(1) != 2", 3, 2),
        ("assert f(1) is None", None, 0),
        ("assert f(1) is not True", 1, True),
        ("assert f(1)", [0], []),
        ("assert not f(1)", 0, 1),
        ("assert f(1) in [1, 2]", 2, 3),
        ("assert 2 in f(1)", {2}, [1]),
        ("assert f(1) == -1.5", -1.5, 1.5),
        ("assert f(1) == {'a': (1, 2), 3: {4}}", {"a": (1, 2), 3: {4}}, {"a": [1, 2], 3: {4}}),
        ("assert f(1) == 10 ** 9 + 7", 10**9 + 7, 7),
        ("assert f(1) == 10 ** 400 + 7", 10**400 + 7, 7),
        ("assert f(1) == 'ab' * 3", "ababab", "ab"),
        ("assert abs(f(1) - 0.5) < 1e-6", 0.5, 0.6),
        ("assert round(f(1), 2) == 0.33", 1 / 3, 1 / 4),
        ("assert math.isclose(f(1), 0.1 + 0.2, rel_tol=1e-9)", 0.3, 0.31),
        ("assert len(f(1)) == 2", [1, 2], "abc"),
        ("assert sorted(f(1)) == [1, 2]", {2, 1}, [1, 3]),
        ("assert set(f(1)) == {1, 2}", [1, 2, 1], [1]),
        ("assert isinstance(f(1), list)", [], ()),
        ("assert type(f(1)) == tuple", (), []),
        ("assert f(1) <= 3, 'message ' + str(f(1))", 3, 4),
    ],
)
def test_an_answer_is_judged_as_the_assert_says(test: str, right: Any, wrong: Any) -> None:
    assert verdicts(test, right) == [True]
    assert verdicts(test, wrong) == [False]


def test_the_arguments_are_sent_as_they_are_written() -> None:
    plan = literal.plan("assert f([1, -2.0], 'x' * 3, k={'a': None}, n=(1,)) == 1", "f")
    assert plan is not None
    (call,) = plan.tests[0].calls
    assert [codec.decode(a) for a in call.args] == [[1, -2.0], "xxx"]
    assert {name: codec.decode(v) for name, v in call.kwargs.items()} == {"k": {"a": None}, "n": (1,)}


def test_a_check_function_calls_the_entry_point_by_its_parameter_or_name() -> None:
    text = "METADATA = {}\ndef check(candidate):\n    'doc'\n    assert candidate(1) == 1\n    assert f(2) == 2\n"
    plan = literal.plan(text, "f")
    assert plan is not None
    assert [call.target for test in plan.tests for call in test.calls] == ["f", "f"]


def test_two_calls_in_one_assert_are_both_answers() -> None:
    assert verdicts("assert f(1) == f(2)", 5, 5) == [True]
    assert verdicts("assert f(1) + 1 == f(2)", 5, 5) == [False]


def test_without_an_entry_point_each_name_is_called() -> None:
    plan = literal.plan("assert add(1, 2) == 3\nassert neg(1) == -1", None)
    assert plan is not None
    assert [call.target for test in plan.tests for call in test.calls] == ["add", "neg"]


@pytest.mark.parametrize(
    "tests",
    [
        "for i in range(3):\n    assert f(i) == i",
        "x = 1\nassert f(x) == 1",
        "assert f(g(1)) == 1",
        "assert f(1)[0] == 1",
        "assert f(1).real == 1",
        "assert f(*[1]) == 1",
        "assert (lambda: f(1))() == 1",
        "assert f(1) is x",
        "assert f(1) is 'a'",
        "assert 1 < f(1) < 3",
        "assert f(1) == 10 ** 10 ** 10",
        "assert f(1) == 'a' * 10 ** 9",
        "import os\nassert f(1) == 1",
        "def check(candidate, other):\n    assert candidate(1) == 1",
        "def check(candidate):\n    assert candidate(1) == 1\ndef helper(): pass",
        "def test_it():\n    assert f(1) == 1",
        "assert True",
        "assert (",
        "print('x')",
        "assert f(1) == 1 / 0",
    ],
)
def test_anything_else_is_left_to_a_judge(tests: str) -> None:
    assert literal.plan(tests, "f") is None


def test_a_setup_that_does_more_than_import_is_left_to_a_judge() -> None:
    assert literal.plan("assert f(1) == 1", "f", "import math\nfrom os import path") is not None
    assert literal.plan("assert f(1) == 1", "f", "def abs(x): return 0") is None


@pytest.mark.parametrize(
    ("test", "answer"),
    [
        ("assert list(f(1)) == [1]", codec.Opaque("generator")),
        ("assert list(f(1)) == [1]", range(10**12)),
        ("assert 1.5 in f(1)", range(10**12)),
        ("assert set(f(1)) == {1}", [i * (2**61 - 1) for i in range(3000)]),
        ("assert f(1) * f(1) == 1", 1 << 4_000_000),
    ],
    ids=["generator", "range", "in-range", "colliding", "huge"],
)
def test_an_answer_that_could_burden_this_process_is_left_to_a_judge(test: str, answer: Any) -> None:
    plan = literal.plan(test, "f")
    assert plan is not None
    with pytest.raises(literal.NeedsJudge):
        plan.tests[0].holds([answer] * len(plan.tests[0].calls))


def test_an_opaque_answer_equals_nothing() -> None:
    assert verdicts("assert f(1) == 2", codec.Opaque("Anything")) == [False]


def test_values_from_json_take_a_tuple_for_a_list() -> None:
    plan = literal.plan_of_values([{"args": [1], "expect": [[1], {"a": [2]}]}], "f")
    assert plan.tests[0].holds([((1,), {"a": (2,)})])
    assert not plan.tests[0].holds([((1, 1), {"a": (2,)})])
