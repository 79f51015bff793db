"""Rules that run code in a real sandbox: python_tests, stdin_stdout, state, custom."""

from typing import Any

import pytest
from pydantic import ValidationError

from hub.scorers.base import ScoringFailed
from hub.scorers.python_tests import PythonTestsOptions
from hub.scorers.registry import SCORERS
from hub.scorers.stdin_stdout import StdinStdoutOptions
from sandbox.verdicts.results import Outcome, Status
from tests.hub.scoring import judge

ADD = "Here it is.\n\n```python\ndef add(a, b):\n    return a + b\n```\nIt adds."
CHECK = "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(-1, 1) == 0\n"


def _limit(code: str) -> float:
    """Return the seconds for *code*: few if it never ends, otherwise enough for a busy machine."""
    return 1 if "while" in code else 10


class BrokenPool:
    async def arun(self, job: Any) -> Outcome:
        return Outcome(Status.INFRA_ERROR, "The sandbox failed: no engine.")


# ---- python_tests ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tests",
    [
        CHECK,
        ["assert add(1, 2) == 3", "assert add(0, 0) == 0"],
        "assert add(1, 2) == 3",
        [{"args": [1, 2], "expect": 3}, {"args": [1], "kwargs": {"b": 2}, "expect": 3}],
    ],
)
async def test_tests_of_every_notation_pass_right_code_and_fail_wrong_code(tests: Any, sandbox_pool: Any) -> None:
    right = await judge("python_tests", ADD, pool=sandbox_pool, tests=tests, entry_point="add")
    assert (right.value, right.outcome.status) == (1.0, Status.PASSED)
    assert right.outcome.total >= 1
    wrong = await judge("python_tests", ADD.replace("+", "-"), pool=sandbox_pool, tests=tests, entry_point="add")
    assert (wrong.value, wrong.outcome.status) == (0.0, Status.ASSERTION)
    assert "3" in wrong.reason


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        (CHECK, "A test failed: candidate(1, 2) == 3; got -1"),
        (["assert add(1, 2) > 0"], "A test failed: add(1, 2) > 0; got -1"),
        (["assert add(1, 2) == 3 or add(2, 1) == 3"], "A test failed: add(1, 2) == 3 or add(2, 1) == 3"),
        ("assert add(5, 2) == 7", "A test failed: add(5, 2) == 7; got 3"),
        ([{"args": [1, 2], "expect": 3}], "; got -1"),
        ("assert add(1, 2) == 3, 'one and two'", "A test failed: add(1, 2) == 3 (one and two); got -1"),
        ("n = 1\nassert add(n, 2) == 3, 'one and two'", "A test failed: add(n, 2) == 3 (one and two); got -1"),
        ("assert 3 == add(1, 2)", "A test failed: 3 == add(1, 2); got -1"),
        ("n = 1\nassert 3 == add(n, 2)", "A test failed: 3 == add(n, 2); got -1"),
        ("n = 1\nassert 0 < add(n, 2)", "A test failed: 0 < add(n, 2); got -1"),
    ],
)
async def test_reason_has_the_value_found(tests: Any, said: str, sandbox_pool: Any) -> None:
    wrong = await judge("python_tests", ADD.replace("+", "-"), pool=sandbox_pool, tests=tests, entry_point="add")
    assert wrong.reason.endswith(said), wrong.reason


@pytest.mark.parametrize("code", ["def f():\n    yield 1", "async def f():\n    return [1]"])
async def test_reason_names_no_function_of_the_sandbox(code: str, sandbox_pool: Any) -> None:
    tests = [{"args": [], "expect": [1]}]
    text = f"```python\n{code}\n```"
    verdict = await judge("python_tests", text, pool=sandbox_pool, tests=tests, entry_point="f")
    assert verdict.value == 0.0
    assert "candidate() == [1]" in verdict.reason and "__llm_eval" not in verdict.reason


@pytest.mark.parametrize("tests", [CHECK, ["assert add(1, 2) == 3"]])
async def test_reason_names_a_coroutine_without_the_function_of_the_sandbox(tests: Any, sandbox_pool: Any) -> None:
    text = ADD.replace("def", "async def")
    verdict = await judge("python_tests", text, pool=sandbox_pool, tests=tests, entry_point="add")
    assert verdict.reason.endswith("(1, 2) == 3; got <coroutine object>")


SIGNATURE = 'def add(a, b):\n    """Return the sum."""\n'


