"""Tests written for unittest: how their classes are found, and methods that are skipped."""

import pytest

from sandbox.client.pool import Pool
from sandbox.verdicts.results import Status
from tests.sandbox.engine.test_judge.test_running_tests import passes, run

RIGHT = "def add(a, b):\n    return a + b"
WRONG = "def add(a, b):\n    return a - b"
METHOD = "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
BASE = "import unittest\nclass Base(unittest.TestCase):\n    pass\n"
CASE = f"import unittest\nclass Case(unittest.TestCase):\n{METHOD}"
NOT_YET = "    def test_later(self):\n        self.assertEqual(add(1, 2), 4)\n"
OTHER = f"class Other(unittest.TestCase):\n{NOT_YET}"


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize("entry_point", [None, "add"])
@pytest.mark.parametrize(
    ("setup", "tests"),
    [
        ("", f"{BASE}class Case(Base):\n{METHOD}"),
        (BASE, f"class Case(Base):\n{METHOD}"),
        ("", f"from unittest import TestCase as T\nclass Case(T):\n{METHOD}"),
        ("", f"import unittest\nclass Methods:\n{METHOD}class Case(Methods, unittest.TestCase):\n    pass\n"),
        ("", f"{CASE}    @unittest.skip('later')\n{NOT_YET}"),
        ("", f"{CASE}@unittest.skip('later')\n{OTHER}"),
        ("", f"{CASE}unittest.main()"),
        ("", f"import sys\n{CASE}sys.exit(unittest.main())"),
        ("", "import pytest, sys\ndef test_add():\n    assert add(1, 2) == 3\nsys.exit(pytest.main([__file__]))"),
    ],
)
def test_methods_of_test_cases_are_found(
    pool: Pool, setup: str, tests: str, entry_point: str | None, trust: str
) -> None:
    passes(pool, RIGHT, tests, entry_point, setup=setup, trust=trust)
    assert run(pool, WRONG, tests, entry_point, setup=setup, trust=trust).status is Status.ASSERTION


@pytest.mark.parametrize("place", ["setUp", "test_later"])
def test_method_that_skips_itself_does_not_count(pool: Pool, place: str) -> None:
    body = f"    def {place}(self):\n        self.skipTest('later')\n"
    tests = f"{CASE}class Other(unittest.TestCase):\n{NOT_YET}{body}"
    outcome = run(pool, RIGHT, tests, "add")
    assert (outcome.status, outcome.passed, outcome.total) == (Status.PASSED, 1, 1)
    assert run(pool, WRONG, tests, "add").status is Status.ASSERTION


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize("code", ["def add(a, b):\n    raise SkipTest('x')", "def add(a, b):\n    return None"])
def test_code_cannot_have_its_tests_skipped(pool: Pool, code: str, trust: str) -> None:
    skips = "    def test_add(self):\n        if add(1, 2) is None:\n            self.skipTest('no result')\n"
    tests = f"import unittest\nclass Case(unittest.TestCase):\n{skips}        self.assertEqual(add(1, 2), 3)\n"
    tests += "    def test_other(self):\n        self.assertEqual(1, 1)\n"
    outcome = run(pool, f"from unittest import SkipTest\n{code}", tests, "add", trust=trust)
    assert outcome.status in (Status.ASSERTION, Status.EXCEPTION)


@pytest.mark.parametrize(
    "tests",
    [
        f"import unittest\n@unittest.skip('later')\n{OTHER}",
        f"import unittest\n{OTHER}    def setUp(self):\n        self.skipTest('x')\n",
        "import unittest\nclass Case(unittest.TestCase):\n    def check_add(self):\n        assert add(1, 2) == 3\n",
        "class TestAdd:\n    def check_add(self):\n        assert add(1, 2) == 3\n",
    ],
)
def test_test_cases_without_a_test_are_broken(pool: Pool, tests: str) -> None:
    assert run(pool, RIGHT, tests, "add").status is Status.BAD_TESTS


@pytest.mark.parametrize("trust", ["auto", "in_process"])
@pytest.mark.parametrize("code", [RIGHT, WRONG, "def add(a, b):\n    if a: raise ValueError\n    return 0"])
def test_expected_failure_is_unsupported(pool: Pool, code: str, trust: str) -> None:
    tests = f"import unittest\nclass Case(unittest.TestCase):\n    @unittest.expectedFailure\n{NOT_YET}"
    assert run(pool, code, tests, None, trust=trust).status is Status.UNSUPPORTED
    uncounted = tests.replace("assertEqual", "assertGreater")
    assert run(pool, code, uncounted, None, trust=trust).status is Status.UNSUPPORTED
