"""Responses of a run that its figures count: responses of one cell, quarantined cases, and clusters."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.models import Q, QuerySet

from hub.models import Case, CaseDefect
from runs.models import Response, Run, RunEnvironment, RunModel


def quarantined_cases(run: Run, run_environment: RunEnvironment) -> frozenset[int]:
    """Return the ids of the selected cases that a curator had found wrong when *run* started."""
    return defective_cases(run_environment, before=run.started_at or run.created_at)


def defective_cases(run_environment: RunEnvironment, *, before: datetime | None = None) -> frozenset[int]:
    """Return the ids of the selected cases that a curator has found wrong, until now or until *before*.

    Reports use the state at the run's start, so that published figures do not change. Training data uses the present
    state.
    """
    until = {} if before is None else {"resolved_at__lte": before}
    wrong = Case.objects.filter(
        version_id=run_environment.version_id,
        pk__in=CaseDefect.objects.filter(
            status=CaseDefect.Status.ACCEPTED, case__version_id=run_environment.version_id, **until
        ).values("case_id"),
    )
    if run_environment.case_positions is None:
        wrong = wrong.filter(position__lt=run_environment.case_count)
    found = dict(wrong.values_list("pk", "position"))
    chosen = None if run_environment.case_positions is None else set(run_environment.case_positions)
    return frozenset(pk for pk, position in found.items() if chosen is None or position in chosen)


def case_clusters(run_environment: RunEnvironment) -> dict[int, str]:
    """Return case id -> cluster if the dataset has a column or a metadata key `cluster`; else nothing.

    Cases with an empty value have no cluster.
    """
    named = Case.objects.filter(version_id=run_environment.version_id).filter(
        Q(data__metadata__cluster__isnull=False) | Q(data__row__cluster__isnull=False)
    )
    rows = named.order_by().values_list("pk", "data__metadata__cluster", "data__row__cluster").iterator(chunk_size=2000)
    values = ((pk, row if metadata in (None, "") else metadata) for pk, metadata, row in rows)
    return {pk: str(value) for pk, value in values if value not in (None, "")}


def clusters_of(cases: Sequence[int], clusters: Mapping[int, str]) -> list[str | int] | None:
    """Return the clusters of *cases*, those without one alone; None if no case has one. *clusters*: by case id."""
    return [clusters.get(case, case) for case in cases] if any(case in clusters for case in cases) else None


def cell_responses(run_environment: RunEnvironment, model: RunModel) -> QuerySet[Response]:
    """Return the responses of one cell, in the order of the unique index, so that no database sorts them."""
    return Response.objects.filter(run_environment=run_environment, run_model=model).order_by(
        "run_model_id", "case_id", "attempt"
    )