@pytest.mark.parametrize(
    "answer",
    [
        ADD.replace("def add", "def plus"),
        "def plus(a, b):\n    return a + b\n",
        "Here it is:\n\ndef plus(a, b):\n    return a + b\n\nIt adds.",
        "Here it is:\n\nclass Solution:\n    def add(self, a, b):\n        return a + b\n",
        "```python\nclass Solution:\n    def add(self, a, b):\n        return a + b\n\nprint(Solution().add(1, 2))\n"
        "```",
    ],
)
async def test_function_of_another_name_is_no_body_of_the_prompt(answer: str, sandbox_pool: Any) -> None:
    verdict = await judge("python_tests", answer, pool=sandbox_pool, tests=CHECK, entry_point="add", prefix=SIGNATURE)
    assert (verdict.value, verdict.reason) == (0.0, "The code defines no add.")


async def test_call_in_json_is_no_body_of_the_prompt(sandbox_pool: Any) -> None:
    answer = '{"name": "submit", "arguments": {"id": 3}}'
    verdict = await judge("python_tests", answer, pool=sandbox_pool, tests=CHECK, entry_point="add", prefix=SIGNATURE)
    assert (verdict.value, verdict.reason) == (0.0, "The answer contains no code.")


@pytest.mark.parametrize(
    "body",
    [
        "def plus(x):\n    return x + b\nreturn plus(a)",
        "    def plus(x, y):\n        return x + y\n\n    return plus(a, b)",
    ],
)
async def test_body_that_defines_a_function_continues_the_prompt(body: str, sandbox_pool: Any) -> None:
    verdict = await judge("python_tests", body, pool=sandbox_pool, tests=CHECK, entry_point="add", prefix=SIGNATURE)
    assert (verdict.value, verdict.detail["code"]) == (1.0, "continued")


RANDOM = "```python\nimport random\ndef f(): return random.random()\n```"
PATCHED = """
from unittest.mock import patch
def test_it():
    with patch("random.random", return_value=5):
        assert f() == 5
"""


async def test_tests_that_need_one_process_are_unscored_for_trainers_and_repeated_in_evaluations(
    sandbox_pool: Any,
) -> None:
    trained = await judge("python_tests", RANDOM, pool=sandbox_pool, tests=PATCHED)
    assert (trained.value, trained.detail["trust"]) == (None, "isolated")
    assert "patch" in trained.reason
    evaluated = await judge("python_tests", RANDOM, pool=sandbox_pool, tests=PATCHED, isolated=False)
    assert (evaluated.value, evaluated.detail["trust"]) == (1.0, "in_process")
    assert "patch" in str(evaluated.detail["trust_reason"])
    kept = await judge("python_tests", RANDOM, pool=sandbox_pool, tests=PATCHED, isolated=False, trust="isolated")
    assert kept.value is None
    always = await judge("python_tests", ADD, pool=sandbox_pool, tests="assert add(1, 2) == 3", trust="in_process")
    assert (always.value, always.detail["trust"], always.outcome.trust_reason) == (1.0, "in_process", "")


COUNTER = "log = []\ncount = 0\ndef f():\n    global count\n    count += 1\n    log.append(1)"
POINT = "class Point:\n    def __init__(self): self.tags = []"


@pytest.mark.parametrize(
    ("code", "tests", "value", "evaluated"),
    [
        (COUNTER, "f()\nassert log == [1]", None, 1.0),
        (COUNTER, "f()\nassert log == []", None, 0.0),
        (COUNTER, "log.append(3)\nf()\nassert log == [3, 1]", None, 1.0),
        (COUNTER, "f()\nassert count == 1", None, None),
        (COUNTER, "import solution\nassert solution.f() is None\nassert solution.log == [1]", 1.0, 1.0),
        (POINT, "p = Point()\np.tags.append(1)\nassert p.tags == [1]", None, 1.0),
        (POINT, "p = Point()\np.tags.append(1)\nassert p.tags == []", None, 0.0),
        (POINT, "p = Point()\ntags = p.tags\ntags.append(1)\nassert tags == [1]", 1.0, 1.0),
        ("LIMIT = 5\ndef f(): return 4", "assert f() == LIMIT", 0.0, 0.0),
    ],
)
async def test_tests_that_share_a_variable_with_the_code_need_its_process(
    code: str, tests: str, value: float | None, evaluated: float | None, sandbox_pool: Any
) -> None:
    text = f"```python\n{code}\n```"
    trained = await judge("python_tests", text, pool=sandbox_pool, tests=tests)
    assert trained.value == value, trained.reason
    verdict = await judge("python_tests", text, pool=sandbox_pool, tests=tests, isolated=False)
    assert verdict.value == evaluated, verdict.reason


