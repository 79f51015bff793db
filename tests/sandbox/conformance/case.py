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
"""What an attack gets: long enough for an honest answer, short enough for a table of hundreds."""

FORGED = frozenset(Status) - {Status.PASSED, Status.COMPLETED, Status.BAD_TESTS, Status.INFRA_ERROR}
"""A forgery may end in any way that says the code failed; it may neither pass nor hide behind broken tests."""


@dataclass(frozen=True, slots=True)
class Plain:
    """How the harness that shares one process between code and tests would be fooled.

    reads        where that harness finds its verdict: a flag set after the last test, the exit code, the last line printed
    tests_first  whether it puts the tests before the code
    """

    reads: Reads = "flag"
    tests_first: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One attack or honest program, with what must come of it.

    kind      F never passes; C contained, and the next run clean; D denied; P passes
    promise   what must hold, as a sentence; shown when it does not
    job       what to run; built late, for attacks aim at what the host has planted
    before    a job of another tenant, run just before in the same pool
    statuses  the outcomes that keep the promise
    holds     anything else that must be true of outcome and host: a sentence where it is not, else None
    skips     tier or backend -> why the row does not apply there
    plain     for a forgery: how the plain harness falls for it, or why it cannot
    packages  whether it runs in an engine that offers packages, whose limits of memory are others
    outside   for an escape: whether it may be let loose without a sandbox, to show that it works there
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
        """Why the promise is broken, or None where it is kept."""
        if outcome.status not in self.statuses:
            wanted = ", ".join(sorted(self.statuses))
            return f"{self.promise} Wanted {wanted}; got {outcome.status}: {outcome.message}\n{outcome!r}"
        trouble = self.holds(outcome, host)
        return f"{self.promise} {trouble}\n{outcome!r}" if trouble else None

    def why_not_on(self, backend: str, tier: str) -> str | None:
        """The reason for leaving the row out on a backend at a tier, or None where it applies."""
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
"""The same expectations of `add` in every form a case may bring them, for each takes its own way through the engine."""


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
