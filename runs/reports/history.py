"""Results as pages and REST show them: of one run, kept once it has ended; of past runs, by environment and model."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.core.cache import cache
from django.db.models import Count, Exists, Max, OuterRef

from hub.models import Environment
from hub.protocols.messages import JSON
from runs.models import ENDED, Run, RunEnvironment, RunModel
from runs.reports.terminal import detail_lines
from runs.results.aggregate import CellResult, run_results, warnings
from runs.selectors import visible_runs

RUNS = 20  # the most recent ones that are looked into
_KEEP_S = 3600


@dataclass(frozen=True, slots=True)
class ShownResults:
    """`cells` are entries of `results` in `eval --json`, each with `details`: lines of what a table has no room for."""

    cells: list[dict[str, JSON]]
    warnings: list[str]


def shown_results(run: Run) -> ShownResults:
    """The results of *run*. Those of one that has ended are computed once: they change only by a new sitting."""
    if run.status not in ENDED or run.finished_at is None:
        return _computed(run)
    key = f"results:{run.pk}:{run.status}:{run.finished_at.timestamp()}:{run.tracking.get('state', '')}"
    found: ShownResults | None = cache.get(key)
    if found is None:
        found = _computed(run)
        cache.set(key, found, _KEEP_S)
    return found


def _computed(run: Run) -> ShownResults:
    cells = run_results(run)
    return ShownResults([_shown(cell) for cell in cells], warnings(run, cells))


def _shown(cell: CellResult) -> dict[str, JSON]:
    return {
        **cell.to_json(),
        "slug": cell.run_environment.version.environment.slug,
        "version": cell.run_environment.version.version,
        "details": detail_lines(cell),
    }


@dataclass(frozen=True, slots=True)
class PastResult:
    """One model on one environment in one run."""

    run: Run
    cell: dict[str, JSON]

    @property
    def accuracy(self) -> float:
        """Accuracy from 0 to 1; 0 if nothing was scored."""
        accuracy = self.cell["accuracy"]
        return accuracy if isinstance(accuracy, float) else 0.0


def environment_results(user: User | AnonymousUser, environment: Environment) -> list[PastResult]:
    """The latest result of each model on each version of *environment*, the best accuracy of a version first."""
    played = RunEnvironment.objects.filter(run=OuterRef("pk"), version__environment=environment)
    latest: dict[tuple[str, str], PastResult] = {}
    for run in _completed(user).filter(Exists(played))[:RUNS]:
        for cell in shown_results(run).cells:
            if cell["slug"] == environment.slug and cell["responses"]:
                latest.setdefault((str(cell["version"]), str(cell["model"])), PastResult(run, cell))
    newest = list(environment.versions.values_list("version", flat=True))
    return sorted(latest.values(), key=lambda past: (newest.index(str(past.cell["version"])), -past.accuracy))


def model_results(user: User | AnonymousUser, label: str) -> list[PastResult]:
    """The latest result of the model *label* on each environment version, by environment."""
    by_model = RunModel.objects.filter(run=OuterRef("pk"), role="", label=label)
    latest: dict[str, PastResult] = {}
    for run in _completed(user).filter(Exists(by_model))[:RUNS]:
        for cell in shown_results(run).cells:
            if cell["model"] == label and cell["responses"]:
                latest.setdefault(str(cell["environment"]), PastResult(run, cell))
    return sorted(latest.values(), key=lambda past: str(past.cell["environment"]))


def latest_results(user: User | AnonymousUser, runs: int) -> Iterator[tuple[Run, ShownResults]]:
    """The results of the last *runs* that completed."""
    for run in _completed(user)[:runs]:
        yield run, shown_results(run)


def result_before(user: User | AnonymousUser, run: Run, slug: str, label: str) -> PastResult | None:
    """What the model *label* came to on the environment *slug* in the last completed run before *run*."""
    played = RunEnvironment.objects.filter(run=OuterRef("pk"), version__environment__slug=slug)
    answered = RunModel.objects.filter(run=OuterRef("pk"), role="", label=label)
    earlier = _completed(user).filter(Exists(played), Exists(answered), pk__lt=run.pk).first()
    cells = shown_results(earlier).cells if earlier else []
    return next((PastResult(earlier, cell) for cell in cells if (cell["slug"], cell["model"]) == (slug, label)), None)


def same_cases(run: Run, other: Run, slug: str) -> bool:
    """Whether both played the same cases of the same content of the environment *slug*."""
    played = [
        RunEnvironment.objects.filter(run=each, version__environment__slug=slug)
        .values_list("version__digest", "case_count", "case_positions")
        .first()
        for each in (run, other)
    ]
    return played[0] == played[1]


def _completed(user: User | AnonymousUser) -> Any:
    return visible_runs(user).filter(status=Run.Status.COMPLETED).order_by("-id")


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A label under which models answered: in how many runs, and when last."""

    label: str
    runs: int
    last: datetime


def model_uses(user: User | AnonymousUser) -> list[ModelUse]:
    """Every label of an answering model in a run that *user* may see, the most recent first."""
    rows = (
        RunModel.objects.filter(role="", run__in=visible_runs(user).order_by().values("pk"))
        .order_by()
        .values("label")
        .annotate(runs=Count("run"), last=Max("run__created_at"))
        .order_by("-last")
    )
    return [ModelUse(**row) for row in rows]
