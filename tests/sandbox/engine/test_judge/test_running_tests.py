"""Tests run by a test judge, which has only values and handles of the code."""

import pytest

from sandbox.client.pool import Pool
from sandbox.limits import Limits
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.results import Outcome, Status

STACK = """
class Stack:
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x); return self
    def pop(self): return self.items.pop()
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __getitem__(self, at): return self.items[at]
    def __repr__(self): return f"Stack({self.items})"
    def __eq__(self, other): return self.items == other.items
class Empty(LookupError): pass
def top(stack):
    if not len(stack): raise Empty("nothing")
    return stack[-1]
"""


def run(pool: Pool, code: str, tests: str | list[str], entry_point: str | None = "f", **options: object) -> Outcome:
    return pool.run(FunctionJob(code, entry_point, tests, limits=Limits(cpu_s=2, wall_s=5), **options))  # type: ignore[arg-type]


def passes(pool: Pool, code: str, tests: str | list[str], entry_point: str | None = "f", **options: object) -> None:
    outcome = run(pool, code, tests, entry_point, **options)
    assert outcome.status is Status.PASSED, outcome


def test_changes_of_arguments_are_visible_to_tests(pool: Pool) -> None:
    code = "def f(rows, seen):\n    rows[0].sort(); rows.append(1); seen.add(2)"
    tests = """
def check(candidate):
    rows, seen = [[3, 1]], {1}
    inner = rows[0]
    candidate(rows, seen)
    assert rows == [[1, 3], 1] and seen == {1, 2}
    assert rows[0] is inner
"""
    passes(pool, code, tests)


def test_returned_argument_is_the_same_object(pool: Pool) -> None:
    code = "def f(x):\n    x.sort()\n    return x"
    tests = "def check(candidate):\n    x = [2, 1]\n    assert candidate(x) is x and x == [1, 2]"
    passes(pool, code, tests)


def test_functions_of_tests_are_called_by_the_code(pool: Pool) -> None:
    code = (
        "def f(g, xs):\n    try:\n        return [g(x) for x in xs]\n    except ValueError as e:\n        return str(e)"
    )
    tests = """
def check(candidate):
    def fail(x):
        raise ValueError("no " + x)
    assert candidate(lambda x: x * 2, [1, 2]) == [2, 4]
    assert candidate(len, ["ab"]) == [2]
    assert candidate(fail, ["x"]) == "no x"
    assert candidate(lambda x: candidate(abs, [x]), [-1]) == [[1]]
"""
    passes(pool, code, tests)


def test_classes_of_the_code_are_used_through_handles(pool: Pool) -> None:
    tests = """
s = Stack()
s.push(1).push(2)
assert s.pop() == 2 and len(s) == 1 and list(s) == [1] and s[0] == 1 and 1 in s and 5 not in s
assert repr(s) == "Stack([1])" and isinstance(s, Stack) and not isinstance(s, Empty)
assert s == Stack().push(1) and s != Stack() and s.items == [1]
s.items = [7]
assert top(s) == 7
try:
    top(Stack())
    assert False
except Empty as error:
    assert str(error) == "nothing" and isinstance(error, LookupError)
"""
    passes(pool, STACK, tests, None)


def test_object_of_the_code_equals_no_built_in_value(pool: Pool) -> None:
    code = "class E:\n    def __eq__(self, o): return True\ndef f(x): return E()"
    outcome = run(pool, code, "E\ndef test_it():\n    assert f(1) == 2", None)
    assert outcome.status is Status.UNSUPPORTED
    assert outcome.failure is not None
    assert outcome.failure.got == "<E object>"


def test_generator_is_read_item_by_item(pool: Pool) -> None:
    code = "def f():\n    n = 0\n    while True:\n        yield n\n        n += 1"
    tests = "import itertools\ndef check(candidate):\n    assert list(itertools.islice(candidate(), 4)) == [0, 1, 2, 3]"
    passes(pool, code, tests)


