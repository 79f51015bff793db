"""Tests that need the process of the code: `trust` isolated, auto and in_process."""

import json

import pytest

from sandbox.client.pool import Pool
from sandbox.limits import Limits
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.results import Outcome, Status

PATCHED = """
from unittest.mock import patch
def test_it():
    with patch("random.random", return_value=5):
        assert f() == 5
"""
RANDOM = "import random\ndef f(): return random.random()\n"
EQUAL = "class Money:\n    def __init__(self, n): self.n = n\n    def __eq__(self, other): return self.n == other\n"
ANY = "class Any:\n    def __eq__(self, other): return True\n    __hash__ = None\n"


def run(pool: Pool, code: str, tests: object, entry_point: str | None = None, trust: str = "auto") -> Outcome:
    return pool.run(FunctionJob(code, entry_point, tests, trust=trust, limits=Limits(cpu_s=2, wall_s=5)))  # type: ignore[arg-type]


def test_isolated_is_unsupported_if_tests_need_the_codes_process(pool: Pool) -> None:
    outcome = run(pool, RANDOM, PATCHED, trust="isolated")
    assert (outcome.status, outcome.trust) == (Status.UNSUPPORTED, "isolated"), outcome
    assert "patch" in outcome.message
    assert not outcome.conclusive


def test_auto_falls_back_to_one_process(pool: Pool) -> None:
    outcome = run(pool, RANDOM, PATCHED)
    assert (outcome.status, outcome.trust) == (Status.PASSED, "in_process"), outcome
    assert "patch" in outcome.trust_reason


def test_auto_stays_isolated_if_supported(pool: Pool) -> None:
    for code, status in (("def f(x): return x + 1", Status.PASSED), ("def f(x): return x", Status.ASSERTION)):
        for tests in (["assert f(1) == 2"], "def test_f():\n    for n in (1, 2):\n        assert f(n) == n + 1"):
            outcome = run(pool, code, tests)
            assert (outcome.status, outcome.trust, outcome.trust_reason) == (status, "isolated", ""), outcome


@pytest.mark.parametrize(
    "tests",
    [["assert f(3) == 3"], [{"args": [3], "expect": 3}], "def check(c):\n    for n in (1, 2): assert c(n) == n"],
)
def test_custom_eq_with_built_in_value_is_not_judged_wrong(pool: Pool, tests: object) -> None:
    code = EQUAL + "def f(x): return Money(x)"
    isolated = run(pool, code, tests, "f", trust="isolated")
    assert isolated.status is Status.UNSUPPORTED, isolated
    auto = run(pool, code, tests, "f")
    assert (auto.status, auto.trust) == (Status.PASSED, "in_process"), auto
    wrong = run(pool, EQUAL + "def f(x): return Money(x + 1)", tests, "f")
    assert (wrong.status, wrong.trust) == (Status.ASSERTION, "in_process"), wrong


FALLBACKS = {
    "eq": "def check(c):\n    assert c(1) == 2",
    "reversed": "def check(c):\n    assert 2 == c(1)",
    "and": "def check(c):\n    assert c(1) == 2 and c(2) == 3",
    "all": "def check(c):\n    assert all(c(x) == x + 1 for x in (1, 2))",
    "variable": "def check(c):\n    right = c(1) == 2\n    assert right",
    "in": "def check(c):\n    for x in (1, 2): assert c(x) in (x + 1, x + 2)",
    "nested": "def check(c):\n    for x in (1, 2): assert [c(x)] == [x + 1]",
    "rows": [{"args": [1], "expect": 2}],
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(1), 2)\n",
    "expected-first": "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(2, f(1))\n",
    "unittest-truth": "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertTrue(f(1) == 2)\n",
    "unittest-in": "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertIn(f(1), [2, 3])\n",
}


