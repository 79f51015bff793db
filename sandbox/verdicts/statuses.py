"""From what a run said and how it ended to a status and a sentence."""

import reprlib
from typing import Any

from sandbox.connections.engine_connection import Ended
from sandbox.limits import Limits
from sandbox.verdicts.results import Failure, Outcome, Status

_SHOWN = 400  # characters of any value or test that a failure shows

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 200
_repr.maxlist = _repr.maxtuple = _repr.maxset = _repr.maxdict = 20
_repr.maxlevel = 6

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

# The kernel counts a limit in ticks and may kill a good tenth before the time that it reports in the end.
_NEARLY_ALL = 0.75


class InfrastructureFailed(Exception):
    """The sandbox could not run the code; the message says why."""


def shown(value: Any) -> str:
    """A value as text of sane length."""
    try:
        return cut(_repr.repr(value))
    except Exception:  # such as an integer too long for decimal digits
        return f"<{type(value).__name__}>"


def cut(text: str) -> str:
    """`text`, or its beginning and an ellipsis."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def of_exception(error: dict[str, Any], limits: Limits) -> tuple[Status, str]:
    """Status and sentence for an exception that the code let through."""
    kind, message = str(error.get("type", "Exception")), str(error.get("message", ""))
    if error.get("builtin") == "MemoryError":
        return Status.MEMORY_LIMIT, f"The code needed more than {limits.memory_mb} MiB."
    if error.get("builtin") == "SystemExit":
        return Status.EXITED, "The code tried to end its process (SystemExit)."
    where = f" (line {error['line']})" if isinstance(error.get("line"), int) else ""
    return Status.EXCEPTION, cut(f"The code raised {kind}{': ' if message else ''}{message}{where}")


def of_definition(report: dict[str, Any], limits: Limits) -> tuple[Status, str]:
    """Status and sentence for code that could not be defined."""
    if "missing" in report:
        return Status.MISSING_ENTRY_POINT, f"The code defines no {cut(str(report['missing']))}."
    if "syntax" in report:
        error = report["syntax"]
        return Status.SYNTAX_ERROR, cut(f"The code does not compile: {error['message']} (line {error['line']}).")
    return of_exception(report["raised"] if "raised" in report else report["crashed"], limits)


def of_end(end: Ended, limits: Limits) -> tuple[Status, str] | None:
    """Status and sentence for a run that was ended, or ended itself, from the outside; None if it merely ended.

    Raises InfrastructureFailed where the code was never started.
    """
    if not end.begun and end.why != "asked":
        raise InfrastructureFailed(end.fault or f"the run ended before its code was started (exit code {end.code})")
    if end.why == "wall":
        return Status.TIMEOUT, f"The code was still running after {limits.wall:g} seconds."
    if end.why == "disk":
        return Status.DISK_LIMIT, "The code wrote more to disk than allowed."
    if end.why == "memory":
        return Status.MEMORY_LIMIT, f"The code and its child processes needed more than {limits.memory_mb} MiB."
    if end.why == "large":
        return Status.OUTPUT_LIMIT, "The code sent more at once than allowed."
    if end.code in (-9, -24) and end.why != "asked" and end.cpu_ms >= _NEARLY_ALL * limits.cpu_s * 1000:
        return Status.TIMEOUT, f"The code used up its {limits.cpu_s:g} seconds of processor time."
    if end.code == -9 and end.why != "asked" and end.peak_mb >= 0.8 * limits.memory_mb:
        return Status.MEMORY_LIMIT, "The code was killed, most likely for the memory it used."
    if end.code < 0 and end.why != "asked":
        name = _SIGNALS.get(-end.code, f"signal {-end.code}")
        return Status.EXITED, f"The process died by {name}."
    return None


def left_early(end: Ended) -> tuple[Status, str]:
    """Status and sentence for code that ended its process while something was still wanted of it."""
    return Status.EXITED, f"The code ended its process with exit code {end.code} before it had answered."


def failure(test: str, expected: str = "", got: str = "", line: int | None = None) -> Failure:
    """A Failure with its texts cut."""
    return Failure(cut(test), cut(expected), cut(got), line)


def outcome(status: Status, message: str, end: Ended, *, backend: str, tier: str, **more: Any) -> Outcome:
    """An Outcome with the figures of the run that `end` closes."""
    return Outcome(
        status=status,
        message=message,
        stdout=end.stdout.decode("utf-8", "replace"),
        stderr=end.stderr.decode("utf-8", "replace"),
        output_cut=end.cut,
        cpu_ms=end.cpu_ms,
        wall_ms=end.wall_ms,
        peak_mb=end.peak_mb,
        backend=backend,
        tier=tier,
        **{"exit_code": end.code, **more},
    )