async def test_tests_without_entry_point_name_the_functions(sandbox_pool: Any) -> None:
    tests = ["assert add(1, 2) == 3"]
    assert (await judge("python_tests", ADD, pool=sandbox_pool, tests=tests)).value == 1.0


async def test_code_block_that_defines_the_tested_function_is_used(sandbox_pool: Any) -> None:
    text = ADD + "\n\nUse it so:\n\n```python\nprint(add(1, 2))\n```\n"
    tests = ["assert add(1, 2) == 3"]
    assert (await judge("python_tests", text, pool=sandbox_pool, tests=tests)).value == 1.0


@pytest.mark.parametrize(
    "usage",
    [
        "import unittest\n\nclass TestAdd(unittest.TestCase):\n    def test_it(self):\n        pass\n\nunittest.main()",
        "a = int(input())\nprint(add(a, a))",
        "import sys\nprint(add(1, 2))\nsys.exit(0)",
        "assert add(1, 2) == 4",
        "while True:\n    print(add(1, 2))",
        "import matplotlib.pyplot as plt\nplt.plot([add(1, 2)])",
    ],
    ids=["unittest", "input", "exit", "failing example", "endless loop", "missing package"],
)
async def test_statements_that_only_use_the_function_are_dropped_and_reported(usage: str, sandbox_pool: Any) -> None:
    for sign, value in (("+", 1.0), ("-", 0.0)):
        text = f"```python\ndef add(a, b):\n    return a {sign} b\n\n{usage}\n```"
        verdict = await judge("python_tests", text, pool=sandbox_pool, tests=CHECK, entry_point="add")
        assert verdict.value == value, verdict.reason
        assert any(usage.splitlines()[-1] in line or "while" in line for line in verdict.detail["dropped"])


async def test_error_line_is_that_of_the_code_block(sandbox_pool: Any) -> None:
    text = "```python\nprint(1)\nx = input()\ndef add(a, b):\n    return 1 / 0\n```"
    verdict = await judge("python_tests", text, pool=sandbox_pool, tests=CHECK, entry_point="add")
    assert "(line 4)" in verdict.reason


async def test_function_body_continues_the_prefix(sandbox_pool: Any) -> None:
    prefix = 'from math import floor\n\ndef low(x: float) -> int:\n    """Rounded down."""\n'
    options = {"prefix": prefix, "entry_point": "low", "tests": "def check(c):\n    assert c(1.5) == 1\n"}
    for text in ("    return floor(x)", "return floor(x)", "```python\n    return floor(x)\n```"):
        verdict = await judge("python_tests", text, pool=sandbox_pool, **options)
        assert (verdict.value, verdict.detail["code"]) == (1.0, "continued"), text


async def test_complete_function_can_use_names_of_the_prefix(sandbox_pool: Any) -> None:
    prefix = (
        "from math import floor\n\ndef half(x):\n    return x / 2\n\n"
        'def low(x: float) -> int:\n    """Half, rounded down."""\n'
    )
    text = "```python\ndef low(x: float) -> int:\n    return floor(half(x))\n```"
    tests = "def check(c):\n    assert c(3.0) == 1\n"
    verdict = await judge("python_tests", text, pool=sandbox_pool, prefix=prefix, entry_point="low", tests=tests)
    assert verdict.value == 1.0, verdict.reason


async def test_setup_runs_before_the_tests(sandbox_pool: Any) -> None:
    options = {"setup": "import math\nBIG = 3\n", "tests": ["assert math.isclose(add(1, 2), BIG)"]}
    assert (await judge("python_tests", ADD, pool=sandbox_pool, entry_point="add", **options)).value == 1.0


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("```python\ndef add(a, b):\n    return a +\n```", Status.SYNTAX_ERROR),
        ("```python\ndef plus(a, b):\n    return a + b\n```", Status.MISSING_ENTRY_POINT),
        ("```python\ndef add(a, b):\n    raise KeyError(a)\n```", Status.EXCEPTION),
        ("```python\ndef add(a, b):\n    while True: pass\n```", Status.TIMEOUT),
        ("```python\nimport os\nos._exit(0)\n```", Status.EXITED),
    ],
)
async def test_reason_describes_the_failure_of_the_code(text: str, status: Status, sandbox_pool: Any) -> None:
    limit = _limit(text)
    verdict = await judge("python_tests", text, pool=sandbox_pool, tests=CHECK, entry_point="add", timeout_s=limit)
    assert (verdict.value, verdict.outcome.status) == (0.0, status)
    assert verdict.reason == verdict.outcome.message != ""


