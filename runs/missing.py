"""Missing responses: the one definition that planning, resuming, progress and pages share.

A run has one response for each of its models under test, cases and attempts. A response is missing if it is not stored
yet, or if it is errored: a resumed run requests errored responses again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from django.db.models import QuerySet

from hub.models import Case
from runs.models import Response, Run, RunModel

_RETRIED = (Response.Status.ERRORED,)  # statuses of responses that a resumed run requests again


def expected_responses(case_counts: Iterable[int], models: int, attempts: int) -> int:
    """Return the number of responses of a complete run. case_counts: of each environment."""
    return sum(case_counts) * models * attempts


def count_expected(run: Run) -> int:
    """Return the number of responses that *run* has when it is complete."""
    case_counts = run.environments.values_list("case_count", flat=True)
    return expected_responses(case_counts, run.models.filter(role="").count(), run.attempts)


def count_missing(run: Run) -> int:
    """Return the number of responses that *run* lacks."""
    return max(count_expected(run) - _present(Response.objects.filter(run_environment__run=run)).count(), 0)


def count_missing_by_status(run: Run, stored: Counter[str]) -> int:
    """Return the number of responses that *run* lacks, given the number of its stored responses by status."""
    return max(count_expected(run) - sum(count for status, count in stored.items() if status not in _RETRIED), 0)


def missing_attempts(model: RunModel, cases: Sequence[Case], attempts: int) -> list[tuple[Case, int]]:
    """Return the case and attempt of each response that *model* lacks for *cases*, in order."""
    rows = _present(Response.objects.filter(run_model=model, case_id__in=[case.pk for case in cases]))
    present = set(rows.values_list("case_id", "attempt"))
    return [
        (case, attempt) for case in cases for attempt in range(1, attempts + 1) if (case.pk, attempt) not in present
    ]


def is_run_complete(run: Run) -> bool:
    """Return whether a resume of *run* would have nothing to do: no response is missing, and no stage failed."""
    if run.status != Run.Status.COMPLETED or run.tracking_state == Run.TrackingState.PENDING:
        return False
    failed = any(isinstance(summary, dict) and summary.get("error") for summary in run.summaries.values())
    return not failed and count_missing(run) == 0


def _present(responses: QuerySet[Response]) -> QuerySet[Response]:
    return responses.exclude(status__in=_RETRIED)
