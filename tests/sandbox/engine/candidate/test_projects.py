"""Projects of files: modules whose functions are tested."""

import pytest

from sandbox.client.pool import Pool
from sandbox.verdicts.results import Status
from tests.sandbox.engine.test_judge.test_running_tests import run


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(
    "tests", ["assert add(1, 2) == 3", "from solution import add\ndef test_add():\n    assert add(1, 2) == 3"]
)
@pytest.mark.parametrize(("operator", "status"), [("+", Status.PASSED), ("-", Status.ASSERTION)])
def test_module_of_a_project_may_be_named_solution(
    pool: Pool, operator: str, status: Status, tests: str, trust: str
) -> None:
    source = f"def add(a, b):\n    return a {operator} b".encode()
    files = {"solution.py": source, "main.py": b"from solution import add"}
    for entry_point in ("solution:add", "main:add"):
        assert run(pool, "", tests, entry_point, files=files, trust=trust).status is status


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize("tests", ["assert Sums.add(1, 2) == 3", "total = Sums.add(1, 2)\nassert total == 3"])
@pytest.mark.parametrize(("operator", "status"), [("+", Status.PASSED), ("-", Status.ASSERTION)])
def test_tests_name_the_class_of_an_entry_point(
    pool: Pool, operator: str, status: Status, tests: str, trust: str
) -> None:
    source = f"class Sums:\n    @staticmethod\n    def add(a, b):\n        return a {operator} b"
    assert run(pool, source, tests, "Sums.add", trust=trust).status is status
    files = {"calc.py": source.encode()}
    assert run(pool, "", tests, "calc:Sums.add", files=files, trust=trust).status is status
