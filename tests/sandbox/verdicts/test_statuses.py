"""Status and message for every way in which code can end."""

import json

import pytest

from sandbox.client.pool import Pool
from sandbox.limits import Limits
from sandbox.verdicts.jobs import CallJob, FunctionJob, ProgramJob, Trust
from sandbox.verdicts.results import Outcome, Status

SHORT = Limits(cpu_s=1, wall_s=1, result_mb=4)
LITERAL = ["assert f(1) == 2", "assert f(2) == 3"]
JUDGED = "def check(candidate):\n    for n in (1, 2):\n        assert candidate(n) == n + 1\n"


@pytest.mark.parametrize("tests", [LITERAL, JUDGED], ids=["literal", "judged"])
@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("def f(x): return x + 1", Status.PASSED, "All 2 tests passed."),
        ("def f(x): return 2", Status.ASSERTION, "A test failed:"),
        ("def f(x): raise KeyError('k')", Status.EXCEPTION, "The code raised KeyError: 'k' (line 1)"),
        ("def f(x:", Status.SYNTAX_ERROR, "does not compile"),
        ("def f(x): return '\0'", Status.SYNTAX_ERROR, "null bytes"),
        ("def g(x): return x", Status.MISSING_ENTRY_POINT, "defines no f"),
        ("import nothing_of_the_kind", Status.EXCEPTION, "ModuleNotFoundError"),
        ("def f(x):\n    while True: pass", Status.TIMEOUT, "1 seconds"),
        ("import time\ndef f(x): time.sleep(9)", Status.TIMEOUT, "still running after 1 seconds"),
        ("def f(x): return bytearray(2 << 30)", Status.MEMORY_LIMIT, "512 MiB"),
        ("def f(x): return 'x' * (5 << 20)", Status.OUTPUT_LIMIT, "bytes"),
        ("import os\ndef f(x): os._exit(0)", Status.EXITED, "exit code 0"),
        ("def f(x): raise SystemExit", Status.EXITED, "SystemExit"),
        ("import sys\nsys.exit(0)", Status.EXITED, "SystemExit"),
    ],
)
def test_status_and_message_of_function_jobs(
    pool: Pool, tests: list[str] | str, code: str, status: Status, said: str
) -> None:
    entry_point = "f"
    outcome = pool.run(FunctionJob(code, entry_point, tests, limits=SHORT))
    assert (outcome.status, outcome.ok) == (status, status is Status.PASSED), outcome
    assert said in outcome.message
    assert outcome.tier == pool.tier
    assert outcome.backend == "local"


def test_failure_has_test_expected_value_answer_and_line(pool: Pool) -> None:
    for tests in (LITERAL, JUDGED):
        outcome = pool.run(FunctionJob("def f(x): return 2", "f", tests))
        assert outcome.failure is not None
        assert (outcome.failure.expected, outcome.failure.got) == ("3", "2")
        assert outcome.failure.line in (2, 3)
        assert (outcome.passed, outcome.total) == (1, 2)


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("def check(candidate):\n    assert (", "do not compile"),
        ("def check(candidate):\n    candidate(1)", "assert nothing"),
        ("def check(candidate):\n    for n in [1]: assert numpi.isclose(candidate(n), n)", "numpi"),
        ("def check(candidate):\n    assert 1 / 0 == candidate(1)", "ZeroDivisionError"),
    ],
)
def test_broken_tests_are_inconclusive(pool: Pool, tests: str, said: str) -> None:
    outcome = pool.run(FunctionJob("def f(x): return x", "f", tests))
    assert outcome.status is Status.BAD_TESTS
    assert said in outcome.message
    assert not outcome.conclusive


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(
    "tests",
    [
        "assert (f(1) == 2, 'two')",
        ["assert f(1) == 1", "assert (f(1) == 2, 'two')"],
        "def check(candidate):\n    assert candidate(1) == 1\n    assert (candidate(1) == 2, 'two')",
        "def test_f():\n    for n in [1]:\n        assert (f(n) == 2,), 'two'",
        "import unittest\nclass T(unittest.TestCase):\n  def test(self):\n    self.assertTrue((f(1) == 2, 'two'))",
    ],
)
def test_assert_on_a_tuple_decides_nothing(pool: Pool, tests: str | list[str], trust: Trust) -> None:
    for code in ("def f(x): return x", "def f(x): return 2"):
        outcome = pool.run(FunctionJob(code, "f", tests, trust=trust))
        assert (outcome.status, outcome.conclusive) == (Status.BAD_TESTS, False)
        assert "its condition is a tuple" in outcome.message
        assert "== 2, 'two')" in outcome.message or "== 2,), 'two'" in outcome.message


