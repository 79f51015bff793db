"""Tests that are skipped, which the code under test must not be able to cause."""

import pytest

from sandbox.client.pool import Pool
from sandbox.verdicts.results import Status
from tests.sandbox.engine.test_judge.test_running_tests import passes, run

RIGHT = "def add(a, b):\n    return a + b"
ONLY_ZERO = "def add(a, b):\n    return 0 if a == 0 else None"
CASE = "class Case(unittest.TestCase):\n    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n"
UNTIL = "    def test_sum(self):\n"
ASSERTS = "        self.assertIn(add(1, 2), [3])\n"
SKIPS_NONE = "        if {} is None: self.skipTest('x')\n"


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(
    "tests",
    [
        f"import unittest\n{CASE}{UNTIL}{SKIPS_NONE.format('add(1, 2)')}{ASSERTS}",
        f"import unittest\n{CASE}{UNTIL}        self.assertEqual(0, 0)\n{SKIPS_NONE.format('add(1, 2)')}{ASSERTS}",
        f"import unittest\nfound = add(1, 2)\n{CASE}{UNTIL}{SKIPS_NONE.format('found')}{ASSERTS}",
        f"import unittest\n{CASE}    @unittest.skipIf(add(1, 2) is None, 'x')\n{UNTIL}{ASSERTS}",
        f"from unittest import *\nimport unittest\n{CASE}    @skipIf(add(1, 2) is None, 'x')\n{UNTIL}{ASSERTS}",
        f"import unittest\n{CASE}    def setUp(self):\n{SKIPS_NONE.format('add(1, 2)')}",
        f"import unittest\n@unittest.skipIf(add(1, 2) is None, 'x')\n{CASE}",
        "import pytest\ndef test_zero():\n    assert add(0, 0) == 0\n"
        "@pytest.mark.skipif(add(1, 2) is None, reason='x')\ndef test_sum():\n    assert add(1, 2) == 3\n",
        "import pytest\nneeded = pytest.mark.skipif(add(1, 2) is None, reason='x')\n"
        "def test_zero():\n    assert add(0, 0) == 0\n@needed\ndef test_sum():\n    assert add(1, 2) == 3\n",
        "import pytest\nskipped = pytest.mark.skipif(add(1, 2) is None, reason='x')\n"
        "@pytest.mark.parametrize('a', [0, pytest.param(1, marks=skipped)])\n"
        "def test_sum(a):\n    assert add(a, a) == 2 * a\n",
        "import pytest\nskipped = pytest.mark.skipif(add(1, 2) is None, reason='x')\n"
        "@pytest.fixture(params=[0, pytest.param(1, marks=skipped)])\ndef a(request):\n    return request.param\n"
        "def test_sum(a):\n    assert add(a, a) == 2 * a\n",
    ],
)
def test_code_cannot_have_tests_skipped_by_what_it_returns(pool: Pool, tests: str, trust: str) -> None:
    passes(pool, RIGHT, tests, None, trust=trust)
    assert run(pool, ONLY_ZERO, tests, None, trust=trust).status is Status.ASSERTION


def test_code_cannot_have_tests_skipped_by_an_exception(pool: Pool) -> None:
    tries = "        try: found = add(1, 2)\n        except NotImplementedError: self.skipTest('x')\n"
    tests = f"import unittest\n{CASE}{UNTIL}{tries}{ASSERTS}"
    code = "def add(a, b):\n    if a: raise NotImplementedError\n    return 0"
    assert run(pool, code, tests, None).status is Status.ASSERTION


@pytest.mark.parametrize(
    "skipped",
    [
        "    @unittest.skipIf(sys.maxsize > 0, 'x')\n    def test_later(self):\n",
        "    def test_later(self):\n        if sys.platform.islower(): self.skipTest('x')\n",
        "    def test_later(self):\n        raise unittest.SkipTest('x')\n",
    ],
)
def test_skip_that_does_not_depend_on_the_code(pool: Pool, skipped: str) -> None:
    tests = f"import sys, unittest\n{CASE}    sum = add(1, 2)\n{skipped}        self.assertEqual(add(1, 2), 4)\n"
    outcome = run(pool, RIGHT, tests, None)
    assert (outcome.status, outcome.passed, outcome.total) == (Status.PASSED, 1, 1)


def test_skipped_subtest(pool: Pool) -> None:
    loop = (
        "        for x in (1, 2):\n            with self.subTest(x=x):\n                if x == 2: self.skipTest('x')\n"
    )
    tests = f"import unittest\n{CASE}{UNTIL}{loop}                self.assertEqual(add(x, 2), 3)\n"
    passes(pool, RIGHT, tests, None)
    assert run(pool, ONLY_ZERO, tests, None).status is Status.ASSERTION
