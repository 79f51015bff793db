"""The shapes of what runs may report. Anything else is tampering: an honest engine sends nothing else."""

from collections.abc import Callable, Mapping
from typing import Any

from sandbox.engine.protocol import codec
from sandbox.engine.protocol.replies import is_anything, is_count, is_error, is_line, is_text

Report = dict[str, Any]
Shapes = Mapping[str, Callable[[Any], bool]]


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


MAX_RESULT = 4 * 1024 * 1024  # bytes of one answer that is compared in this process; a judge compares larger ones
MAX_REPORT = MAX_RESULT + 65_536


def parse(payload: bytes, limit: int = MAX_REPORT) -> Report:
    """A report of at most `limit` bytes as a mapping. Raises codec.CodecError.

    As Python's objects it takes some forty times its bytes.
    """
    if len(payload) > limit:
        raise codec.CodecError(f"a report of {len(payload)} bytes")
    report = codec.loads(payload)
    if not isinstance(report, dict):
        raise codec.CodecError("a report that is no object")
    return report


def checked(report: Report, shapes: Shapes) -> Report:
    """The report, if it says exactly one of the things in `shapes`. Raises codec.CodecError."""
    said = [key for key in report if key in shapes]
    if len(said) != 1 or not report.keys() <= {said[0], "n"} or not shapes[said[0]](report[said[0]]):
        raise codec.CodecError("a report of the wrong shape")
    return report


def checked_answer(report: Report, number: int) -> Report:
    """The answer to call `number`. Raises codec.CodecError."""
    if report.get("n") != number and "crashed" not in report:
        raise codec.CodecError("an answer that was not asked for")
    return checked(report, ANSWER)


_FAILURES: dict[str, Callable[[Report], bool]] = {
    **dict.fromkeys(("gone", "assertion", "missing", "tampered", "unsupported"), lambda failure: True),
    "large": lambda failure: str(failure.get("message", "")).isdecimal(),
    **dict.fromkeys(("raised", "test_error", "bad_tests"), lambda failure: is_error(failure.get("error"))),
}


def checked_verdict(report: Report) -> Report:
    """A judge's verdict, or the words of code that shares a process with its tests. Raises codec.CodecError."""
    if "bad_tests" in report and is_text(report["bad_tests"]):
        return report
    if "crashed" in report:
        return checked(report, PROGRAM)
    failure = report.get("failure")
    counted = is_count(report.get("passed")) and is_count(report.get("total"))
    if not counted or "failure" not in report or not (failure is None or _is_failure(failure)):
        raise codec.CodecError("a verdict of the wrong shape")
    return report


def _is_failure(failure: Any) -> bool:
    if not isinstance(failure, dict) or failure.get("kind") not in _FAILURES or not is_line(failure.get("line")):
        return False
    return _FAILURES[failure["kind"]](failure)