def test_coroutine_is_awaited(pool: Pool) -> None:
    code = "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x + 1"
    passes(pool, code, "import asyncio\ndef check(candidate):\n    assert asyncio.run(candidate(1)) == 2")


def test_returned_closure_is_called(pool: Pool) -> None:
    code = "def f(n):\n    return lambda x: x + n"
    passes(pool, code, "def check(candidate):\n    add = candidate(2)\n    assert add(3) == 5")


def test_helpers_of_the_prompt_run_in_the_judge(pool: Pool) -> None:
    prompt = "def double(x):\n    return 2 * x\n\ndef f(x):\n    ''' half '''\n"
    cheat = "def double(x):\n    return x\n\ndef f(x):\n    return x\n"
    tests = "def check(candidate):\n    for n in (2, 4):\n        assert candidate(double(n)) == n\n"
    assert run(pool, cheat, tests, prompt=prompt).status is Status.ASSERTION
    passes(pool, prompt + "    return x // 2\n", tests, prompt=prompt)


def test_instances_of_prompt_classes_are_sent_as_attributes(pool: Pool) -> None:
    node = "class Node:\n    def __init__(self, v, n=None):\n        self.v, self.n = v, n\n"
    code = node + "def f(h):\n    p = None\n    while h:\n        h.n, p, h = p, h, h.n\n    return p\n"
    tests = """
def check(candidate):
    r = candidate(Node(1, Node(2)))
    assert (r.v, r.n.v, r.n.n) == (2, 1, None)
    assert type(r) is Node
"""
    passes(pool, code, tests, prompt=node + "def f(h):\n    '''reverse'''\n")


def test_project_is_imported_in_the_candidate(pool: Pool) -> None:
    files = {"shop/__init__.py": b"", "shop/stock.py": b"LIMIT = 5\ndef restock(stock, what):\n    stock[what] += 1\n"}
    tests = """
from shop.stock import LIMIT, restock
import shop.stock
def test_restock():
    stock = {"a": 1}
    restock(stock, "a")
    assert stock == {"a": 2}
def test_limit():
    assert LIMIT == 5 and shop.stock.LIMIT == 5
"""
    for entry_point in (None, "shop.stock:restock"):
        passes(pool, "", tests, entry_point, files=files)
    missing = run(
        pool, "", "from shop.stock import nothing\ndef test_it():\n    assert nothing() == 1", None, files=files
    )
    assert missing.status is Status.MISSING_ENTRY_POINT


def test_units_are_counted_and_all_run(pool: Pool) -> None:
    tests = """
import unittest
class TestF(unittest.TestCase):
    def setUp(self): self.one = 1
    def test_right(self): self.assertEqual(f(self.one), 1)
    def test_wrong(self): self.assertEqual(f(2), 3)
    def test_raises(self):
        with self.assertRaises(TypeError): f()
def test_function(): assert f(4) == 4
"""
    outcome = run(pool, "def f(x): return x", tests, None)
    assert (outcome.status, outcome.passed, outcome.total) == (Status.ASSERTION, 3, 4)
    assert outcome.failure is not None
    assert "test_wrong" in outcome.failure.test
    assert (outcome.failure.expected, outcome.failure.got) == ("3", "2")


def test_tests_without_executed_assert_do_not_pass(pool: Pool) -> None:
    outcome = run(
        pool, "def f(x): return []", "def check(candidate):\n    for x in candidate(1):\n        assert x == 1"
    )
    assert outcome.status is Status.ASSERTION


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize("end", ["sys.exit()", "sys.exit(0)", "raise SystemExit"])
def test_tests_may_end_with_exit_code_zero(pool: Pool, end: str, trust: str) -> None:
    tests = f"import sys\ndef main():\n    assert f(1) == 1\n    {end}\nmain()\n"
    passes(pool, "def f(x): return x", tests, None, trust=trust)
    assert run(pool, "def f(x): return 2", tests, None, trust=trust).status is Status.ASSERTION
    leaves = "import sys\ndef f(x):\n    if x: sys.exit(0)\n    return x"
    tests = f"import sys\nassert f(0) == 0\nassert f(1) == 1\n{end}\n"
    assert run(pool, leaves, tests, None, trust=trust).status in (Status.EXITED, Status.EXCEPTION)
    before = f"import sys\nif f(1) != 1:\n    {end}\nassert f(1) == 1\n"
    assert run(pool, "def f(x): return 2", before, None, trust=trust).status is Status.ASSERTION
    fails = "import sys\nassert f(0) == 0\nif f(1) != 1:\n    sys.exit(1)\n"
    assert run(pool, "def f(x): return 0", fails, None, trust=trust).status is Status.EXCEPTION


