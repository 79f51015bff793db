"""Kind of each response that did not pass; every response has exactly one."""

from runs.models import Response

_RAN = ("", "passed", "completed", "failed")  # execution statuses that say nothing beyond pass or fail


def failure_kind(
    *, status: str, error_kind: str, refused: bool, truncated: bool, stop: str, execution_status: str
) -> str:
    """Return the kind of failure of a response; "" if it passed.

    Of several kinds, the first that is checked here counts.
    """
    if status == Response.Status.PASSED:
        return ""
    if status == Response.Status.ERRORED:
        return f"error: {error_kind or 'unknown'}".replace("_", " ")
    if status == Response.Status.UNSCORED:
        return "unscored"
    if refused:
        return "refused"
    if truncated:
        return "cut at the token limit"
    if stop not in ("", "done"):
        return f"limit of {stop}".replace("_", " ")
    if execution_status not in _RAN:
        return f"code: {execution_status}".replace("_", " ")
    return "wrong answer"
