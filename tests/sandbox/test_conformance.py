"""The conformance table on every backend and tier that is available on this machine."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sandbox.verdicts.jobs import FunctionJob, ProgramJob
from tests.sandbox.conformance import __main__ as report
from tests.sandbox.conformance.bench import SETUPS, Bench, Setup, bench, complaint_of, why_left_out
from tests.sandbox.conformance.case import ADD_TESTS, Case, Plain, function_job
from tests.sandbox.conformance.host import Host
from tests.sandbox.conformance.legitimate import PASSED
from tests.sandbox.conformance.plain import plain_passes
from tests.sandbox.conformance.table import TABLE


@pytest.fixture(scope="module")
def bench_of() -> Iterator[Callable[[Setup], Bench]]:
    """Return a function that opens the bench of a setup. Successive rows of one setup share it."""
    with ExitStack() as stack:
        opened: list[Bench] = []

        def get_bench(setup: Setup) -> Bench:
            if not opened or opened[0].setup != setup:
                opened.clear()
                stack.close()
                opened.append(stack.enter_context(bench(setup)))
            return opened[0]

        yield get_bench


# What older versions of Landlock do not deny by themselves: the ordinary suite tries these rows under each version.
OLDER_KERNELS = frozenset(
    {
        "changes-a-file",
        "kill",
        "locks",
        "reads-the-home",
        "signal-by-descriptor",
        "signal-by-owner",
        "truncates-a-file",
        "writes",
        "writes-the-engine",
    }
)


FORGERIES = [case for case in TABLE if case.kind == "F"]


def _rows(setup: Setup) -> list[Case]:
    """Return the rows to test on *setup*; `python -m tests.sandbox.conformance` tests all rows.

    The strongest tier (A) tests every forgery. All tiers and backends judge with the same code, so each of the others
    tests a different quarter of the forgeries. Older versions of Landlock affect only what is denied (kind D), and
    neither limits of resources (kind C) nor forgeries. A slow row is tested on SLOW_ON.
    """
    if setup.landlock_abi is not None:
        denied = [case for case in TABLE if case.kind == "D"]
        return denied + [case for case in TABLE if case.kind == "P"][::4]
    rows = [case for case in TABLE if case.id not in SLOW or setup.name == SLOW_ON]
    if setup.relayed:
        return rows[::8]
    if setup.name in FORGERIES_SHARED:
        own = FORGERIES[FORGERIES_SHARED.index(setup.name) :: len(FORGERIES_SHARED)]
        return [*(case for case in rows if case.kind != "F"), *own]
    return rows


FORGERIES_SHARED = ["local-B", "local-C", "docker-B", "socket-B"]


def _is_exhaustive(setup: Setup, case: Case) -> bool:
    if setup.landlock_abi is not None:
        return case.id.split("/")[0] not in OLDER_KERNELS
    return case.id in SLOW or case.id in RARE


SLOW = frozenset({"many-large-answers"})  # half a minute each
SLOW_ON = "docker-B"
# Many forgeries, and many attacks on resources (kind C), are alike. The ordinary suite tries every sixth of the former
# and every second of the latter.
RESOURCES = [case for case in TABLE if case.kind == "C"]
RARE = frozenset(case.id for i, case in enumerate(FORGERIES) if i % 6) | {case.id for case in RESOURCES[1::2]}
PROMISES = [
    pytest.param(
        setup,
        case,
        marks=[pytest.mark.exhaustive] if _is_exhaustive(setup, case) else [],
        id=f"{setup.name}-{case.kind}-{case.id}",
    )
    for setup in SETUPS
    for case in _rows(setup)
]


@pytest.mark.parametrize(("setup", "case"), PROMISES)
def test_expected_result_of_each_row_on_each_backend(
    setup: Setup, case: Case, bench_of: Callable[[Setup], Bench]
) -> None:
    engines = bench_of(setup)
    reason = why_left_out(case, engines.setup, engines.host)
    if reason:
        pytest.skip(reason)
    complaint = complaint_of(case, engines)
    assert complaint is None, complaint


PASSING_IN_PLAIN_HARNESS = [case for case in TABLE if isinstance(case.plain, Plain)]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host() as planted:
        yield planted


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", PASSING_IN_PLAIN_HARNESS, ids=lambda case: case.id)
def test_forgery_passes_in_plain_harness(case: Case, host: Host, tmp_path: Path) -> None:
    job = case.job(host)
    assert isinstance(job, FunctionJob) and isinstance(case.plain, Plain)
    assert plain_passes(job, case.plain, tmp_path), "The plain harness is not fooled, so the row proves nothing."


def test_forgery_has_plain_harness_result_or_reason() -> None:
    assert [case.id for case in FORGERIES if not case.plain] == []


@pytest.mark.parametrize("reads", ["flag", "exit_code", "stdout"])
@pytest.mark.parametrize("form", ADD_TESTS)
def test_plain_harness_passes_right_and_fails_wrong_solution(reads: str, form: str, tmp_path: Path) -> None:
    right = function_job("def add(a, b): return a + b\n", ADD_TESTS[form])
    wrong = function_job("def add(a, b): return 0\n", ADD_TESTS[form])
    assert plain_passes(right, Plain(reads), tmp_path)  # type: ignore[arg-type]
    assert not plain_passes(wrong, Plain(reads), tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", [case for case in TABLE if case.outside], ids=lambda case: case.id)
@pytest.mark.skipif(os.geteuid() != 0, reason="Without a sandbox only root can do all that the escapes try.")
def test_escape_succeeds_without_sandbox(case: Case, tmp_path: Path) -> None:
    with Host() as planted:
        managed = _let_loose(case.job(planted), tmp_path)
    assert managed, "Nothing came of it without a sandbox either, so the row proves nothing."


def _let_loose(job: object, folder: Path) -> list[str]:
    """What a program manages as an ordinary process that holds a descriptor of a file."""
    assert isinstance(job, ProgramJob)
    with (folder / "held").open("w+") as held:
        run = subprocess.run(
            [sys.executable, "-c", job.code], cwd=folder, stdin=held, capture_output=True, text=True, timeout=20
        )
    assert "Traceback" not in run.stderr, run.stderr
    return json.loads(run.stdout) if run.stdout else []


def test_rows_have_unique_names_and_expected_results() -> None:
    assert len({case.id for case in TABLE}) == len(TABLE)
    assert all(case.promise.endswith(".") for case in TABLE)


def test_table_lists_passed_and_skipped_rows() -> None:
    promised = Case(
        "x", "P", "It passes.", lambda host: function_job("def add(a, b): return 0", ADD_TESTS["literal"]), PASSED
    )
    kept = [case for case in TABLE if case.id == "correct/literal"]
    result = report.run(SETUPS[2], [*kept, promised, *(case for case in TABLE if case.id == "tcp/program")])
    first, line, reason, broken, *_ = report.table([result]).splitlines()
    assert "P passes" in first and line.split() == ["local-C", "0", "0", "0", "1", "1", "1"]
    assert reason == "local-C: 1 left out: Tier C guarantees the verdict and limits, not containment."
    assert broken.startswith("local-C: BROKEN P x: It passes.")
