"""Literal tests have the same verdict with and without a test judge."""

import json
import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sandbox.client.pool import Pool
from sandbox.verdicts import execution
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.literal.plans import plan_job
from sandbox.verdicts.results import Outcome

CATALOG = Path(__file__).resolve().parents[3] / "hub" / "catalog"

VALUES = [
    "0", "1", "-1", "2.5", "-0.0", "True", "None", "''", "'ab'", "b'x'", "[]", "[1, 2]", "(1, 2)", "{1, 2}",
    "{'a': 1}", "[[1], (2,)]", "float('nan')", "float('inf')", "10**30", "1+2j", "range(3)", "frozenset({1})",
    "lambda: 1", "iter([1])", "object()", "int", "[1.0, True]", "(x for x in [1])",
]  # fmt: skip
TESTS = [
    "f() == {0}", "f() != {0}", "f() is None", "f() is not True", "f()", "not f()", "f() in [{0}]", "1 in f()",
    "f() < 2", "f() >= 'a'", "len(f()) == 2", "sorted(f()) == [1, 2]", "list(f()) == [1, 2]", "set(f()) == {{1, 2}}",
    "abs(f() - 1) < 1e-6", "round(f(), 1) == 2.5", "isinstance(f(), list)", "type(f()) == int", "f() + f() == {0}",
    "math.isclose(f(), 2.5)", "f() * 2 == [1, 2, 1, 2]", "-f() == 1", "(f(), 1) == ({0}, 1)", "tuple(f()) == (1, 2)",
]  # fmt: skip
LITERALS = ["0", "1", "2.5", "True", "None", "'ab'", "[1, 2]", "(1, 2)", "{1, 2}", "{'a': 1}", "[1, True]"]


def generated_jobs() -> Iterator[FunctionJob]:
    """Each form of test with each value that the code may return, with an expected value chosen by a fixed seed."""
    choose = random.Random(7)
    for value in VALUES:
        for test in TESTS:
            expected = choose.choice([value, *LITERALS]) if value in LITERALS else choose.choice(LITERALS)
            yield FunctionJob(f"def f(): return {value}", "f", [f"assert {test.format(expected)}"], "import math")


def read_rows(environment: str, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CATALOG / environment / name).read_text(encoding="utf-8").splitlines()]


def catalog_jobs() -> Iterator[FunctionJob]:
    """Gold and wrong answers of python-functions, and the defective projects of code-repair."""
    cases = {case["id"]: case for case in read_rows("python-functions", "cases.jsonl")}
    for answer in read_rows("python-functions", "gold.jsonl") + read_rows("python-functions", "wrong.jsonl"):
        case = cases[answer["case"]]
        code = re.sub(r"^```(python)?|```$", "", answer["content"].strip(), flags=re.MULTILINE)
        if case["tests"] and code.strip():
            yield FunctionJob(code, case["entry_point"], case["tests"], prompt=case["prompt"])
    for case in read_rows("code-repair", "cases.jsonl"):
        files = {path: text.encode() for path, text in case["files"].items()}
        yield FunctionJob("", case["entry_point"], case["tests"], files=files)


def find_disagreements(pool: Pool, jobs: list[FunctionJob], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    here = run_all(pool, jobs)
    monkeypatch.setattr(execution, "plan_job", lambda job: None)
    by_judge = run_all(pool, jobs)
    return [
        f"{job.code}\n{job.tests}\nhere: {ours.status} {ours.message}\njudge: {judged.status} {judged.message}"
        for job, ours, judged in zip(jobs, here, by_judge, strict=True)
        if ours.status is not judged.status or (ours.ok and (ours.passed, ours.total) != (judged.passed, judged.total))
    ]


def run_all(pool: Pool, jobs: list[FunctionJob]) -> list[Outcome]:
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(pool.run, jobs))


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_generated_literal_tests_have_the_verdict_of_the_judge(
    step: int, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job for job in generated_jobs() if plan_job(job) is not None]
    assert len(jobs) > 500
    assert find_disagreements(pool, jobs[::step], monkeypatch) == []


@pytest.mark.exhaustive
def test_literal_tests_of_the_catalog_have_the_verdict_of_the_judge(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job for job in catalog_jobs() if plan_job(job) is not None]
    assert len(jobs) > 300
    assert find_disagreements(pool, jobs, monkeypatch) == []
