"""Results of past runs: by environment, by model, and the one before a given run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Exists, F, Max, OuterRef, QuerySet, Subquery

from hub.models import Environment, EnvironmentVersion
from runs.models import Run, RunEnvironment, RunModel, RunResult
from runs.providers.registry import PROVIDERS
from runs.results.figures import CellResult
from runs.results.stored import (
    DEFERRED_OF_VERSIONS,
    current_rows,
    get_results_of,
    result_of,
    store_missing_results,
)
from runs.selectors import visible_runs

# Runs whose missing rows one page computes at most. Only runs of earlier releases have none.
_COMPUTED_AT_ONCE = 20
_BEST_ROWS = 5000  # results that the best ones of a page are taken from
Viewer = User | AnonymousUser


@dataclass(frozen=True, slots=True)
class PastResult:
    """Result of one model on one environment, with its run."""

    run: Run
    cell: CellResult


def environment_results(user: Viewer, environment: Environment) -> list[PastResult]:
    """Return the latest result of each model on each version of *environment*, best accuracy of a version first."""
    evaluated = RunEnvironment.objects.filter(run=OuterRef("pk"), version__environment=environment)
    store_missing_results(_completed_runs(user).filter(Exists(evaluated)), limit=_COMPUTED_AT_ONCE)
    rows = _past_rows(user).filter(run_environment__version__environment=environment, responses__gt=0)
    newest_first = list(environment.versions.values_list("version", flat=True))
    return sorted(
        _latest(rows),
        key=lambda past: (newest_first.index(past.cell.version), -(past.cell.accuracy.value or 0.0)),
    )


@dataclass(frozen=True, slots=True)
class BestResult:
    """Best accuracy of a model on all cases of the latest version of an environment."""

    slug: str
    model: str
    accuracy: float
    run: int
    provider: str

    @property
    def recorded(self) -> bool:
        """Return whether the answers are recordings."""
        return self.provider in PROVIDERS and not PROVIDERS[self.provider].live


def best_results(user: Viewer, slugs: Iterable[str]) -> list[BestResult]:
    """Return the best stored result on each of these environments. Runs of a part of the cases do not count."""
    version = "run_environment__version"
    rows = (
        _past_rows(user)
        .filter(
            **{f"{version}__environment__slug__in": list(slugs)},
            **{f"{version}__environment__latest": F(version)},
            run_environment__case_count=F(f"{version}__case_count"),
            accuracy__isnull=False,
        )
        .order_by("-accuracy", "-run_id")
        .values_list(f"{version}__environment__slug", "run_model__label", "accuracy", "run_id", "run_model__provider")
    )
    best: dict[str, BestResult] = {}
    for row in rows[:_BEST_ROWS]:
        best.setdefault(row[0], BestResult(*row))
    return list(best.values())


def versions_of_model(user: Viewer, label: str) -> QuerySet[EnvironmentVersion]:
    """Return the environment versions on which the model *label* has a result."""
    evaluated = RunModel.objects.filter(run=OuterRef("pk"), role="", label=label)
    store_missing_results(_completed_runs(user).filter(Exists(evaluated)), limit=_COMPUTED_AT_ONCE)
    versions = _model_rows(user, label).order_by().values("run_environment__version")
    return EnvironmentVersion.objects.filter(pk__in=versions).only("environment")


def model_results(user: Viewer, label: str, versions: Sequence[EnvironmentVersion]) -> list[PastResult]:
    """Return the latest result of the model *label* on each of *versions*, in their order."""
    order = [version.pk for version in versions]
    rows = _model_rows(user, label).filter(run_environment__version__in=order)
    return sorted(_latest(rows), key=lambda past: order.index(past.cell.run_environment.version_id))


def _model_rows(user: Viewer, label: str) -> QuerySet[RunResult]:
    return _past_rows(user).filter(run_model__label=label, responses__gt=0)


def latest_results(user: Viewer, limit: int) -> list[tuple[Run, list[CellResult]]]:
    """Return the last *limit* runs that completed, with their results."""
    store_missing_results(_completed_runs(user), limit=_COMPUTED_AT_ONCE)
    runs = list(_completed_runs(user)[:limit])
    results = get_results_of(runs)
    return [(run, results[run.pk]) for run in runs]


def results_before(user: Viewer, runs: Iterable[Run]) -> dict[tuple[int, int], PastResult]:
    """Return the result before each result of *runs*, by the ids of environment and model of the run.

    That is the result of the same model and environment in the last completed run before it.
    """
    environment = "run_environment__version__environment"
    earlier = (
        _past_rows(user)
        .filter(
            run__lt=OuterRef("run"),
            run_model__label=OuterRef("run_model__label"),
            **{environment: OuterRef(environment)},
        )
        .order_by("-run_id")
    )
    shown = current_rows().filter(run__in=runs).order_by().annotate(before=Subquery(earlier.values("pk")[:1]))
    before = {
        (part, model): pk
        for part, model, pk in shown.values_list("run_environment", "run_model", "before")
        if pk is not None
    }
    rows = {row.pk: row for row in _past_rows(user).filter(pk__in=set(before.values()))}
    found = {pk: PastResult(row.run, result_of(row)) for pk, row in rows.items()}
    return {cell: found[pk] for cell, pk in before.items()}


def same_cases(cell: CellResult, other: CellResult) -> bool:
    """Return whether both results are of the same cases of the same content."""
    a, b = cell.run_environment, other.run_environment
    return (a.version.digest, a.case_count, a.case_positions) == (b.version.digest, b.case_count, b.case_positions)


def _completed_runs(user: Viewer) -> QuerySet[Run]:
    return visible_runs(user).filter(status=Run.Status.COMPLETED).order_by("-id")


def _past_rows(user: Viewer) -> QuerySet[RunResult]:
    """Return the rows of completed runs that *user* may see."""
    rows = current_rows().filter(run__in=_completed_runs(user).order_by().values("pk")).select_related("run")
    return rows.defer(*DEFERRED_OF_VERSIONS, "run__config", "run__host", "run__summaries", "run__tracking")


def _latest(rows: QuerySet[RunResult]) -> Iterable[PastResult]:
    """Return the result of the latest run for each environment version and model label."""
    groups = rows.order_by().values("run_environment__version", "run_model__label").annotate(latest=Max("run"))
    latest: dict[tuple[int, str], PastResult] = {}
    for row in rows.filter(run__in=groups.values("latest")).order_by("-run_id"):
        latest.setdefault((row.run_environment.version_id, row.run_model.label), PastResult(row.run, result_of(row)))
    return latest.values()


# ---- models ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelUse:
    """Label of models under test: in how many runs it occurs, and when last."""

    label: str
    runs: int
    last: datetime


def model_uses(user: Viewer) -> list[ModelUse]:
    """Return every label of a model under test in a run that *user* may see, the most recent first."""
    rows = (
        RunModel.objects.filter(role="", run__in=visible_runs(user).order_by().values("pk"))
        .order_by()
        .values("label")
        .annotate(runs=Count("run"), last=Max("run__created_at"))
        .order_by("-last")
    )
    return [ModelUse(**row) for row in rows]
