"""Grid of cases and models: how many attempts of each model passed each case."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Avg, Exists, FloatField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models import Case as Choice

from hub.models import Case
from runs.models import Response, RunEnvironment, RunModel

_SCORED = (Response.Status.PASSED, Response.Status.FAILED)


@dataclass(frozen=True, slots=True)
class GridCell:
    """Responses of one model to one case: the number of attempts, and how many of them passed.

    status: that of the responses if all have the same; `mixed` if some passed and others did not, or none was stored.
    response: id of the only response, if there is one.
    """

    status: str
    passed: int
    attempts: int
    response: int | None = None

    @property
    def share(self) -> str:
        """Return the attempts that passed, of all: `3/5`."""
        return f"{self.passed}/{self.attempts}"


def grid_cases(run_environment: RunEnvironment, *, share: str = "") -> QuerySet[Case]:
    """Return the cases that have a response in *run_environment*. `share` is the share of the scored ones that passed.

    share: none, some or all: only cases that no, some or all scored responses passed.
    """
    responses = Response.objects.filter(run_environment=run_environment, case_id=OuterRef("pk"))
    passed = Choice(When(status=Response.Status.PASSED, then=Value(1.0)), default=Value(0.0), output_field=FloatField())
    scored = responses.filter(status__in=_SCORED).order_by().values("case_id")
    cases = Case.objects.filter(Exists(responses), version_id=run_environment.version_id)
    cases = cases.annotate(share=Subquery(scored.annotate(mean=Avg(passed)).values("mean"), output_field=FloatField()))
    conditions = {"none": Q(share=0.0), "some": Q(share__gt=0.0, share__lt=1.0), "all": Q(share=1.0)}
    return cases.filter(conditions[share]) if share else cases


def grid_rows(
    run_environment: RunEnvironment, models: Sequence[RunModel], cases: Sequence[Case]
) -> list[tuple[Case, list[GridCell]]]:
    """Return each case with one cell for each model, in their orders."""
    found: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    rows = Response.objects.filter(run_environment=run_environment, case__in=cases).order_by("attempt")
    for pk, case, model, status in rows.values_list("pk", "case_id", "run_model_id", "status"):
        found[case, model].append((pk, status))
    return [(case, [_cell(found[case.pk, model.pk]) for model in models]) for case in cases]


def _cell(responses: list[tuple[int, str]]) -> GridCell:
    statuses = [status for _, status in responses]
    return GridCell(
        status=statuses[0] if len(set(statuses)) == 1 else "mixed",
        passed=statuses.count(Response.Status.PASSED),
        attempts=len(statuses),
        response=responses[0][0] if len(responses) == 1 else None,
    )