def test_tests_that_do_not_reach_asserts_with_any_code_are_bad_tests(pool: Pool) -> None:
    tests = 'def main():\n    assert f(1) == 1\n\nif __name__ == "__main__":\n    main()\n'
    outcome = run(pool, "def f(x): return x", tests, None)
    assert (outcome.status, outcome.conclusive) == (Status.BAD_TESTS, False)
    assert outcome.message == "The tests reach none of their asserts, whatever the code returns."


@pytest.mark.parametrize(
    "tests",
    [
        ["assert 1 == 1"],
        "assert 1 == 1",
        "def check(candidate):\n    assert 1 == 1\n",
        "def test_one():\n    assert 1 == 1\n",
        "def f(x): return x\nassert f(1) == 1",
        "assert 1 == 2",
    ],
)
def test_tests_that_use_nothing_of_the_code_are_bad_tests_also_with_an_entry_point(
    pool: Pool, tests: str | list[str]
) -> None:
    outcome = run(pool, "def f(x): return x", tests, "f")
    assert (outcome.status, outcome.conclusive) == (Status.BAD_TESTS, False)
    assert "use nothing that the code defines" in outcome.message


@pytest.mark.parametrize(
    "tests",
    [
        ["assert callable(f)"],
        "def check(candidate):\n    assert callable(candidate)\n",
        "def check(g):\n    assert callable(g)\n",
        "assert callable(candidate)",
        "def check_it(f):\n    assert callable(f)\ncheck_it(f)",
        "import solution\nassert callable(solution.f)",
        "from solution import f as g\nassert callable(g)",
        "assert callable(eval('f'))",
    ],
)
def test_looking_at_the_entry_point_is_a_use_of_the_code(pool: Pool, tests: str | list[str]) -> None:
    passes(pool, "def f(x): return x", tests, "f")


def test_name_missing_in_code_is_a_failure_of_the_code(pool: Pool) -> None:
    outcome = run(pool, "def g(x): return x", ["assert h(g(1)) == 1"], None)
    assert (outcome.status, outcome.message) == (Status.MISSING_ENTRY_POINT, "The code defines no h.")


def test_code_cannot_replace_helpers_of_the_tests(pool: Pool) -> None:
    code = "def abs(x): return 0\nclass math:\n    isclose = lambda *a, **k: True\ndef f(x): return 99"
    for tests in ("for x in [1]: assert abs(f(x) - x) < 1", "for x in [1]: assert math.isclose(f(x), x)"):
        assert run(pool, code, tests, None).status is Status.ASSERTION


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("def f(x): return 2", Status.PASSED),
        ("def f(x): return 3", Status.ASSERTION),
        ("import unittest\nunittest.TestCase.assertEqual = lambda *a: None\ndef f(x): return 9", Status.TAMPERED),
        ("class E:\n    def __eq__(self, o): return True\ndef f(x): return E()", Status.TAMPERED),
        ("import os\ndef f(x): os._exit(0)", Status.EXITED),
    ],
)
def test_in_process_tests_have_a_negative_control(pool: Pool, code: str, status: Status) -> None:
    tests = "import unittest\nclass TestF(unittest.TestCase):\n    def test_it(self): self.assertEqual(f(1), 2)\n"
    outcome = run(pool, code, tests, None, trust="in_process")
    assert (outcome.status, outcome.trust) == (status, "in_process"), outcome


