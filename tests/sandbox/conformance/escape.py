"""Rows for escapes: code whose `attempt()` lists what succeeded, run by each kind of process of the sandbox."""

import json
from collections.abc import Callable, Mapping
from string import Template
from textwrap import dedent

from sandbox.limits import Limits
from sandbox.verdicts.jobs import Job
from sandbox.verdicts.results import Outcome, Status
from tests.sandbox.conformance.case import Case, call_job, function_job, program_job
from tests.sandbox.conformance.host import Host

NO_CONTAINMENT_IN_C = {"C": "Tier C guarantees the verdict and limits, not containment."}
DENIED = frozenset({Status.COMPLETED})
DENIED_OR_KILLED = frozenset({Status.COMPLETED, Status.EXITED})

PRELUDE = """
import ctypes, os, socket, stat, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
managed = []
def trying(what, action, *args):
    try:
        action(*args)
    except OSError:
        return
    managed.append(what)
def calling(what, number, *args):
    padded = [ctypes.c_long(a) if isinstance(a, int) else a for a in args] + [ctypes.c_long(0)] * (6 - len(args))
    if libc.syscall(ctypes.c_long(number), *padded) >= 0:
        managed.append(what)
"""

AS_JUDGE = """
def check(candidate):
    for managed in [attempt()]:
        assert managed == []
    assert candidate() == 1
"""

FAMILY = Limits(cpu_s=1, wall_s=2, processes=4)


def escape_code(code: str, host: Host) -> str:
    """Return the code with the host's secrets, paths and numbers in place of $names."""
    names = {
        "secret": host.secret,
        "home": str(host.home),
        "tcp_port": host.tcp_port,
        "udp_port": host.udp_port,
        "abstract": host.abstract,
        "shm_key": host.shm_key,
        "victim": host.victim_pid,
    }
    return PRELUDE + Template(dedent(code)).safe_substitute(names)


def _as_program(code: str, limits: Limits | None = None) -> Job:
    program = code + "\nimport json\nprint(json.dumps(attempt()))\n"
    return program_job(program, limits) if limits else program_job(program)


def _as_candidate(code: str) -> Job:
    return function_job(code, "def check(candidate):\n    assert candidate() == []\n", "attempt")


def _as_judge(code: str) -> Job:
    return function_job("def f(): return 1\n", code + dedent(AS_JUDGE), "f")


def _as_call(code: str) -> Job:
    return call_job(code, "attempt")


def _managed(outcome: Outcome, host: Host) -> str | None:
    """Return a sentence if the attempt reports success or the host was changed."""
    if outcome.status is Status.COMPLETED:
        managed = outcome.value if outcome.value is not None else json.loads(outcome.stdout)
        if managed:
            return f"It managed: {', '.join(managed)}."
    return host.damage()


def escape(
    id: str,
    promise: str,
    code: str,
    *,
    statuses: frozenset[Status] = DENIED,
    skips: Mapping[str, str] = NO_CONTAINMENT_IN_C,
    before: str = "",
    outside: bool = False,
    family: bool = True,
) -> list[Case]:
    """Return a row for each kind of process that runs untrusted code: program, program with child processes, candidate,
    judge and call. The last two run a bundle's code, which is no more trusted than a model's.

    family   whether the promise holds for programs with children as well
    outside  whether the attempt may also be made without a sandbox: it then only touches what `Host` has planted
    """
    first: Callable[[Host], Job] | None = (lambda host: program_job(escape_code(before, host))) if before else None
    in_tests = (statuses - DENIED) | {Status.PASSED}
    if Status.EXITED in statuses:
        in_tests |= {Status.BAD_TESTS, Status.TAMPERED}  # a test judge that ends is the fault of the tests
    roles: dict[str, tuple[Callable[[str], Job], frozenset[Status], Mapping[str, str]]] = {
        "program": (_as_program, statuses, skips),
        "family": (lambda text: _as_program(text, FAMILY), statuses, skips),
        "candidate": (_as_candidate, in_tests, skips),
        "judge": (_as_judge, in_tests, skips),
        "call": (_as_call, statuses, skips),
    }
    return [
        Case(
            f"{id}/{role}",
            "D",
            promise,
            lambda host, build=build: build(escape_code(code, host)),  # type: ignore[misc]
            allowed,
            before=first,
            holds=_managed,
            skips=why,
            outside=outside and role == "program",
        )
        for role, (build, allowed, why) in roles.items()
        if family or role != "family"
    ]