@pytest.mark.parametrize("form", FALLBACKS)
@pytest.mark.parametrize(
    "equal",
    [
        "return True",
        pytest.param("return type(other).__name__ != 'Sentinel'", marks=pytest.mark.exhaustive),
        pytest.param("return isinstance(other, (int, list, tuple, str))", marks=pytest.mark.exhaustive),
        "return len(str(other)) < 7",
    ],
)
def test_object_equal_to_everything_fails_in_fallback(pool: Pool, form: str, equal: str) -> None:
    code = f"class Any:\n    def __eq__(self, other): {equal}\n    __hash__ = None\ndef f(x): return Any()\n"
    tests = FALLBACKS[form]
    entry_point = None if isinstance(tests, str) and "unittest" in tests else "f"
    outcome = run(pool, code, tests, entry_point)
    assert outcome.status is Status.TAMPERED, outcome


def test_object_that_startswith_everything_fails_in_fallback(pool: Pool) -> None:
    code = "class Yes:\n    def startswith(self, text): return True\ndef f(x): return Yes()\n"
    outcome = run(pool, code, "def check(c):\n    for n in 'ab': assert c(n).startswith('Hello ' + n)", "f")
    assert outcome.status is Status.TAMPERED, outcome


def test_object_less_and_greater_than_everything_fails_in_fallback(pool: Pool) -> None:
    code = "class Yes:\n    def __lt__(self, o): return True\n    __gt__ = __le__ = __ge__ = __lt__\n"
    code += "def f(x): return Yes()\n"
    outcome = run(pool, code, "def check(c):\n    for n in (1, 2): assert c(n) < n + 1", "f")
    assert outcome.status is Status.TAMPERED, outcome


@pytest.mark.parametrize(
    "patched",
    [
        "import unittest\nunittest.TestCase.assertEqual = lambda *a: None",
        "import unittest\nunittest.TestCase.assertRaises = lambda *a: __import__('contextlib').nullcontext()",
        "import unittest\nunittest.TestCase.run = lambda self, result=None: result.startTest(self)",
        "import builtins\nbuiltins.all = lambda xs: True",
        "import builtins\nbuiltins.isinstance = lambda a, b: True",
    ],
)
def test_code_that_patches_builtins_or_unittest_is_tampered(pool: Pool, patched: str) -> None:
    tests = (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
        "        with self.assertRaises(ValueError): f(-1)\n"
        "        self.assertEqual(f(1), 2)\n        assert all([f(2) == 3])\n"
    )
    outcome = run(pool, patched + "\ndef f(x): return 0\n", tests, trust="in_process")
    assert outcome.status in (Status.TAMPERED, Status.ASSERTION, Status.EXITED), outcome


def test_asserts_that_the_code_skips_do_not_pass(pool: Pool) -> None:
    tests = (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
        "        for x in f(1): self.assertEqual(x, 2)\n"
    )
    assert run(pool, "def f(x): return []", tests, trust="in_process").status is Status.ASSERTION


SEND_REPORT = "import os\ndata = {!r}\nos.write(3, len(data).to_bytes(4, 'big') + b'V' + data)\nos._exit(0)\n"


@pytest.mark.parametrize("failure", [{"kind": []}, {"kind": "assertion", "message": ["text"]}])
def test_forged_report_of_the_wrong_shape_is_tampered(pool: Pool, failure: dict[str, object]) -> None:
    report = json.dumps({"passed": 0, "total": 1, "failure": {"line": None, **failure}})
    code = SEND_REPORT.format(report.encode())
    assert run(pool, code, ["assert f(1) == 2"], "f", trust="in_process").status is Status.TAMPERED


@pytest.mark.parametrize("modulus", [3, 7])
@pytest.mark.parametrize("form", ["assert {} == {}", "self.assertEqual({}, {})"])
def test_object_that_equals_some_other_values_passes_in_fallback(pool: Pool, form: str, modulus: int) -> None:
    code = (
        "class Modular:\n    def __init__(self, n): self.n = n\n"
        f"    def __eq__(self, other): return self.n % {modulus} == other % {modulus}\n"
        "def f(x): return Modular(x + 1)\n"
    )
    body = "".join(f"        {form.format(f'f({x})', x + 1)}\n" for x in range(12))
    tests = f"import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n{body}"
    outcome = run(pool, code, tests)
    assert (outcome.status, outcome.trust) == (Status.PASSED, "in_process"), outcome
    wrong = run(pool, code.replace("x + 1", "x + 2"), tests)
    assert (wrong.status, wrong.trust) == (Status.ASSERTION, "in_process"), wrong