def test_in_process_tests_may_mock_parts_of_the_code(pool: Pool) -> None:
    code = "import random\ndef f(): return random.random()"
    tests = """
from unittest.mock import patch
def test_it():
    with patch("random.random", return_value=5):
        assert f() == 5
"""
    passes(pool, code, tests, None, trust="in_process")


RAISING = "def f(x):\n    if x < 0:\n        raise ValueError('negative')\n    return x\n"
EXPECTS_AN_EXCEPTION = {
    "check": """
def check(candidate):
    try:
        candidate(-1)
        assert False
    except ValueError:
        pass
""",
    "else": "try:\n    f(-1)\nexcept ValueError:\n    pass\nelse:\n    assert False, 'nothing raised'\n",
    "line": ["try:\n    f(-1); assert False\nexcept ValueError: pass"],
    "function": "def test_f():\n    try:\n        f(-1)\n    except ValueError:\n        return\n    assert False\n",
    "unittest": """
import unittest
class T(unittest.TestCase):
    def test_f(self):
        try:
            f(-1)
            self.assertTrue(False)
        except ValueError:
            pass
""",
    "suppress": """
import contextlib
def test_f():
    with contextlib.suppress(ValueError):
        f(-1)
        assert False
""",
    "raise": """
def check(candidate):
    try:
        candidate(-1)
        raise AssertionError
    except ValueError:
        pass
""",
}


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize("style", EXPECTS_AN_EXCEPTION)
def test_unreachable_assert_counts_as_passed(pool: Pool, style: str, trust: str) -> None:
    tests = EXPECTS_AN_EXCEPTION[style]
    entry_point = "f" if style in ("check", "raise") else None
    passes(pool, RAISING, tests, entry_point, trust=trust)
    assert run(pool, "def f(x): return x", tests, entry_point, trust=trust).status is Status.ASSERTION
    assert run(pool, "def f(x): return [][0]", tests, entry_point, trust=trust).status is Status.EXCEPTION


PAIR = "class Pair:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n"


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(
    "tests",
    [
        "def check(candidate):\n    for n in (1, 2):\n        assert candidate(Pair(n, 2)) == n + 2\n",
        "def test_f():\n    p = Pair(1, 2)\n    assert f(p) == 3\n",
    ],
)
def test_prompt_class_missing_in_code_is_defined(pool: Pool, tests: str, trust: str) -> None:
    prompt = "import math\n" + PAIR + "def f(p):\n    '''Return the sum of both.'''\n"
    passes(pool, "def f(p):\n    return p.a + p.b\n", tests, prompt=prompt, trust=trust)
    made = "def f(p):\n    q = Pair(p.a, p.b)\n    return q.a + math.floor(q.b)\n"
    passes(pool, made, tests, prompt=prompt, trust=trust)


def test_prompt_class_is_defined_in_literal_tests(pool: Pool) -> None:
    prompt = PAIR + "def f(a, b):\n    '''Return the sum of both.'''\n"
    passes(pool, "def f(a, b):\n    p = Pair(a, b)\n    return p.a + p.b\n", ["assert f(1, 2) == 3"], prompt=prompt)
    missing = run(pool, "def g(): pass", ["assert f(1, 2) == 3"], prompt=prompt)
    assert missing.status is Status.MISSING_ENTRY_POINT


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(
    "tests",
    [
        "def test_f(value):\n    assert f(value) == 1\n",
        "class TestF:\n    def test_f(self, value):\n        assert f(value) == 1\n",
    ],
)
def test_tests_with_unknown_arguments_are_bad_tests(pool: Pool, tests: str, trust: str) -> None:
    outcome = run(pool, "def f(x): return x", tests, None, trust=trust)
    assert outcome.status is Status.BAD_TESTS, outcome
    assert "neither a fixture nor a parameter" in outcome.message


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
def test_patch_decorator_passes_mock_to_test(pool: Pool, trust: str) -> None:
    tests = """
import unittest
from unittest.mock import patch
@patch("random.random")
def test_f(drawn):
    drawn.return_value = 5
    assert f() == 5
"""
    code = "import random\ndef f(): return random.random()"
    outcome = run(pool, code, tests, None, trust=trust)
    assert outcome.status is (Status.PASSED if trust == "in_process" else Status.UNSUPPORTED), outcome


