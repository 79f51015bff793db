"""Tests that no correct solution is reported as wrong, for many kinds of solutions and styles of tests."""

from collections import Counter
from textwrap import dedent

import pytest

from sandbox.client.pool import Pool
from sandbox.verdicts.results import Outcome, Status
from tests.sandbox.correct_solutions.kind import StyledSolution
from tests.sandbox.correct_solutions.table import KINDS, SOLUTIONS

SAMPLE = SOLUTIONS[::9]
MOST_UNSUPPORTED = 0.05
ids = [solution.id for solution in SOLUTIONS]


def judged(pool: Pool, solution: StyledSolution) -> tuple[Outcome, Outcome]:
    """Return the outcomes of a correct solution with the trust `isolated` and with `auto`."""
    isolated = pool.run(solution.job("isolated"))
    return isolated, isolated if isolated.status is Status.PASSED else pool.run(solution.job("auto"))


def test_table_has_500_solutions_in_four_styles() -> None:
    styles = Counter("named" if solution.style == "pytest" else solution.style for solution in SOLUTIONS)
    assert len(SOLUTIONS) >= 500
    assert set(ids) and len(set(ids)) == len(ids)
    assert styles.keys() == {"check", "named", "rows", "unittest"}
    assert len(KINDS) >= 150


def test_solution_passes_in_plain_python() -> None:
    for solution in (solution for solution in SOLUTIONS if solution.style == "pytest"):
        namespace: dict[str, object] = {"__name__": "plain"}
        for text in (solution.kind.prompt, solution.kind.code, solution.kind.setup, str(solution.tests)):
            exec(compile(dedent(text), solution.id, "exec"), namespace)
        for name, function in list(namespace.items()):
            if name.startswith("test_"):
                function()  # type: ignore[operator]


@pytest.mark.parametrize("solution", SAMPLE, ids=lambda solution: solution.id)
def test_right_solution_is_not_judged_wrong(pool: Pool, solution: StyledSolution) -> None:
    isolated, auto = judged(pool, solution)
    assert isolated.status in (Status.PASSED, Status.UNSUPPORTED), isolated
    assert auto.status is Status.PASSED, auto


@pytest.mark.exhaustive
def test_all_right_solutions_pass_or_are_unsupported(pool: Pool) -> None:
    found: Counter[str] = Counter()
    wrong = []
    for solution in SOLUTIONS:
        isolated, auto = judged(pool, solution)
        found[isolated.status] += 1
        if isolated.status not in (Status.PASSED, Status.UNSUPPORTED) or auto.status is not Status.PASSED:
            wrong.append((solution.id, isolated.message, auto.message))
    assert wrong == []
    assert found[Status.UNSUPPORTED] <= MOST_UNSUPPORTED * len(SOLUTIONS), found
