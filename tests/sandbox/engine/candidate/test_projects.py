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


@pytest.mark.parametrize("path", ["json.py", "random/__init__.py", "engine.py"])
@pytest.mark.parametrize(("operator", "status"), [("+", Status.PASSED), ("-", Status.ASSERTION)])
def test_module_of_a_project_named_like_an_imported_module(
    pool: Pool, operator: str, status: Status, path: str
) -> None:
    module = path.removesuffix(".py").partition("/")[0]
    files = {
        path: f"import re, enum, asyncio\ndef add(a, b):\n    return a {operator} b".encode(),
        "main.py": f"from {module} import add".encode(),
    }
    tests = "def check(candidate):\n    for x in (1, 2): assert candidate(x, 2) == x + 2"
    for entry_point in (f"{module}:add", "main:add"):
        assert run(pool, "", tests, entry_point, files=files).status is status
        assert run(pool, "", tests, entry_point, files=files, trust="in_process").status is Status.UNSUPPORTED


@pytest.mark.parametrize("trust", ["isolated", "in_process"])
@pytest.mark.parametrize(
    "tests",
    [
        "from solution import add\ndef test_add():\n    assert add(1, 2) == 3",
        "import solution\ndef test_add():\n    assert solution.add(1, 2) == 3",
        "from solution import *\nfor x in (1, 2): assert add(x, 2) == x + 2",
        ["from solution import add\nassert add(1, 2) == 3"],
    ],
)
@pytest.mark.parametrize(("operator", "status"), [("+", Status.PASSED), ("-", Status.ASSERTION)])
def test_tests_import_the_code_as_solution(
    pool: Pool, operator: str, status: Status, tests: str | list[str], trust: str
) -> None:
    code = f"def add(a, b):\n    return a {operator} b"
    for entry_point in (None, "add"):
        assert run(pool, code, tests, entry_point, trust=trust).status is status


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


FORGED_UNITTEST = b"""
import sys
project = sys.path.pop(0)
del sys.modules["unittest"]
import unittest
unittest.TestCase.assertEqual = lambda *arguments: None
sys.path.insert(0, project)
"""


@pytest.mark.parametrize("trust", ["isolated", "auto", "in_process"])
def test_module_of_a_project_does_not_replace_unittest(pool: Pool, trust: str) -> None:
    tests = (
        "import unittest\nfrom calc import add\n"
        "class TestAdd(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)"
    )
    files = {"calc.py": b"def add(a, b):\n    return 0", "unittest.py": FORGED_UNITTEST}
    assert run(pool, "", tests, "calc:add", files=files, trust=trust).status is Status.ASSERTION


@pytest.mark.parametrize("trust", ["isolated", "auto", "in_process"])
def test_module_of_a_project_does_not_replace_a_module_that_tests_import(pool: Pool, trust: str) -> None:
    tests = "import operator\nfrom calc import add\ndef test_add():\n    assert operator.eq(add(1, 2), 3)"
    files = {"calc.py": b"def add(a, b):\n    return 0", "operator.py": b"def eq(a, b):\n    return True"}
    required = Status.UNSUPPORTED if trust == "in_process" else Status.ASSERTION
    assert run(pool, "", tests, "calc:add", files=files, trust=trust).status is required
