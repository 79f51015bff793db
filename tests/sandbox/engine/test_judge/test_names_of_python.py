"""Tests that call `exit`, `eval` and other functions of Python, which code may define as well."""

import pytest

from sandbox.client.pool import Pool
from sandbox.verdicts.results import Status
from tests.sandbox.engine.test_judge.test_running_tests import passes, run

RIGHT = "def add(a, b):\n    return a + b"
WRONG = "def add(a, b):\n    return a - b"


@pytest.mark.parametrize("entry_point", [None, "add"])
@pytest.mark.parametrize(
    "tests",
    [
        "assert add(1, 2) == 3\nquit()",
        "assert add(1, 2) == 3\nexit(0)",
        ["assert add(1, 2) == 3", "quit()"],
        "def test_add():\n    assert add(1, 2) == 3\n    quit()",
        "assert eval('add(1, 2)') == 3",
        "assert add(1, 2) == 3\nassert sum([1, 2]) == 3",
        "if add(1, 2) != 3: exit(1)",
        "add(1, 2) == 3 or exit(1)",
        "import sys\nif add(1, 2) != 3: sys.exit(1)",
        "import sys\nif add(1, 2) != 3: sys.exit('wrong')",
        "import sys\nsys.exit(0 if add(1, 2) == 3 else 1)",
        "import sys\nsys.exit(add(1, 2) != 3)",
        "import sys\nend = sys.exit\nif add(1, 2) != 3: end(1)",
        "from sys import exit as end\nif add(1, 2) != 3: end(1)",
    ],
)
def test_functions_of_python_in_tests(pool: Pool, tests: str | list[str], entry_point: str | None) -> None:
    passes(pool, RIGHT, tests, entry_point)
    assert run(pool, WRONG, tests, entry_point).status in (Status.ASSERTION, Status.EXCEPTION)


def test_programs_for_exec_are_searched_for_names(pool: Pool) -> None:
    tests = "exec('x = add(1, 2)')\nassert x == 3"
    passes(pool, RIGHT, tests, None)
    assert run(pool, WRONG, tests, None).status is Status.ASSERTION


@pytest.mark.parametrize("name", ["exit", "quit", "eval", "sum", "copy", "grp"])
def test_function_of_the_code_with_a_name_of_python(pool: Pool, name: str) -> None:
    tests = f"assert {name}(10, 15) == 25"
    passes(pool, RIGHT.replace("add", name), tests, None)
    assert run(pool, WRONG.replace("add", name), tests, None).status is Status.ASSERTION
    assert run(pool, RIGHT, tests, None).status is Status.MISSING_ENTRY_POINT


@pytest.mark.parametrize(
    ("added", "tests"),
    [
        ("def exit(code): pass", "if add(1, 2) != 3: exit(1)"),
        ("def exit(code): pass", "add(1, 2) == 3 or exit(1)"),
        ("def eval(text): return 3", "assert eval('add(1, 2)') == 3"),
    ],
)
def test_code_cannot_replace_functions_that_decide(pool: Pool, added: str, tests: str) -> None:
    assert run(pool, f"{WRONG}\n{added}", tests, None).status in (Status.ASSERTION, Status.EXCEPTION)


@pytest.mark.parametrize(
    "returned",
    ["import os; os._exit(0)", "raise SystemExit(0)", "return type('X', (int,), {'__eq__': lambda *_: True})(5)"],
)
@pytest.mark.parametrize("trust", ["isolated", "in_process"])
def test_code_cannot_choose_the_exit_code_of_tests(pool: Pool, returned: str, trust: str) -> None:
    code = f"def add(a, b):\n    {returned}"
    assert run(pool, code, "import sys\nsys.exit(add(1, 2))", None, trust=trust).status is not Status.PASSED


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(("code", "text"), [("2", "2"), ("True", "1"), ("'not 3'", "1: 'not 3'")])
def test_exit_code_of_the_tests_is_reported(pool: Pool, code: str, text: str, trust: str) -> None:
    outcome = run(pool, WRONG, f"import sys\nif add(1, 2) != 3: sys.exit({code})", None, trust=trust)
    assert outcome.message == f"The tests ended with exit code {text}."


