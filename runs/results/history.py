"""Results of past runs: by environment, by model, and the one before a given run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Exists, Max, OuterRef, QuerySet, Subquery

from hub.models import Environment, EnvironmentVersion
from runs.models import Run, RunEnvironment, RunModel, RunResult
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
Viewer = User | AnonymousUser


@dataclass(frozen=True, slots=True)
class PastResult:
    """Result of one model on one environment, with its run."""

    run: Run
    cell: CellResult


def leaderboard(user: Viewer, version: EnvironmentVersion) -> list[PastResult]:
    """Return the latest complete result of each model on all cases of *version*, the most accurate first.

    Models without one follow, with their latest result of all cases that is incomplete, or else of a part of the cases.
    """
    rows = _past_rows(user).filter(run_environment__version=version, responses__gt=0)
    whole = rows.filter(run_environment__case_count=version.case_count)
    complete = list(_latest(whole.filter(incomplete=False)))
    others: list[PastResult] = []
    for preferred in (whole, rows):
        models = {past.cell.model for past in (*complete, *others)}
        others += [past for past in _latest(preferred) if past.cell.model not in models]
    return sorted(complete, key=_by_accuracy) + sorted(others, key=_by_accuracy)


def _by_accuracy(past: PastResult) -> tuple[float, str]:
    return -(past.cell.accuracy.value or 0.0), past.cell.model


def results_over_time(user: Viewer, environment: Environment, *, model: str = "") -> QuerySet[RunResult]:
    """Return the rows of the completed runs on all versions of *environment*; *model*: of this label only."""
    rows = _past_rows(user).filter(run_environment__version__environment=environment, responses__gt=0)
    return rows.filter(run_model__label=model) if model else rows


def models_evaluated_on(user: Viewer, environment: Environment) -> list[str]:
    """Return the labels of the models that have a result on *environment*, in alphabetical order."""
    labels = results_over_time(user, environment).order_by().values_list("run_model__label", flat=True)
    return sorted(set(labels.distinct()))


def store_environment_results(user: Viewer, environment: Environment) -> None:
    """Store the rows of runs on *environment* that have none, so that the functions above find them."""
    evaluated = RunEnvironment.objects.filter(run=OuterRef("pk"), version__environment=environment)
    store_missing_results(_completed_runs(user).filter(Exists(evaluated)), limit=_COMPUTED_AT_ONCE)


def best_results(user: Viewer, slugs: Iterable[str]) -> dict[str, PastResult]:
    """Return the best stored result on each of these environments, by slug.

    Only results of all cases of the latest version count, and incomplete ones only if there is no other.
    """
    rows = (
        _past_rows(user)
        .filter(
            run_environment__version=OuterRef("latest"),
            run_environment__case_count=OuterRef("latest__case_count"),
            accuracy__isnull=False,
        )
        .order_by("incomplete", "-accuracy", "-run_id")
    )
    environments = Environment.objects.filter(slug__in=list(slugs)).order_by()
    best = environments.annotate(best=Subquery(rows.values("pk")[:1])).values_list("best", flat=True)
    found = (PastResult(row.run, result_of(row)) for row in _past_rows(user).filter(pk__in=list(best)))
    return {past.cell.slug: past for past in found}


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
        (run_environment, model): pk
        for run_environment, model, pk in shown.values_list("run_environment", "run_model", "before")
        if pk is not None
    }
    rows = {row.pk: row for row in _past_rows(user).filter(pk__in=set(before.values()))}
    found = {pk: PastResult(row.run, result_of(row)) for pk, row in rows.items()}
    return {cell: found[pk] for cell, pk in before.items()}


def same_cases(cell: CellResult, other: CellResult) -> bool:
    """Return whether both results are of the same cases of the same content, with the same ones quarantined."""
    if cell.figures.quarantined_cases != other.figures.quarantined_cases:
        return False
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
