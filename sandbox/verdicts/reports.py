"""The reports that runs may send. Any other report is tampering, because the engine never sends it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from sandbox.engine.protocol import codec
from sandbox.engine.protocol.error_reports import ErrorReport
from sandbox.engine.protocol.replies import is_anything, is_count, is_error, is_line, is_text
from sandbox.limits import MAX_REPORT_BYTES

Report = dict[str, object]
Shapes = Mapping[str, Callable[[object], bool]]
"""The keys that a report may have, of which it has exactly one, and a check of the value of each."""

DEFINITION: Shapes = {
    "defined": lambda value: value is True,
    "missing": is_text,
    "syntax": is_error,
    "raised": is_error,
    "crashed": is_error,
}
ANSWER: Shapes = {"value": is_anything, "error": is_error, "large": is_count, "crashed": is_error}
PROGRAM: Shapes = {"syntax": is_error, "raised": is_error, "crashed": is_error}
CALL: Shapes = {
    "value": is_text,
    "not_json": is_text,
    "large": is_count,
    "missing": is_text,
    "syntax": is_error,
    "raised": is_error,
    "crashed": is_error,
}


@dataclass(frozen=True, slots=True)
class FailureReport:
    """The first failed test, as a judge reports it. `kind` is a key of `_FAILURES`."""

    kind: str
    message: str
    test: str
    expected: str
    got: str
    line: int | None
    error: ErrorReport | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge reports: counts and the first failure, or why the tests could not be run."""

    passed: int = 0
    total: int = 0
    failure: FailureReport | None = None
    bad_tests: str | None = None
    crashed: ErrorReport | None = None


def parse_report(payload: bytes, limit: int = MAX_REPORT_BYTES) -> Report:
    """Decode a report of at most `limit` bytes. Raises codec.CodecError.

    Decoded, it needs some forty times as much memory.
    """
    if len(payload) > limit:
        raise codec.CodecError(f"a report of {len(payload)} bytes")
    report = codec.loads(payload)
    if not isinstance(report, dict):
        raise codec.CodecError("a report that is no object")
    return report


def check_report(report: Report, shapes: Shapes) -> Report:
    """Return the report if it has exactly one of the keys in `shapes`, with a valid value. Raises codec.CodecError."""
    keys = [key for key in report if key in shapes]
    if len(keys) != 1 or not report.keys() <= {keys[0], "n"} or not shapes[keys[0]](report[keys[0]]):
        raise codec.CodecError("a report of the wrong shape")
    return report


def check_answer(report: Report, number: int) -> Report:
    """Return the report if it answers call `number`. Raises codec.CodecError."""
    if report.get("n") != number and "crashed" not in report:
        raise codec.CodecError("an answer that was not requested")
    return check_report(report, ANSWER)


def read_error(value: object) -> ErrorReport:
    """Return an exception that a report describes. Raises codec.CodecError."""
    if not is_error(value):
        raise codec.CodecError("an exception of the wrong shape")
    return cast(ErrorReport, value)


def read_number(value: object) -> int:
    """Return a count that a report contains. Raises codec.CodecError."""
    if not isinstance(value, int):
        raise codec.CodecError("a count that is no number")
    return value


_TEXTS = ("message", "test", "expected", "got")
_NO_CHECK = ("gone", "assertion", "missing", "tampered", "unsupported")
_WITH_ERROR = ("raised", "test_error", "bad_tests")
_FAILURES: dict[str, Callable[[Report], bool]] = {
    **dict.fromkeys(_NO_CHECK, lambda failure: True),
    "large": lambda failure: str(failure.get("message", "")).isdecimal(),
    **dict.fromkeys(_WITH_ERROR, lambda failure: is_error(failure.get("error"))),
}


def read_verdict(report: Report) -> Verdict:
    """Return the verdict of a judge, or of code that shares a process with its tests. Raises codec.CodecError."""
    if "bad_tests" in report and is_text(report["bad_tests"]):
        return Verdict(bad_tests=str(report["bad_tests"]))
    if "crashed" in report:
        return Verdict(crashed=read_error(check_report(report, PROGRAM)["crashed"]))
    passed, total = report.get("passed"), report.get("total")
    if not (isinstance(passed, int) and is_count(passed) and isinstance(total, int) and is_count(total)):
        raise codec.CodecError("a verdict of the wrong shape")
    if "failure" not in report:
        raise codec.CodecError("a verdict of the wrong shape")
    return Verdict(passed, total, None if report["failure"] is None else _read_failure(report["failure"]))


def _read_failure(failure: object) -> FailureReport:
    if not isinstance(failure, dict) or not is_line(failure.get("line")):
        raise codec.CodecError("a verdict of the wrong shape")
    kind, *texts = (failure.get(key, "") for key in ("kind", *_TEXTS))
    if not (is_text(kind) and all(map(is_text, texts)) and kind in _FAILURES and _FAILURES[kind](failure)):
        raise codec.CodecError("a verdict of the wrong shape")
    message, test, expected, got = texts
    error = read_error(failure["error"]) if kind in _WITH_ERROR else None
    return FailureReport(kind, message, test, expected, got, failure.get("line"), error)