GENERATOR_TYPES = """
import collections.abc, inspect, types
def check(candidate):
    assert isinstance(candidate(1), types.GeneratorType) and inspect.isgenerator(candidate(1))
    assert isinstance(candidate(1), collections.abc.Generator)
    assert not isinstance(candidate(1), list) and list(candidate(2)) == [0, 1]
"""


def test_generator_has_its_type(pool: Pool) -> None:
    passes(pool, "def f(n):\n    yield from range(n)", GENERATOR_TYPES)
    tests = "import types\ndef check(candidate):\n    assert isinstance(candidate(1), types.AsyncGeneratorType)"
    passes(pool, "async def f(n):\n    yield n", tests)


@pytest.mark.parametrize(
    "code",
    [
        "def f(n):\n    return iter(range(n))",
        "def f(n):\n    return list(range(n))",
        "def f(n):\n    return map(int, range(n))",
        "class generator:\n    def __init__(self, n): self.items = iter(range(n))\n"
        "    def __iter__(self): return self\n"
        "    def __next__(self): return next(self.items)\n    def __len__(self): return 2\n"
        "def f(n):\n    return generator(n)",
    ],
)
def test_object_that_is_no_generator_has_not_its_type(code: str, pool: Pool) -> None:
    assert run(pool, code, GENERATOR_TYPES).status is Status.ASSERTION


def test_kind_of_function_is_not_decided_apart_from_the_code(pool: Pool) -> None:
    tests = "import inspect\ndef check(candidate):\n    assert inspect.iscoroutinefunction(candidate)"
    assert run(pool, "async def f(n): return n", tests).status is Status.UNSUPPORTED


SHAPES = """
class Square:
    def __init__(self, a): self.a = a
class Small(Square): pass
class Adder:
    def __call__(self, a): return a + 1
def make(a): return {}(a)
def count(): yield 1
"""


@pytest.mark.parametrize(
    "condition",
    [
        "type(make(1)) is Square",
        "Square == type(make(1))",
        "make(1).__class__ is Square",
        "[type(x) for x in [make(1), make(2)]] == [Square, Square]",
        "issubclass(type(make(1)), Square) and type(make(1)) is not Small",
    ],
)
def test_class_of_an_object_of_the_code(pool: Pool, condition: str) -> None:
    tests = f"def test_it():\n    assert make(1).a == 1 and Small(1).a == 1\n    assert {condition}\n"
    passes(pool, SHAPES.format("Square"), tests, None)
    outcome = run(pool, SHAPES.format("Small"), tests, None)
    assert outcome.status is Status.ASSERTION and condition in outcome.message, outcome


def test_class_of_callable_objects_generators_and_values(pool: Pool) -> None:
    tests = """
import types, unittest
class T(unittest.TestCase):
    def test_it(self):
        self.assertIs(type(Adder()), Adder)
        self.assertIs(type(count()), types.GeneratorType)
        self.assertIs(type(Adder()(1)), int)
        self.assertEqual(type("X", (), {"y": 1}).y, self.__class__.z)
    z = 1
"""
    passes(pool, SHAPES.format("Square"), tests, None)


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(
    "asserts",
    [
        "assert convert(str, candidate(1)) == '1'",
        "assert Mock(spec=Spec).__class__ is Spec and type(Mock(spec=Spec)) is not Spec and candidate(1) == 1",
        "assert Spec().__class__ is int and type(Spec()) is Spec and candidate(1) == 1",
    ],
)
def test_type_and_class_of_values_of_the_tests(pool: Pool, asserts: str, trust: str) -> None:
    tests = f"""
from unittest.mock import Mock
class Spec:
    @property
    def __class__(self): return int
def convert(type, value):
    return type(value)
def check(candidate):
    {asserts}
"""
    passes(pool, "def f(x): return x", tests, trust=trust)
