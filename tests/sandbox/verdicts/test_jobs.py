"""Invalid jobs and limits raise ValueError with a sentence."""

from typing import Any

import pytest

from sandbox.limits import Limits
from sandbox.verdicts.jobs import CallJob, FunctionJob, ProgramJob


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cpu_s": 0}, "cpu_s must be between"),
        ({"cpu_s": float("nan")}, "cpu_s must be a number"),
        ({"memory_mb": 1}, "memory_mb must be between"),
        ({"memory_mb": 100.5}, "whole number"),
        ({"processes": -1}, "processes must be between"),
        ({"descriptors": True}, "descriptors must be a number"),
    ],
)
def test_limits_out_of_range_are_rejected(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Limits(**options)


def test_wall_limit_defaults_to_three_times_cpu_limit() -> None:
    assert Limits(cpu_s=4).wall == 14
    assert Limits(cpu_s=4, wall_s=1).wall == 1
    assert Limits(cpu_s=4).to_json()["wall_s"] == 14


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tests": ""}, "tests must not be empty"),
        ({"tests": []}, "not empty"),
        ({"tests": [{"args": [1]}]}, "Test 1 must be a mapping with 'expect'"),
        ({"tests": [{"args": 1, "expect": 1}]}, "'args' must be a list"),
        ({"tests": [{"expect": 1}], "entry_point": None}, "need an entry_point"),
        ({"entry_point": "a b"}, "entry_point must be"),
        ({"entry_point": "mod:"}, "entry_point must be"),
        ({"code": b"x"}, "code must be text"),
        ({"trust": "full"}, "trust must be"),
        ({"files": {"../x.py": b""}}, "must be relative"),
        ({"files": {"/x.py": b""}}, "must be relative"),
        ({"files": {"x.py": "text"}}, "must be bytes"),
    ],
)
def test_invalid_function_job_raises_value_error(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        FunctionJob(**{"code": "", "entry_point": "f", "tests": ["assert f() == 1"], **options})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"module": "other.py"}, "not among the files"),
        ({"module": "data.txt"}, "must be the path of a .py file"),
        ({"function": "a.b"}, "must be a name"),
        ({"args": [object()]}, "must be JSON"),
        ({"args": [float("inf")]}, "must be JSON"),
    ],
)
def test_invalid_call_job_raises_value_error(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CallJob(**{"files": {"tools.py": b"", "data.txt": b""}, "module": "tools.py", "function": "go", **options})


def test_program_job_rejects_values_that_are_not_text() -> None:
    with pytest.raises(ValueError, match="argv"):
        ProgramJob("", argv=(1,))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stdin must be text"):
        ProgramJob("", stdin=b"")  # type: ignore[arg-type]
