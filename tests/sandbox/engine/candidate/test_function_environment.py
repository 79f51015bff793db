"""Tests that functions under test find what they find in plain Python: names of `site`, their source code."""

import pytest

from sandbox.client.pool import Pool
from sandbox.verdicts.jobs import CallJob, FunctionJob
from sandbox.verdicts.results import Status

LITERAL = "def check(candidate):\n    assert candidate(1) == 1\n"
JUDGED = "def check(candidate):\n    for n in (1, 2):\n        assert candidate(n) == n\n"


@pytest.mark.parametrize("name", ["exit", "quit"])
@pytest.mark.parametrize("tests", [LITERAL, JUDGED])
@pytest.mark.parametrize("trust", ["isolated", "in_process"])
def test_exit_in_a_function_ends_as_sys_exit_does(name: str, tests: str, trust: str, pool: Pool) -> None:
    jobs = [
        FunctionJob(f"def f(n):\n    {call}\n", "f", tests, trust=trust)  # type: ignore[arg-type]
        for call in (f"{name}()", "raise SystemExit(None)")
    ]

    outcome, expected = [pool.run(job) for job in jobs]

    assert (outcome.status, outcome.message) == (expected.status, expected.message)
    assert outcome.status in (Status.EXITED, Status.EXCEPTION)


@pytest.mark.parametrize("code", ["exit()\ndef f(n): return n\n", "def f(n): return n\nquit(0)\n"])
def test_exit_beside_a_function_is_no_pass(code: str, pool: Pool) -> None:
    assert pool.run(FunctionJob(code, "f", LITERAL)).status is Status.EXITED


@pytest.mark.parametrize("tests", [LITERAL, JUDGED])
def test_function_has_names_of_site(tests: str, pool: Pool) -> None:
    code = "def f(n):\n    return n if callable(help) and str(copyright) and exit is not quit else 0\n"
    assert pool.run(FunctionJob(code, "f", tests)).status is Status.PASSED


def test_function_of_a_bundle_has_names_of_site(pool: Pool) -> None:
    outcome = pool.run(CallJob({"tools.py": b"def go():\n    exit(3)\n"}, "tools.py", "go"))
    assert outcome.status is Status.EXITED


def test_tests_use_the_function_of_the_code_and_not_the_name_of_site(pool: Pool) -> None:
    tests = "for n in (1, 2):\n    assert help(n) == license(n) == n\n"
    outcome = pool.run(FunctionJob("def help(n): return n\ndef license(n): return n\n", None, tests))
    assert outcome.status is Status.PASSED


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
def test_function_finds_source_code(trust: str, pool: Pool) -> None:
    code = """
import inspect, traceback
class Double:
    by = 2

def g(n):
    '''A form feed \x0c and a separator \u2028 end no line.'''
    return n * Double.by

def f(n):
    try:
        1 / 0
    except ZeroDivisionError:
        trace = traceback.format_exc()
    return [inspect.getsource(g), inspect.getsource(Double), inspect.getsourcelines(f)[1], "1 / 0" in trace]
"""
    namespace = code.split("\n\n")
    expected = [f"{namespace[1]}\n", namespace[0].partition("traceback\n")[2] + "\n", 10, True]
    tests = f"expected = {expected!r}\ndef check(candidate):\n    assert candidate(1) == expected\n"

    outcome = pool.run(FunctionJob(code, "f", tests, trust=trust))  # type: ignore[arg-type]

    assert outcome.status is Status.PASSED, outcome