def test_assert_on_a_tuple_that_may_be_empty_is_run(pool: Pool) -> None:
    outcome = pool.run(FunctionJob("def f(x): return x", "f", "assert (*f([]),) == ()\nassert not (*f([]),)"))
    assert outcome.status is Status.PASSED
    assert pool.run(FunctionJob("def f(x): return x", "f", "assert (*f([]),)")).status is Status.ASSERTION


def test_broken_setup_is_bad_tests(pool: Pool) -> None:
    outcome = pool.run(
        FunctionJob("def f(x): return 2", "f", "def check(c):\n for _ in [1]: assert c(1)", setup="1 / 0")
    )
    assert outcome.status is Status.BAD_TESTS


def test_exception_raised_by_use_of_an_answer_is_a_failure(pool: Pool) -> None:
    tests = "def check(candidate):\n    for n in [1]: assert len(candidate(n)) == 1\n"
    outcome = pool.run(FunctionJob("def f(x): return None", "f", tests))
    assert outcome.status is Status.EXCEPTION
    assert "TypeError" in outcome.message


@pytest.mark.parametrize(
    ("code", "status", "exit_code", "stdout"),
    [
        ("print(input()[::-1])", Status.COMPLETED, 0, "cba\n"),
        ("import sys; print(sys.argv[1:], sys.stdin.read())", Status.COMPLETED, 0, "['x'] abc\nd\n"),
        ("print(1); 1 / 0", Status.EXCEPTION, 1, "1\n"),
        ("print(", Status.SYNTAX_ERROR, 1, ""),
        ("import sys; sys.exit(3)", Status.EXITED, 3, ""),
        ("import sys; sys.exit('no')", Status.EXITED, 1, ""),
        ("import os; os._exit(0)", Status.COMPLETED, 0, ""),
        ("while True: pass", Status.TIMEOUT, -9, ""),
        ("x = []\nwhile True: x.append(' ' * (1 << 22))", Status.MEMORY_LIMIT, 1, ""),
        ("print(open('data/in.txt').read())", Status.COMPLETED, 0, "seen\n"),
        ("import helper; print(helper.n)", Status.COMPLETED, 0, "5\n"),
        ("print(__name__)", Status.COMPLETED, 0, "__main__\n"),
    ],
)
def test_status_exit_code_and_output_of_programs(
    pool: Pool, code: str, status: Status, exit_code: int, stdout: str
) -> None:
    limits = Limits(cpu_s=1, wall_s=3, memory_mb=128)
    files = {"data/in.txt": b"seen", "helper.py": b"n = 5\n"}
    outcome = pool.run(ProgramJob(code, "abc\nd", files, ("x",), limits))
    assert (outcome.status, outcome.exit_code, outcome.stdout) == (status, exit_code, stdout), outcome


def test_traceback_of_a_program_has_only_its_own_lines(pool: Pool) -> None:
    outcome = pool.run(ProgramJob("def f():\n    return 1 / 0\nf()"))
    assert 'File "main.py", line 2' in outcome.stderr
    assert "engine" not in outcome.stderr


def test_long_output_is_cut_and_marked(pool: Pool) -> None:
    outcome = pool.run(ProgramJob("print('x' * 100_000)\nprint('y')", limits=Limits(output_kb=1)))
    assert (outcome.status, outcome.output_cut, len(outcome.stdout)) == (Status.COMPLETED, True, 1024)
    assert not pool.run(ProgramJob("print('x')")).output_cut


def test_output_with_invalid_utf8_is_shown(pool: Pool) -> None:
    outcome = pool.run(ProgramJob("import os; os.write(1, b'a\\xffb')"))
    assert outcome.stdout == "a\N{REPLACEMENT CHARACTER}b"


