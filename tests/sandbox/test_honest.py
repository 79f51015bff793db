"""No right solution is judged wrong, whatever it is made of and however it is tested."""

from collections import Counter
from textwrap import dedent

import pytest

from sandbox.client.pool import Pool
from sandbox.verdicts.results import Outcome, Status
from tests.sandbox.honest.kind import Honest
from tests.sandbox.honest.table import HONEST, KINDS

SAMPLE = HONEST[::9]
MOST_UNSUPPORTED = 0.05
ids = [honest.id for honest in HONEST]


def judged(pool: Pool, honest: Honest) -> tuple[Outcome, Outcome]:
    """What comes of an honest solution under `isolated`, and under `auto`."""
    isolated = pool.run(honest.job("isolated"))
    return isolated, isolated if isolated.status is Status.PASSED else pool.run(honest.job("auto"))


def test_table_has_500_solutions_in_four_styles() -> None:
    styles = Counter("named" if honest.style == "pytest" else honest.style for honest in HONEST)
    assert len(HONEST) >= 500
    assert set(ids) and len(set(ids)) == len(ids)
    assert styles.keys() == {"check", "named", "rows", "unittest"}
    assert len(KINDS) >= 150


def test_solution_passes_in_plain_python() -> None:
    for honest in (honest for honest in HONEST if honest.style == "pytest"):
        namespace: dict[str, object] = {"__name__": "plain"}
        for text in (honest.kind.prompt, honest.kind.code, honest.kind.setup, str(honest.tests)):
            exec(compile(dedent(text), honest.id, "exec"), namespace)
        for name, function in list(namespace.items()):
            if name.startswith("test_"):
                function()  # type: ignore[operator]


@pytest.mark.parametrize("honest", SAMPLE, ids=lambda honest: honest.id)
def test_right_solution_is_not_judged_wrong(pool: Pool, honest: Honest) -> None:
    isolated, auto = judged(pool, honest)
    assert isolated.status in (Status.PASSED, Status.UNSUPPORTED), isolated
    assert auto.status is Status.PASSED, auto


@pytest.mark.exhaustive
def test_all_right_solutions_pass_or_are_unsupported(pool: Pool) -> None:
    found: Counter[str] = Counter()
    wrong = []
    for honest in HONEST:
        isolated, auto = judged(pool, honest)
        found[isolated.status] += 1
        if isolated.status not in (Status.PASSED, Status.UNSUPPORTED) or auto.status is not Status.PASSED:
            wrong.append((honest.id, isolated.message, auto.message))
    assert wrong == []
    assert found[Status.UNSUPPORTED] <= MOST_UNSUPPORTED * len(HONEST), found