@pytest.mark.parametrize(
    "tests", ["x = [1]\nassert sorted([2, 1]) == [1, 2]", "assert True", "import sys\nsys.exit(1)", "assert 1 == 2"]
)
def test_tests_that_use_nothing_of_the_code_are_broken(pool: Pool, tests: str) -> None:
    assert run(pool, RIGHT, tests, None).status is Status.BAD_TESTS


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_tests_that_print_to_a_stream_need_no_shared_process(pool: Pool, stream: str) -> None:
    tests = f"import sys\nprint(1, file=sys.{stream})\nsys.{stream}.write('2')\nassert add(1, 2) == 3"
    assert run(pool, WRONG, tests, None).status is Status.ASSERTION
    captured = "import io, sys\nsys.stdout = io.StringIO()\nadd(1, 2)\nassert sys.stdout.getvalue() == '3'"
    assert run(pool, WRONG, captured, None).status is Status.UNSUPPORTED


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(
    "tests",
    [
        "def main():\n    if add(1, 2) != 3:\n        return exit(1)\nmain()",
        "ok = add(1, 2) == 3 or exit(1)",
        "fail = lambda: exit(1)\nif add(1, 2) != 3: fail()",
        "[exit(1) for _ in range(1) if add(1, 2) != 3]",
        "add(1, 2) != 3 and (print('wrong'), exit(1))",
        "if add(1, 2) != 3 and exit(1): pass",
    ],
)
def test_exit_ends_tests_wherever_it_is_called(pool: Pool, tests: str, trust: str) -> None:
    passes(pool, RIGHT, tests, None, trust=trust)
    outcome = run(pool, f"def exit(code): pass\n{WRONG}", tests, None, trust=trust)
    assert outcome.message == "The tests ended with exit code 1."


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(
    "tests",
    [
        "x = quit(5)\nassert x == 6",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(quit(5), 6)",
    ],
)
def test_function_of_the_code_called_quit(pool: Pool, tests: str, trust: str) -> None:
    passes(pool, "def quit(x):\n    return x + 1", tests, None, trust=trust)


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(
    "tests",
    [
        "import sys\ntry:\n    assert add(1, 2) == 3\nfinally:\n    sys.exit()",
        "def test_add():\n    try:\n        assert add(1, 2) == 3\n    finally:\n        exit(0)",
        "def test_add():\n    try:\n        assert add(1, 2) == 3\n    except AssertionError:\n        exit(0)",
    ],
)
def test_exit_does_not_hide_a_failed_assert(pool: Pool, tests: str, trust: str) -> None:
    passes(pool, RIGHT, tests, None, trust=trust)
    assert run(pool, WRONG, tests, None, trust=trust).status is Status.ASSERTION


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize("end", ["raise SystemExit", "exit(0)"])
def test_code_cannot_end_tests_by_calling_their_function(pool: Pool, end: str, trust: str) -> None:
    tests = f"def end():\n    {end}\nassert add(0, end) == 0\nassert add(1, end) == 2"
    outcome = run(pool, "def add(a, end):\n    return end() if a else 0", tests, None, trust=trust)
    assert (outcome.status, outcome.message) == (Status.EXCEPTION, "The tests ended with exit code 0.")


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize("entry_point", [None, "add"])
def test_modules_of_python_need_no_import(pool: Pool, entry_point: str | None, trust: str) -> None:
    tests = "def test_add():\n    assert add(1, 2) == math.floor(3.2)"
    passes(pool, RIGHT, tests, entry_point, trust=trust)
    assert run(pool, WRONG, tests, entry_point, trust=trust).status is Status.ASSERTION
