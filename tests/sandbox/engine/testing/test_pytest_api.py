"""Tests written for pytest: fixtures, parameters, `raises`, `approx` and setup methods, without the package."""

from textwrap import dedent

import pytest

from sandbox.client.pool import Pool
from sandbox.limits import Limits
from sandbox.verdicts.jobs import FunctionJob, Trust
from sandbox.verdicts.results import Outcome, Status
from tests.sandbox.correct_solutions.pytest_styles import ADD, STYLES, SUBTRACT, Style


def run(pool: Pool, code: str, tests: str, trust: Trust = "isolated") -> Outcome:
    job = FunctionJob(dedent(code), None, dedent(tests), trust=trust, limits=Limits(cpu_s=5, wall_s=15))
    return pool.run(job)


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_right_code_passes_and_wrong_code_fails(pool: Pool, style: Style, trust: Trust) -> None:
    right = run(pool, style.right, style.tests, trust)
    assert (right.status, right.total) == (Status.PASSED, style.count), right
    wrong = run(pool, style.wrong, style.tests, trust)
    assert wrong.status in (Status.ASSERTION, Status.EXCEPTION), wrong


def test_failure_names_the_parameters(pool: Pool) -> None:
    outcome = run(pool, SUBTRACT, STYLES[4].tests)
    assert outcome.failure is not None and "test_add[1-2-3]" in outcome.failure.test, outcome


@pytest.mark.parametrize("name", ["tmp_path", "monkeypatch", "capsys"])
def test_fixtures_that_work_on_a_process_are_unsupported(pool: Pool, name: str) -> None:
    outcome = run(pool, ADD, f"def test_it({name}):\n    assert f(1, 2) == 3\n")
    assert outcome.status is Status.UNSUPPORTED and name in outcome.message, outcome


def test_unknown_fixture_is_bad_tests(pool: Pool) -> None:
    outcome = run(pool, ADD, "def test_it(nothing):\n    assert f(1, 2) == 3\n")
    assert outcome.status is Status.BAD_TESTS and "`nothing`" in outcome.message, outcome


def test_other_names_of_pytest_are_unsupported(pool: Pool) -> None:
    outcome = run(pool, ADD, "import pytest\ndef test_it():\n    pytest.skip()\n    assert f(1, 2) == 3\n")
    assert outcome.status is Status.UNSUPPORTED and "pytest.skip" in outcome.message, outcome


def test_object_of_the_code_is_not_approximately_equal(pool: Pool) -> None:
    code = """
    class Near:
        def __eq__(self, other): return True
        def __sub__(self, other): return 0
        __rsub__ = __sub__
        def __abs__(self): return 0.0
        def __float__(self): return 2.0
    class NearFloat(float):
        def __eq__(self, other): return True
        def __sub__(self, other): return 0.0
        __rsub__ = __sub__
    def f(x): return Near() if x else NearFloat(9)
    """
    for argument in (0, 1):
        tests = f"import pytest\ndef test_it():\n    assert f({argument}) == pytest.approx(2.0)\n"
        assert run(pool, code, tests).status in (Status.ASSERTION, Status.UNSUPPORTED)


def test_code_that_breaks_parameters_is_not_bad_tests(pool: Pool) -> None:
    tests = """
    import pytest
    @pytest.mark.parametrize("a, b", f())
    def test_it(a, b): assert a == b
    def test_other(): assert True
    """
    assert run(pool, "def f(): return [(1, 1)]\n", tests).status is Status.PASSED
    assert run(pool, "def f(): return [(1, 1, 2)]\n", tests).status is Status.EXCEPTION
    assert run(pool, "def f(): return []\n", tests).status not in (Status.PASSED, Status.BAD_TESTS)
