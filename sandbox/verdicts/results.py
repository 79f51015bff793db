"""What a run of code came to: a status from a fixed list, a sentence, and the figures."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self


class Status(StrEnum):
    """How a run ended. Only `passed` (tests) and `completed` (programs and calls) are good news."""

    PASSED = "passed"
    COMPLETED = "completed"  # a program or call that ran to its end; its output is for the caller to judge
    ASSERTION = "assertion"  # a test did not hold
    EXCEPTION = "exception"  # the code raised
    SYNTAX_ERROR = "syntax_error"  # the code does not compile
    MISSING_ENTRY_POINT = "missing_entry_point"  # the function asked for is not there
    TIMEOUT = "timeout"  # processor time or the clock ran out
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"  # a returned value or message was larger than allowed
    DISK_LIMIT = "disk_limit"  # too many bytes or files written
    EXITED = "exited"  # the process ended itself, or died by a signal
    TAMPERED = "tampered"  # the code interfered with the protocol or with the tests
    BAD_TESTS = "bad_tests"  # the tests themselves are broken: nothing is said about the code
    UNSUPPORTED = "unsupported"  # isolated judging cannot do what the tests need: nothing is said about the code
    NOT_JSON = "not_json"  # a call returned what JSON cannot hold
    INFRA_ERROR = "infra_error"  # the sandbox failed: nothing is said about the code


@dataclass(frozen=True, slots=True)
class Failure:
    """The first test that failed. Every text is cut to a sane length; values are shown as `repr` text."""

    test: str = ""
    expected: str = ""
    got: str = ""
    line: int | None = None  # in the tests' text, from 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one job.

    passed, total   asserts or tests that held, and that were executed
    value           a CallJob's result, JSON
    cpu_ms, peak_mb of the process that ran the code, its start included (about 2 ms, 15 MiB)
    wall_ms         from lease to verdict, waiting for a free engine not included
    tier            isolation the code ran under: A, B or C; "" where it never ran
    trust           isolated, or in_process where tests and code shared a process
    trust_reason    why the job's `trust: auto` came to in_process
    """

    status: Status
    message: str = ""
    passed: int = 0
    total: int = 0
    failure: Failure | None = None
    value: Any = None
    stdout: str = ""
    stderr: str = ""
    output_cut: bool = False
    exit_code: int | None = None  # negative: minus the signal's number
    cpu_ms: float = 0.0
    wall_ms: float = 0.0
    peak_mb: float = 0.0
    tier: str = ""
    trust: str = "isolated"
    trust_reason: str = ""
    backend: str = ""

    @property
    def ok(self) -> bool:
        """Whether the tests passed, or the program or call ran to its end."""
        return self.status in (Status.PASSED, Status.COMPLETED)

    @property
    def conclusive(self) -> bool:
        """Whether the outcome says something about the code, rather than about its tests or the sandbox."""
        return self.status not in (Status.BAD_TESTS, Status.UNSUPPORTED, Status.INFRA_ERROR)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, for storing."""
        own = {name: getattr(self, name) for name in Outcome.__slots__}
        return own | {"status": self.status.value, "failure": asdict(self.failure) if self.failure else None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        failure = data.get("failure")
        return cls(**{**data, "status": Status(data["status"]), "failure": Failure(**failure) if failure else None})
