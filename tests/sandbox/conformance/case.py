"""One row of the conformance table, and the ways of writing one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any, Literal

from sandbox.limits import Limits
from sandbox.verdicts.jobs import CallJob, FunctionJob, Job, ProgramJob
from sandbox.verdicts.results import Outcome, Status
from tests.sandbox.conformance.host import Host

Kind = Literal["F", "C", "D", "P"]
Reads = Literal["flag", "exit_code", "stdout"]

SHORT = Limits(cpu_s=1, wall_s=2)
"""Limits of an attack: enough time for a normal answer, short enough for a table with hundreds of rows."""

FORGED = frozenset(Status) - {Status.PASSED, Status.COMPLETED, Status.BAD_TESTS, Status.INFRA_ERROR}
"""Statuses that a forgery may end with: any failure of the code, but neither a pass nor `bad_tests`."""


@dataclass(frozen=True, slots=True)
class Plain:
    """How a forgery passes in the plain harness, which runs code and tests in one process.

    reads        where that harness reads its verdict: a flag set after the last test, the exit code, or the last line printed
    tests_first  whether it puts the tests before the code
    """

    reads: Reads = "flag"
    tests_first: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One attack or legitimate program, with the required result.

    kind      F (forgery): never passes; C: contained, and the next run is clean; D: denied; P: passes
    promise   what must be true, as a sentence; shown if it is not
    job       what to run; built late, because attacks need the paths and secrets that the host has created
    before    a job that runs just before in the same pool
    statuses  the allowed statuses of the outcome
    holds     a further check of outcome and host: returns a sentence if it fails, else None
    skips     tier or backend -> why the row does not apply there
    plain     for a forgery: how it passes in the plain harness, or why it cannot
    packages  whether it runs in an engine that offers packages, which has other memory limits
    outside   for an escape: whether it may run without a sandbox, to show that it works there
    """

    id: str
    kind: Kind
    promise: str
    job: Callable[[Host], Job]
    statuses: frozenset[Status]
    before: Callable[[Host], Job] | None = None
    holds: Callable[[Outcome, Host], str | None] = lambda outcome, host: None
    skips: Mapping[str, str] = field(default_factory=dict)
    plain: Plain | str = ""
    outside: bool = False
    packages: bool = False

    def complaint(self, outcome: Outcome, host: Host) -> str | None:
        """Return why the result is not the required one; None if it is."""
        if outcome.status not in self.statuses:
            wanted = ", ".join(sorted(self.statuses))
            return f"{self.promise} Wanted {wanted}; got {outcome.status}: {outcome.message}\n{outcome!r}"
        trouble = self.holds(outcome, host)
        return f"{self.promise} {trouble}\n{outcome!r}" if trouble else None

    def why_not_on(self, backend: str, tier: str) -> str | None:
        """Return the reason for skipping the row on a backend and tier; None if it applies."""
        return self.skips.get(tier) or self.skips.get(backend)


Tests = str | list[str] | list[dict[str, Any]]

ADD_TESTS: dict[str, Tests] = {
    "literal": "def check(candidate):\n    assert candidate(2, 3) == 5\n    assert candidate(40, 2) == 42\n",
    "judged": dedent("""
        def check(candidate):
            for a, b in ((2, 3), (40, 2)):
                assert candidate(a, b) == sum((a, b))
        """),
    "lines": ["assert add(2, 3) == 5", "assert add(40, 2) == 42"],
    "rows": [{"args": [2, 3], "expect": 5}, {"args": [40, 2], "expect": 42}],
    "unittest": dedent("""
        import unittest
        class AddTest(unittest.TestCase):
            def test_small(self):
                self.assertEqual(add(2, 3), 5)
            def test_large(self):
                self.assertTrue(add(40, 2) == 42)
        """),
}
"""The same tests of `add` in every form, because each form is executed differently."""


def function_job(code: str, tests: Tests, entry_point: str = "add", **options: Any) -> FunctionJob:
    """A FunctionJob with short limits; tests that name the functions themselves get no entry point."""
    names_them = isinstance(tests, str) and "def check(" not in tests
    names_them = names_them or (isinstance(tests, list) and isinstance(tests[0], str))
    options.setdefault("limits", SHORT)
    return FunctionJob(dedent(code), None if names_them else entry_point, tests, **options)


def program_job(code: str, limits: Limits = SHORT, **options: Any) -> ProgramJob:
    """A ProgramJob with short limits."""
    return ProgramJob(dedent(code), limits=limits, **options)


def call_job(code: str, function: str, *args: Any, limits: Limits = SHORT, **options: Any) -> CallJob:
    """A CallJob of one file, `tools.py`, with short limits."""
    files = {"tools.py": dedent(code).encode()}
    return CallJob(files=files, module="tools.py", function=function, args=list(args), limits=limits, **options)
