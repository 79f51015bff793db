"""Status and message of an outcome, from what a run reported and how it ended."""

import re
import reprlib

from sandbox.connections.engine_connection import EngineConnection
from sandbox.connections.events import RunEnd
from sandbox.engine.protocol.error_reports import ErrorReport
from sandbox.errors import InfrastructureFailed
from sandbox.limits import MAX_SHOWN_LENGTH, Limits
from sandbox.packages import get_versions
from sandbox.verdicts.reports import Report, read_error
from sandbox.verdicts.results import Conclusion, Failure, Outcome, Status

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 200
_repr.maxlist = _repr.maxtuple = _repr.maxset = _repr.maxdict = 20
_repr.maxlevel = 6

_NO_MODULE = re.compile(r"No module named '(\w+)[.']")
_SIGNALS = {
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    24: "SIGXCPU",
    31: "SIGSYS",
}

# The kernel counts processor time in ticks, and may kill a run more than a tenth before the time that it reports.
_CPU_LIMIT_FRACTION = 0.75
_MEMORY_LIMIT_FRACTION = 0.8


def show_value(value: object) -> str:
    """Return a value as text of limited length."""
    try:
        return cut_text(_repr.repr(value))
    except Exception:  # such as an integer with too many decimal digits
        return f"<{type(value).__name__}>"


def cut_text(text: str) -> str:
    """Return `text`, or its beginning and an ellipsis if it is too long."""
    return text if len(text) <= MAX_SHOWN_LENGTH else text[: MAX_SHOWN_LENGTH - 1] + "…"


def status_of_exception(error: ErrorReport, limits: Limits) -> tuple[Status, str]:
    """Return status and message for an exception that the code raised."""
    if error["builtin"] == "MemoryError":
        return Status.MEMORY_LIMIT, f"The code needed more than {limits.memory_mb} MiB."
    if error["builtin"] == "SystemExit":
        return Status.EXITED, "The code tried to end its process (SystemExit)."
    message = f": {error['message']}" if error["message"] else ""
    line = "" if error["line"] is None else f" (line {error['line']})"
    return Status.EXCEPTION, cut_text(f"The code raised {error['type']}{message}{line}") + _describe_missing(error)


def _describe_missing(error: ErrorReport) -> str:
    """Return which package the environment would have to list, if *error* is its failed import; "" otherwise.

    With any package in `packages:`, code can import all that can be listed. The message of the code may be forged.
    """
    found = _NO_MODULE.match(error["message"]) if error["type"] == "ModuleNotFoundError" else None
    if found is None or found[1] not in get_versions():
        return ""
    return f". The `packages:` of the environment do not include {found[1]}."


def status_of_definition(report: Report, limits: Limits) -> tuple[Status, str]:
    """Return status and message for code that could not be defined."""
    if "missing" in report:
        return Status.MISSING_ENTRY_POINT, f"The code defines no {cut_text(str(report['missing']))}."
    if "syntax" in report:
        error = read_error(report["syntax"])
        return Status.SYNTAX_ERROR, cut_text(f"The code does not compile: {error['message']} (line {error['line']}).")
    return status_of_exception(read_error(report["raised"] if "raised" in report else report["crashed"]), limits)


def status_of_end(end: RunEnd, limits: Limits) -> tuple[Status, str] | None:
    """Return status and message for a run that was killed or ended by a signal; None for one that ended normally.

    Raises InfrastructureFailed if the code was never started.
    """
    killed_by_pool = end.reason == "asked"
    if not end.started and not killed_by_pool:
        raise InfrastructureFailed(end.fault or f"the run ended before its code was started (exit code {end.code})")
    if end.reason == "wall":
        return Status.TIMEOUT, f"The code was still running after {limits.wall:g} seconds."
    if end.reason == "disk":
        return Status.DISK_LIMIT, "The code wrote more to disk than allowed."
    if end.reason == "memory":
        return Status.MEMORY_LIMIT, f"The code and its child processes needed more than {limits.memory_mb} MiB."
    if end.reason == "large":
        return Status.OUTPUT_LIMIT, "The code sent more at once than allowed."
    if killed_by_pool:
        return None
    if end.code in (-9, -24) and end.cpu_ms >= _CPU_LIMIT_FRACTION * limits.cpu_s * 1000:
        return Status.TIMEOUT, f"The code used up its {limits.cpu_s:g} seconds of processor time."
    if end.code == -9 and end.peak_mb >= _MEMORY_LIMIT_FRACTION * limits.memory_mb:
        return Status.MEMORY_LIMIT, "The code was killed, most likely for the memory it used."
    if end.code < 0:
        return Status.EXITED, f"The process was ended by {_SIGNALS.get(-end.code, f'signal {-end.code}')}."
    return None


def status_of_early_exit(end: RunEnd) -> tuple[Status, str]:
    """Return status and message for code that ended its process before it had answered."""
    return Status.EXITED, f"The code ended its process with exit code {end.code} before it had answered."


def status_of_tampering(reason: str) -> tuple[Status, str]:
    """Return status and message for code that broke the protocol."""
    return Status.TAMPERED, f"The code interfered with the sandbox: {reason}."


def create_failure(test: str, expected: str = "", got: str = "", line: int | None = None) -> Failure:
    """Return a Failure with its texts cut."""
    return Failure(cut_text(test), cut_text(expected), cut_text(got), line)


def create_outcome(found: Conclusion, end: RunEnd, engine: EngineConnection) -> Outcome:
    """Return the Outcome of a run that ended in *engine*: the conclusion and the figures of the run."""
    return Outcome(
        status=found.status,
        message=found.message,
        passed=found.passed,
        total=found.total,
        failure=found.failure,
        value=found.value,
        stdout=end.stdout.decode("utf-8", "replace"),
        stderr=end.stderr.decode("utf-8", "replace"),
        output_cut=end.cut,
        exit_code=end.code,
        cpu_ms=end.cpu_ms,
        wall_ms=end.wall_ms,
        peak_mb=end.peak_mb,
        backend=engine.transport.backend,
        tier=engine.tier,
    )
