"""Tests that functions of the code decorate, whose failures the code could ignore."""

import pytest

from sandbox.client.pool import Pool
from sandbox.verdicts.results import Status
from tests.sandbox.engine.test_judge.test_running_tests import passes, run

RIGHT = "def add(a, b):\n    return a + b\ndef timed(test):\n    return test\n"
SWALLOWS = """
def add(a, b):
    if a: raise ValueError
    return 0
def timed(test):
    def run(*args):
        try: test(*args)
        except BaseException: pass
    return run
"""
REMOVES = "def add(a, b):\n    return 0\ndef timed(test):\n    return None\n"
CASE = "class Case(unittest.TestCase):\n"
METHOD = "    def test_sum(self):\n        self.assertEqual(add(0, 0), 0)\n        self.assertEqual(add(1, 2), 3)\n"
FUNCTION = "def test_sum():\n    assert add(0, 0) == 0\n    assert add(1, 2) == 3\n"


@pytest.mark.parametrize("trust", ["isolated", "auto", "in_process"])
@pytest.mark.parametrize("code", [RIGHT, SWALLOWS, REMOVES])
@pytest.mark.parametrize(
    "tests",
    [
        f"@timed\n{FUNCTION}",
        f"from solution import timed as t\n@t\n{FUNCTION}",
        f"import pytest, solution\n@pytest.mark.slow\n@solution.timed\n{FUNCTION}",
        f"import unittest\n{CASE}    @timed\n{METHOD}",
        f"import unittest\n@timed\n{CASE}{METHOD}",
        "@timed\ndef check(candidate):\n    assert candidate(0, 0) == 0\n    assert candidate(1, 2) == 3\ncheck(add)",
    ],
)
def test_code_cannot_decorate_tests(pool: Pool, tests: str, code: str, trust: str) -> None:
    outcome = run(pool, code, tests, None, trust=trust)
    assert outcome.status is Status.BAD_TESTS and "decorates" in outcome.message, outcome


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(
    "tests",
    [
        "def test_timed():\n    @timed\n    def test_three(): return 3\n    assert test_three() == add(1, 2)\n",
        "@timed\ndef test_three():\n    return 3\nassert test_three() == add(1, 2)\n",
        f"def timed(test):\n    return test\n@timed\n{FUNCTION}",
        f"from functools import lru_cache as timed\n@timed\n{FUNCTION}",
    ],
)
def test_decorators_that_cannot_ignore_failures(pool: Pool, tests: str, trust: str) -> None:
    passes(pool, RIGHT, tests, None, trust=trust)
    assert run(pool, RIGHT.replace("+", "-"), tests, None, trust=trust).status is Status.ASSERTION
