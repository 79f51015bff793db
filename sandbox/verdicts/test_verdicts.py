"""Status, message and counts from the verdict of the process that ran the tests."""

from sandbox.limits import Limits
from sandbox.verdicts.reports import FailureReport, Verdict
from sandbox.verdicts.results import Conclusion, Status
from sandbox.verdicts.statuses import create_failure, cut_text, status_of_exception, status_of_tampering


def conclude(verdict: Verdict, ended: tuple[Status, str], limits: Limits) -> Conclusion:
    """Return the conclusion from a verdict. *ended* applies if the verdict is that the code's process ended."""
    if verdict.crashed is not None:
        return Conclusion(Status.EXCEPTION, cut_text(f"The tests crashed: {verdict.crashed['message']}"))
    if verdict.bad_tests is not None:
        return Conclusion(Status.BAD_TESTS, cut_text(verdict.bad_tests))
    total, failure = verdict.total, verdict.failure
    if failure is not None:
        status, message = _status_of_failure(failure, ended, limits)
        shown = create_failure(failure.test, failure.expected, failure.got, failure.line)
        return Conclusion(status, message, verdict.passed, total, shown)
    if not total:
        return Conclusion(Status.BAD_TESTS, "The tests contain no assert that was executed.", verdict.passed, total)
    return Conclusion(Status.PASSED, f"All {total} tests passed.", verdict.passed, total)


def _status_of_failure(failure: FailureReport, ended: tuple[Status, str], limits: Limits) -> tuple[Status, str]:
    message = failure.message
    match failure.kind:
        case "gone":
            return ended
        case "assertion":
            test = failure.test or message or f"line {failure.line}"
            note = f" ({message})" if message and message != test else ""
            return Status.ASSERTION, cut_text(f"A test failed: {test}{note}")
        case "missing":
            return Status.MISSING_ENTRY_POINT, cut_text(f"The code defines no {message}.")
        case "large":
            return Status.OUTPUT_LIMIT, f"The code returned {message} bytes; {limits.result_bytes} are allowed."
        case "unsupported":
            return Status.UNSUPPORTED, cut_text(f"Tests apart from the code cannot decide this: {message}.")
        case "tampered":
            return status_of_tampering(cut_text(message))
    assert failure.error is not None  # all other kinds have one
    if failure.kind == "raised":
        return status_of_exception(failure.error, limits)
    error = f"{failure.error['type']}: {failure.error['message']}"
    if failure.kind == "bad_tests":
        return Status.BAD_TESTS, cut_text(f"The tests themselves failed: {error} (line {failure.line})")
    if failure.error["type"] == "SystemExit":
        return Status.EXCEPTION, cut_text(f"The tests ended with {_describe_exit(failure.error['message'])}.")
    return Status.EXCEPTION, cut_text(f"The tests could not use what the code returned: {error}")


def _describe_exit(code: str) -> str:
    """Return an exit code as text. Python prints one that is no number, and exits with 1."""
    if code in ("True", "False", ""):
        code = str(int(code == "True"))
    return f"exit code {code}" if code.lstrip("-").isdigit() else f"exit code 1: {code!r}"
