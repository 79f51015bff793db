"""Missing responses: the one definition that planning, resuming, progress and pages share.

A run has one response for each of its models under test, cases and attempts. A response is missing if it is not stored
yet, or if it is errored: a resumed run requests errored responses again. A response whose conversation is too long for
the model is not missing, because the same request would fail again (docs/decisions/0005).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from django.db.models import Count, Q, QuerySet

from hub.models import Case
from hub.protocols.calls import TOO_LONG
from runs.models import Response, Run, RunModel

_ERRORED = Q(status=Response.Status.ERRORED)
_TOO_LONG = _ERRORED & Q(error_kind=TOO_LONG)
_RETRIED = _ERRORED & ~Q(error_kind=TOO_LONG)  # responses that a resumed run requests again


def expected_responses(case_counts: Iterable[int], models: int, attempts: int) -> int:
    """Return the number of responses of a complete run. case_counts: of each environment."""
    return sum(case_counts) * models * attempts


def count_expected(run: Run) -> int:
    """Return the number of responses that *run* has when it is complete."""
    case_counts = run.environments.values_list("case_count", flat=True)
    return expected_responses(case_counts, run.models.filter(role="").count(), run.attempts)


def count_missing(run: Run) -> int:
    """Return the number of responses that *run* lacks."""
    # Two queries, because databases answer each from the index of environment, model and status alone, or nearly so.
    other = Response.objects.filter(run_environment__run=run).exclude(_ERRORED).count()
    return max(count_expected(run) - other - count_too_long(run), 0)


def count_missing_by_status(run: Run, stored: Counter[str]) -> int:
    """Return the number of responses that *run* lacks, given the number of its stored responses by status."""
    errored = stored[Response.Status.ERRORED]
    present = stored.total() - errored + (count_too_long(run) if errored else 0)
    return max(count_expected(run) - present, 0)


def too_long_responses(run: Run) -> QuerySet[Response]:
    """Return the responses of *run* that are errored because a conversation is too long for its model."""
    # With the models as well, databases use the index of environment, model and status.
    return Response.objects.filter(_TOO_LONG, run_environment__run=run, run_model__run=run)


def count_too_long(run: Run) -> int:
    """Return the number of `too_long_responses`."""
    return too_long_responses(run).count()


def missing_attempts(model: RunModel, cases: Sequence[Case], attempts: int) -> list[tuple[Case, int]]:
    """Return the case and attempt of each response that *model* lacks for *cases*, in order."""
    rows = Response.objects.filter(run_model=model, case_id__in=[case.pk for case in cases]).exclude(_RETRIED)
    present = set(rows.values_list("case_id", "attempt"))
    return [
        (case, attempt) for case in cases for attempt in range(1, attempts + 1) if (case.pk, attempt) not in present
    ]


def models_to_call(run: Run, *, retry_too_long: bool = False) -> list[RunModel]:
    """Return the models that a resume of *run* may call: those that lack responses, and all models of roles.

    retry_too_long: whether it would also request the responses again whose conversation is too long.
    """
    expected = expected_responses(run.environments.values_list("case_count", flat=True), 1, run.attempts)
    stored = Response.objects.filter(run_environment__run=run, run_model__run=run)
    stored = stored.exclude(_ERRORED if retry_too_long else _RETRIED)
    counts = Counter(dict(stored.order_by().values_list("run_model").annotate(Count("id"))))
    return [model for model in run.models.order_by("position") if model.role or counts[model.pk] < expected]


def is_run_complete(run: Run, *, retry_too_long: bool = False) -> bool:
    """Return whether a resume of *run* would have nothing to do: no response is missing, and no stage failed.

    retry_too_long: whether it would also request the responses again whose conversation is too long.
    """
    if run.status != Run.Status.COMPLETED or run.tracking_state == Run.TrackingState.PENDING:
        return False
    failed = any(isinstance(summary, dict) and summary.get("error") for summary in run.summaries.values())
    return not failed and count_missing(run) == 0 and not (retry_too_long and too_long_responses(run).exists())