async def test_answer_without_code_fails_without_execution(sandbox_pool: Any) -> None:
    for text in ("", "<think>def add(a, b): return a + b", "   \n"):
        verdict = await judge("python_tests", text, pool=sandbox_pool, tests=CHECK, entry_point="add")
        assert (verdict.value, verdict.reason, verdict.outcome) == (0.0, "The answer contains no code.", None)


async def test_prose_without_code_fails(sandbox_pool: Any) -> None:
    text = "I am sorry, I cannot help with that."
    assert (await judge("python_tests", text, pool=sandbox_pool, tests=CHECK, entry_point="add")).value == 0.0


async def test_broken_tests_leave_the_response_unscored(sandbox_pool: Any) -> None:
    tests = "def check(candidate):\n    assert candidate("
    assert (await judge("python_tests", ADD, pool=sandbox_pool, tests=tests, entry_point="add")).value is None


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"tests": []}, "not empty"),
        ({"tests": "  "}, "must not be empty"),
        ({"tests": [{"args": [1], "expected": 3}]}, "Test 1 must be a mapping with 'expect'"),
        ({"tests": [{"args": 1, "expect": 3}]}, "'args' must be a list"),
        ({"tests": CHECK, "entry_point": "add()"}, "must be 'function' or 'module:function'"),
    ],
)
def test_tests_that_cannot_be_run_are_refused_when_a_bundle_is_validated(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        PythonTestsOptions.model_validate({"entry_point": "add", **options})


async def test_missing_package_of_the_tests_leaves_the_response_unscored(sandbox_pool: Any) -> None:
    tests = "def check(candidate):\n    assert candidate(1, 2) == 3\n    import numpy as np\n    assert np.pi\n"
    verdict = await judge("python_tests", ADD, pool=sandbox_pool, tests=tests, entry_point="add")
    assert verdict.value is None
    assert "numpy" in verdict.reason and "`packages:`" in verdict.reason


async def test_sandbox_failure_is_not_a_wrong_answer() -> None:
    with pytest.raises(ScoringFailed) as failed:
        await judge("python_tests", ADD, pool=BrokenPool(), tests=CHECK, entry_point="add")
    assert failed.value.kind == "sandbox"
    with pytest.raises(ScoringFailed):
        await judge("python_tests", ADD, tests=CHECK, entry_point="add")


async def test_code_with_nul_or_lone_surrogates_is_a_wrong_answer(sandbox_pool: Any) -> None:
    for junk in ("\x00", "\ud800"):
        text = f"```python\ndef add(a, b):\n    return '{junk}'\n```"
        assert (await judge("python_tests", text, pool=sandbox_pool, tests=CHECK, entry_point="add")).value == 0.0


async def test_entry_point_names_module_and_function_of_a_project(sandbox_pool: Any) -> None:
    options = {"entry_point": "shop.cart:total", "tests": [{"args": [[1, 2]], "expect": 3}]}
    files = {"shop/__init__.py": "", "shop/cart.py": "from shop.tax import add\ndef total(xs): return add(xs)\n"}
    right = {"files": {**files, "shop/tax.py": "def add(xs): return sum(xs)\n"}}
    wrong = {"files": {**files, "shop/tax.py": "def add(xs): return 0\n"}}
    assert (await judge("python_tests", "Done.", pool=sandbox_pool, state=right, **options)).value == 1.0
    assert (await judge("python_tests", "Done.", pool=sandbox_pool, state=wrong, **options)).value == 0.0


# ---- stdin_stdout ----------------------------------------------------------------------------------------------------

DOUBLE = "```python\nfor line in open(0):\n    print(int(line) * 2)\n```"
CASES = [{"stdin": "1\n2\n", "stdout": "2\n4"}, {"stdin": "", "stdout": ""}]


async def test_stdin_stdout_passes_expected_output(sandbox_pool: Any) -> None:
    verdict = await judge("stdin_stdout", DOUBLE, pool=sandbox_pool, cases=CASES)
    assert (verdict.value, verdict.reason) == (1.0, "All 2 outputs are right.")


def test_time_below_the_least_limit_of_the_sandbox_is_refused_at_once() -> None:
    with pytest.raises(ValidationError, match="cpu_s must be between"):
        StdinStdoutOptions.model_validate({"cases": CASES, "timeout_s": 0.05})


async def test_line_ends_of_windows_in_the_input_are_line_feeds(sandbox_pool: Any) -> None:
    echo = "```python\nprint(input() + '!')\nprint(input() + '!')\n```"
    cases = [{"stdin": "a\r\nb\r\n", "stdout": "a!\r\nb!\r\n"}]
    assert (await judge("stdin_stdout", echo, pool=sandbox_pool, cases=cases)).value == 1.0


async def test_reason_shows_the_first_wrong_output(sandbox_pool: Any) -> None:
    verdict = await judge("stdin_stdout", DOUBLE.replace("* 2", "* 3"), pool=sandbox_pool, cases=CASES)
    assert (verdict.value, verdict.reason) == (0.0, "Input 1: expected '2 4', printed '3 6'.")


@pytest.mark.parametrize("tolerance", [float("inf"), float("nan"), -1.0])
def test_tolerance_of_outputs_is_finite_and_not_negative(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance"):
        SCORERS["stdin_stdout"].Options.model_validate({"cases": CASES, "tolerance": tolerance})


async def test_partial_scores_the_share_of_outputs(sandbox_pool: Any) -> None:
    text = "```python\nprint(2)\n```"
    cases = [{"stdin": "", "stdout": "2"}, {"stdin": "", "stdout": "3"}]
    assert (await judge("stdin_stdout", text, pool=sandbox_pool, cases=cases, partial=True)).value == 0.5
    assert (await judge("stdin_stdout", text, pool=sandbox_pool, cases=cases)).value == 0.0


@pytest.mark.parametrize(
    ("printed", "wanted", "compare", "right"),
    [
        ("a  \\nb\\n\\n", "a\nb", "lines", True),
        (" a\\nb", "a\nb", "lines", False),
        ("a b", "a\nb", "lines", False),
        ("a\\x0cb", "a\nb", "lines", False),
        ("a\\u2028b", "a\nb", "lines", False),
        ("a\\r\\nb\\r\\n", "a\nb", "lines", True),
        ("a b", "a\nb", "tokens", True),
        ("a  c", "a b", "tokens", False),
        ("0.30000000001 x", "0.3 x", "floats", True),
        ("0.31", "0.3", "floats", False),
        ("1 2", "1", "floats", False),
        ("0.333334", "0.333333", "floats", True),
        ("0.3333341", "0.333333", "floats", False),
        ("1000001", "1e6", "floats", True),
        ("1000002.1", "1e6", "floats", False),
        ("-inf", "inf", "floats", False),
        ("1e999", "Infinity", "floats", True),
        ("5", "inf", "floats", False),
        ("NaN", "nan", "floats", True),
        ("nan", "5", "floats", False),
        ("5", "nan", "floats", False),
        ("[0.30000000000000004, 1.0]", "[0.3, 1]", "floats", True),
        ("(0.5; 2)", "(0.50; 2)", "floats", True),
        ("[0.3, 1)", "[0.30, 1]", "floats", False),
        ("12:5 1,0", "12:05 1,000", "floats", False),
        ("nan", "nan", "floats", True),
        ("1_0", "10", "floats", False),
    ],
)
async def test_outputs_are_compared_by_lines_tokens_or_floats(
    printed: str, wanted: str, compare: str, right: bool, sandbox_pool: Any
) -> None:
    text = f"```python\nprint('{printed}', end='')\n```"
    cases = [{"stdin": "", "stdout": wanted}]
    verdict = await judge("stdin_stdout", text, pool=sandbox_pool, cases=cases, compare=compare)
    assert verdict.value == float(right), verdict.reason


@pytest.mark.parametrize(
    ("code", "wanted", "reason"),
    [
        ("print('a  b')", "a b\n", "Input 1, line 1: expected 'a b', printed 'a  b'."),
        ("print('a\\n\\nb')", "a\nb\n", "Input 1, line 2: expected 'b', printed ''."),
        (
            "print('a' * 300 + 'c')",
            "a" * 300 + "b",
            f"Input 1, line 1: expected …'{'a' * 30}b', printed …'{'a' * 30}c'.",
        ),
        ("print('cafe\\u0301')", "café", "Input 1: expected 'café', printed 'cafe\u0301'."),
    ],
)
async def test_reason_shows_how_outputs_differ(code: str, wanted: str, reason: str, sandbox_pool: Any) -> None:
    cases = [{"stdin": "", "stdout": wanted}]
    verdict = await judge("stdin_stdout", f"```python\n{code}\n```", pool=sandbox_pool, cases=cases)
    assert (verdict.value, verdict.reason) == (0.0, reason)


@pytest.mark.parametrize(
    ("end", "value"), [("exit()", 1.0), ("quit(0)", 1.0), ("def end():\n    exit()\n\nend()", 1.0), ("exit(1)", 0.0)]
)
async def test_program_may_end_itself_after_the_right_output(end: str, value: float, sandbox_pool: Any) -> None:
    text = f"```python\nprint(2)\n{end}\nprint(3)\n```"
    verdict = await judge("stdin_stdout", text, pool=sandbox_pool, cases=[{"stdin": "", "stdout": "2"}])
    assert verdict.value == value, verdict.reason
    assert "NameError" not in verdict.reason


async def test_long_right_output_is_not_cut_in_any_script(sandbox_pool: Any) -> None:
    text = "```python\nprint('\u4e2d' * 60_000)\n```"
    verdict = await judge("stdin_stdout", text, pool=sandbox_pool, cases=[{"stdin": "", "stdout": "\u4e2d" * 60_000}])
    assert verdict.value == 1.0, verdict.reason


async def test_program_that_raises_after_the_right_output_fails(sandbox_pool: Any) -> None:
    text = "```python\nprint(2)\nraise SystemError('no')\n```"
    verdict = await judge("stdin_stdout", text, pool=sandbox_pool, cases=[{"stdin": "", "stdout": "2"}])
    assert verdict.value == 0.0
    assert "Input 1" in verdict.reason


# ---- state and custom ------------------------------------------------------------------------------------------------

CHECK_PY = """
from rules import GOAL

def check(case, state, transcript):
    held = state["stock"] == GOAL[case["target"]]
    return {"score": 1.0 if held else 0.25, "reason": f"{len(transcript)} messages", "stock": state["stock"]}
"""
FILES = {"check.py": CHECK_PY, "rules.py": "GOAL = {'empty': 0}\n"}


async def test_state_check_receives_case_state_and_transcript(sandbox_pool: Any) -> None:
    options = {"pool": sandbox_pool, "files": FILES, "path": "check.py", "reads": ["rules.py"]}
    verdict = await judge("state", "Done.", case={"target": "empty"}, state={"stock": 0}, **options)
    assert (verdict.value, verdict.reason, verdict.detail) == (1.0, "2 messages", {"stock": 0})
    assert (await judge("state", "Done.", case={"target": "empty"}, state={"stock": 1}, **options)).value == 0.25


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("return True", 1.0),
        ("return False", 0.0),
        ("return 0.5", 0.5),
        ("return {'score': None}", None),
        ("return sum([1 / 9] * 9)", 1.0),
    ],
)
async def test_state_check_may_return_a_number_or_null(body: str, value: Any, sandbox_pool: Any) -> None:
    files = {"check.py": f"def check(case, state, transcript):\n    {body}\n"}
    verdict = await judge("state", "", pool=sandbox_pool, files=files, path="check.py")
    assert verdict.value == value
    assert verdict.reason


@pytest.mark.parametrize(
    "body", ["raise KeyError('x')", "return 2", "return 'good'", "return {}", "pass", "return {1, 2}", "while 1: pass"]
)
async def test_failing_state_check_is_an_environment_error(body: str, sandbox_pool: Any) -> None:
    files = {"check.py": f"def check(case, state, transcript):\n    {body}\n"}
    with pytest.raises(ScoringFailed) as failed:
        await judge("state", "", pool=sandbox_pool, files=files, path="check.py", timeout_s=_limit(body))
    assert failed.value.kind == "environment"
    assert "check.py" in str(failed.value)


async def test_custom_rule_passes_its_arguments_to_the_function(sandbox_pool: Any) -> None:
    source = "def brevity(case, state, transcript, limit):\n    return len(transcript[-1]['content']) <= limit\n"
    options = {"path": "scoring.py", "function": "brevity", "arguments": {"limit": "{{ limit }}"}}
    case = {"row": {"limit": 5}}
    for text, value in (("short", 1.0), ("much too long", 0.0)):
        verdict = await judge("custom", text, pool=sandbox_pool, files={"scoring.py": source}, case=case, **options)
        assert verdict.value == value
