"""Pass rates of the cases of an environment version, over the responses of all runs that a user may see."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Avg, Count, FloatField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models import Case as Choice

from hub.models import Case, EnvironmentVersion
from runs.models import Response, RunEnvironment
from runs.selectors import visible_runs

_SCORED = (Response.Status.PASSED, Response.Status.FAILED)


@dataclass(frozen=True, slots=True)
class PassRate:
    """Number of scored responses to a case, and how many of them passed. Errored and unscored ones do not count."""

    passed: int = 0
    scored: int = 0

    @property
    def share(self) -> float | None:
        return self.passed / self.scored if self.scored else None


def visible_evaluations(user: User | AnonymousUser, version: EnvironmentVersion) -> list[int]:
    """Return the ids of the evaluations of *version* in runs that *user* may see.

    As literals, they keep the visibility of runs out of the subquery for each case.
    """
    runs = visible_runs(user).order_by().values("pk")
    return list(RunEnvironment.objects.filter(version=version, run__in=runs).order_by().values_list("pk", flat=True))


def with_pass_rates(cases: QuerySet[Case], evaluations: list[int]) -> QuerySet[Case]:
    """Annotate the cases with `pass_rate`, by which they can be filtered and sorted; None without a scored response."""
    passed = Choice(When(status=Response.Status.PASSED, then=Value(1.0)), default=Value(0.0), output_field=FloatField())
    scored = _scored(evaluations).filter(case_id=OuterRef("pk")).order_by().values("case_id")
    rate = Subquery(scored.annotate(mean=Avg(passed)).values("mean"), output_field=FloatField())
    return cases.annotate(pass_rate=rate)


def filter_by_pass_rate(cases: QuerySet[Case], solved: str) -> QuerySet[Case]:
    """Return the cases that none, some or all scored responses passed, or that have no scored response (`unknown`)."""
    conditions = {
        "none": Q(pass_rate=0.0),
        "some": Q(pass_rate__gt=0.0, pass_rate__lt=1.0),
        "all": Q(pass_rate=1.0),
        "unknown": Q(pass_rate=None),
    }
    return cases.filter(conditions[solved])


def get_pass_rates(cases: Iterable[Case], evaluations: list[int]) -> dict[int, PassRate]:
    """Return the pass rates of these cases by their ids. Cases without a scored response are left out."""
    rows = _scored(evaluations).filter(case__in=[case.pk for case in cases]).order_by().values_list("case_id")
    counts = rows.annotate(passed=Count("id", filter=Q(status=Response.Status.PASSED)), scored=Count("id"))
    return {case: PassRate(passed, scored) for case, passed, scored in counts}


def _scored(evaluations: list[int]) -> QuerySet[Response]:
    return Response.objects.filter(run_environment__in=evaluations, status__in=_SCORED)