def _call(pool: Pool, code: str, *args: object, **options: object) -> Outcome:
    return pool.run(CallJob({"tools.py": code.encode()}, "tools.py", "go", list(args), limits=SHORT, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("def go(): return {1, 2}", Status.NOT_JSON),
        ("def go(): return float('nan')", Status.NOT_JSON),
        ("def go(): return 'x' * 2_000_000", Status.OUTPUT_LIMIT),
        ("def go(): raise ValueError('v')", Status.EXCEPTION),
        ("def go(x): pass", Status.EXCEPTION),
        ("def stay(): pass", Status.MISSING_ENTRY_POINT),
        ("def go(:", Status.SYNTAX_ERROR),
        ("1 / 0", Status.EXCEPTION),
        ("import os\ndef go(): os._exit(0)", Status.EXITED),
        ("def go():\n    while True: pass", Status.TIMEOUT),
        ("def go():\n    while True: print('x' * 1000)", Status.TIMEOUT),
    ],
)
def test_status_of_failing_calls(pool: Pool, code: str, status: Status) -> None:
    outcome = _call(pool, code)
    assert (outcome.status, outcome.value) == (status, None), outcome


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def go():\n    raise ValueError('v')", "The code raised ValueError: v (line 2)"),
        ("def go():\n    f()\n\n\ndef f():\n    return {}['k']", "The code raised KeyError: 'k' (line 6)"),
        ("import json\ndef go():\n    return json.loads('{')", "(line 3)"),
        ("\n\n1 / 0", "The code raised ZeroDivisionError: division by zero (line 3)"),
    ],
)
def test_message_of_a_failing_call_has_the_line_of_its_module(pool: Pool, code: str, message: str) -> None:
    assert _call(pool, code).message.endswith(message)


def test_call_passes_and_returns_json(pool: Pool) -> None:
    files = {
        "tools.py": b"import rules\ndef go(state, n):\n    state['n'] += n * rules.TWO\n    return {'state': state}\n"
    }
    job = CallJob(files | {"rules.py": b"TWO = 2\n"}, "tools.py", "go", [{"n": 1}], {"n": 3})
    outcome = pool.run(job)
    assert (outcome.status, outcome.value) == (Status.COMPLETED, {"state": {"n": 7}})
    assert job.args == [{"n": 1}]


def test_outcome_has_figures_of_its_own_run_only(pool: Pool) -> None:
    code = "import time\nx = b'x' * (100 << 20)\nwhile time.process_time() < 0.2: pass"
    outcome = pool.run(ProgramJob(code))
    assert outcome.ok, outcome
    assert outcome.peak_mb > 100
    assert 200 <= outcome.cpu_ms < 5000
    light = pool.run(ProgramJob("pass"))
    assert light.peak_mb < 60
    assert light.cpu_ms < 150


def test_outcome_is_json(pool: Pool) -> None:
    outcome = pool.run(FunctionJob("def f(x): return 2", "f", LITERAL))
    assert json.loads(json.dumps(outcome.to_json())) == outcome.to_json()


@pytest.mark.parametrize("tests", [["assert len(f(1)) == 6 << 20"], "def check(f):\n    assert len(f(1)) == 6 << 20\n"])
def test_large_results_are_compared_up_to_the_limit(pool: Pool, tests: list[str] | str) -> None:
    code = "def f(x): return 'x' * (6 << 20)"
    assert pool.run(FunctionJob(code, "f", tests)).status is Status.PASSED
    small = pool.run(FunctionJob(code, "f", tests, limits=Limits(result_mb=5)))
    assert small.status is Status.OUTPUT_LIMIT
    assert f"{5 << 20} are allowed" in small.message


def test_classes_of_python_are_arguments_of_literal_tests(pool: Pool) -> None:
    code = "def without(items, kind): return [item for item in items if not isinstance(item, kind)]"
    tests = ["assert without((1, 2.5, 'a'), int) == [2.5, 'a']", "assert without([1, 2.5], kind=float) == [1]"]
    assert pool.run(FunctionJob(code, None, tests)).status is Status.PASSED
