"""Literal tests: which tests need no judge, and the verdicts about answers."""

import pytest

from sandbox.engine.protocol import codec
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.literal.expressions import NeedsTestJudge
from sandbox.verdicts.literal.plans import LiteralTest, plan_job, plan_text


def plan_values(tests: list[dict[str, object]], entry_point: str) -> tuple[LiteralTest, ...]:
    plan = plan_job(FunctionJob("", entry_point, tests))
    assert plan is not None
    return plan


def verdicts(tests: str, *answers: object, entry_point: str | None = "f") -> list[bool]:
    plan = plan_text(tests, entry_point)
    assert plan is not None
    given = list(answers)
    return [test.passes([given.pop(0) for _ in test.calls]) for test in plan]


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
def test_literal_assert_passes_right_and_fails_wrong_answer(test: str, right: object, wrong: object) -> None:
    assert verdicts(test, right) == [True]
    assert verdicts(test, wrong) == [False]


def test_literal_arguments_are_encoded_with_their_types() -> None:
    plan = plan_text("assert f([1, -2.0], 'x' * 3, k={'a': None}, n=(1,)) == 1", "f")
    assert plan is not None
    (call,) = plan[0].calls
    assert [codec.decode(a) for a in call.args] == [[1, -2.0], "xxx"]
    assert {name: codec.decode(v) for name, v in call.kwargs.items()} == {"k": {"a": None}, "n": (1,)}


def test_check_function_may_call_the_entry_point_by_parameter_or_name() -> None:
    text = "METADATA = {}\ndef check(candidate):\n    'doc'\n    assert candidate(1) == 1\n    assert f(2) == 2\n"
    plan = plan_text(text, "f")
    assert plan is not None
    assert [call.target for test in plan for call in test.calls] == ["f", "f"]


def test_assert_with_two_calls_uses_both_answers() -> None:
    assert verdicts("assert f(1) == f(2)", 5, 5) == [True]
    assert verdicts("assert f(1) + 1 == f(2)", 5, 5) == [False]


def test_without_entry_point_each_called_name_is_a_function_under_test() -> None:
    plan = plan_text("assert add(1, 2) == 3\nassert neg(1) == -1", None)
    assert plan is not None
    assert [call.target for test in plan for call in test.calls] == ["add", "neg"]


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
def test_other_tests_need_a_judge(tests: str) -> None:
    assert plan_text(tests, "f") is None


def test_setup_with_more_than_imports_needs_a_judge() -> None:
    assert plan_text("assert f(1) == 1", "f", "import math\nfrom os import path") is not None
    assert plan_text("assert f(1) == 1", "f", "def abs(x): return 0") is None


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
def test_answer_that_is_expensive_to_use_needs_a_judge(test: str, answer: object) -> None:
    plan = plan_text(test, "f")
    assert plan is not None
    with pytest.raises(NeedsTestJudge):
        plan[0].passes([answer] * len(plan[0].calls))


def test_opaque_answer_equals_nothing() -> None:
    assert verdicts("assert f(1) == 2", codec.Opaque("Anything")) == [False]


def test_expected_list_of_value_test_equals_a_returned_tuple() -> None:
    plan = plan_values([{"args": [1], "expect": [[1], {"a": [2]}]}], "f")
    assert plan[0].passes([((1,), {"a": (2,)})])
    assert not plan[0].passes([((1, 1), {"a": (2,)})])
