"""The outcome of a job: a status, a message, and the figures of the run."""

from dataclasses import asdict, dataclass
from enum import StrEnum


class Status(StrEnum):
    """How a run ended. Only `passed` (tests) and `completed` (programs and calls) are successes."""

    PASSED = "passed"
    COMPLETED = "completed"  # a program or call ran to its end; the caller judges its output
    ASSERTION = "assertion"  # a test failed
    EXCEPTION = "exception"  # the code raised
    SYNTAX_ERROR = "syntax_error"  # the code does not compile
    MISSING_ENTRY_POINT = "missing_entry_point"  # the code does not define the function
    TIMEOUT = "timeout"  # the limit of processor time or time on the clock was reached
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"  # a returned value or message was larger than allowed
    DISK_LIMIT = "disk_limit"  # too many bytes or files written
    EXITED = "exited"  # the process ended itself, or was ended by a signal
    TAMPERED = "tampered"  # the code interfered with the protocol or with the tests
    BAD_TESTS = "bad_tests"  # the tests themselves are broken; no verdict about the code
    UNSUPPORTED = "unsupported"  # the tests need the process of the code; no verdict about the code
    NOT_JSON = "not_json"  # a call returned a value that JSON cannot represent
    INFRA_ERROR = "infra_error"  # the sandbox failed; no verdict about the code


@dataclass(frozen=True, slots=True)
class Failure:
    """The first test that failed. Each text is cut to MAX_SHOWN_LENGTH; values are shown as `repr`."""

    test: str = ""
    expected: str = ""
    got: str = ""
    line: int | None = None  # in the text of the tests, from 1


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The fields of an outcome that do not depend on the figures of the run. They mean what they mean in `Outcome`."""

    status: Status
    message: str
    passed: int = 0
    total: int = 0
    failure: Failure | None = None
    value: object = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one job.

    passed, total   asserts or tests that passed, and that were executed
    value           the JSON result of a CallJob
    cpu_ms, peak_mb of the process that ran the code, including its start (about 2 ms, 15 MiB)
    wall_ms         of the job, without waiting for a free engine
    tier            isolation tier of the run: A, B or C; "" if the code never ran
    trust           isolated, or in_process if tests and code shared a process
    trust_reason    why a job with `trust: auto` was judged in_process
    """

    status: Status
    message: str = ""
    passed: int = 0
    total: int = 0
    failure: Failure | None = None
    value: object = None
    stdout: str = ""
    stderr: str = ""
    output_cut: bool = False
    exit_code: int | None = None  # minus the number of the signal, if one ended the process
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
        """Whether the outcome is a verdict about the code, rather than about its tests or the sandbox."""
        return self.status not in (Status.BAD_TESTS, Status.UNSUPPORTED, Status.INFRA_ERROR)

    def to_json(self) -> dict[str, object]:
        """Return plain JSON, for storing."""
        fields: dict[str, object] = {name: getattr(self, name) for name in Outcome.__slots__}
        return fields | {"status": self.status.value, "failure": asdict(self.failure) if self.failure else None}
