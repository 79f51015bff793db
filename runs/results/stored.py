"""Results of runs that have ended, stored as rows, so that pages and REST do not aggregate responses again."""

from collections import Counter
from collections.abc import Collection, Iterable
from functools import cache

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, QuerySet
from pydantic import TypeAdapter

from runs.models import ENDED, Response, Run, RunEnvironment, RunModel, RunResult
from runs.results.aggregate import aggregate_run
from runs.results.case_results import CaseResults, aggregate_cases
from runs.results.figures import CellFigures, CellResult

# Increase it if CellFigures, CaseResults or a column of RunResult changes. Rows of another revision are computed again
# when they are read.
REVISION = 9
# Large columns of environment versions, not loaded with results.
DEFERRED_OF_VERSIONS = ("run_environment__version__manifest", "run_environment__version__readme")


def get_results(run: Run) -> list[CellResult]:
    """Return the result of every environment and answering model of *run*, in the config's order.

    If the run has ended, they are read from stored rows; rows that are missing or not current are computed and stored
    first. While the run goes on, its responses are aggregated at each call.
    """
    if run.status not in ENDED or run.finished_at is None:
        return aggregate_run(run)
    return get_results_of([run])[run.pk]


def get_results_of(runs: Iterable[Run]) -> dict[int, list[CellResult]]:
    """Return the results of runs that have ended, by run id, as `get_results` does, with one query for all rows."""
    runs = list(runs)
    finished_at = {run.pk: run.finished_at for run in runs}
    found: dict[int, list[CellResult]] = {}
    for row in _with_relations(RunResult.objects.filter(run__in=runs, revision=REVISION)):
        if row.run_finished_at == finished_at[row.run_id]:
            found.setdefault(row.run_id, []).append(result_of(row))
    return {run.pk: found[run.pk] if run.pk in found else store_results(run) for run in runs}


def get_cases(
    run: Run, run_environments: Collection[RunEnvironment], models: Collection[RunModel]
) -> dict[tuple[int, int], CaseResults]:
    """Return the results by case of each of the cells, by the ids of its RunEnvironment and RunModel.

    They are stored with the other results, and read with one query.
    """
    if run.status not in ENDED or run.finished_at is None:
        return {(item.pk, model.pk): aggregate_cases(run, item, model) for item in run_environments for model in models}
    rows = RunResult.objects.filter(run_environment__in=run_environments, run_model__in=models)
    current = rows.filter(revision=REVISION, run_finished_at=run.finished_at).order_by()
    columns = ("run_environment_id", "run_model_id", "cases")
    found = list(current.values_list(*columns))
    if len(found) < len(run_environments) * len(models):
        store_results(run)
        found = list(current.values_list(*columns))
    return {(run_environment, model): CaseResults.from_json(cases) for run_environment, model, cases in found}


def store_results(run: Run) -> list[CellResult]:
    """Aggregate the responses of *run*, which has ended, and store a row for each environment and model."""
    assert run.finished_at is not None
    cells = aggregate_run(run)
    rows = [
        RunResult(
            run=run,
            run_environment=cell.run_environment,
            run_model=cell.run_model,
            run_finished_at=run.finished_at,
            revision=REVISION,
            responses=cell.responses,
            stored=cell.figures.stored,
            accuracy=cell.accuracy.value,
            incomplete=cell.incomplete,
            figures=_figures_adapter().dump_python(cell.figures, mode="json"),
            cases=aggregate_cases(run, cell.run_environment, cell.run_model).to_json(),
        )
        for cell in cells
    ]
    with transaction.atomic():
        RunResult.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["run_environment", "run_model"],
            update_fields=[
                "run_finished_at",
                "revision",
                "responses",
                "stored",
                "accuracy",
                "incomplete",
                "figures",
                "cases",
            ],
        )
    return cells


def count_responses(runs: Iterable[Run]) -> dict[int, Counter[str]]:
    """Return the number of stored responses of each run by status, by run id, quarantined cases included.

    Stored rows have it for runs that have ended. The responses of all others are counted.
    """
    runs = list(runs)
    found: dict[int, Counter[str]] = {}
    for pk, stored in current_rows().filter(run__in=runs).order_by().values_list("run_id", "stored"):
        found.setdefault(pk, Counter()).update(stored)
    others = [run.pk for run in runs if run.pk not in found]
    found.update((pk, Counter()) for pk in others)
    if others:
        rows = Response.objects.filter(run_environment__run__in=others).order_by()
        by_status = rows.values_list("run_environment__run", "status").annotate(count=Count("id"))
        for pk, status, count in by_status:
            found[pk][status] = count
    return found


def current_rows() -> QuerySet[RunResult]:
    """Return the rows that are current, of runs that have ended."""
    rows = RunResult.objects.filter(revision=REVISION, run__status__in=ENDED, run_finished_at=F("run__finished_at"))
    return _with_relations(rows)


def store_missing_results(runs: QuerySet[Run], *, limit: int) -> None:
    """Store the results of those of *runs* that have ended and have no current rows, at most *limit* of them."""
    current = RunResult.objects.filter(run=OuterRef("pk"), revision=REVISION, run_finished_at=OuterRef("finished_at"))
    ended = runs.filter(status__in=ENDED, finished_at__isnull=False)
    for run in ended.filter(~Exists(current))[:limit]:
        store_results(run)


def result_of(row: RunResult) -> CellResult:
    """Return the result that is stored in *row*."""
    return CellResult(
        run_environment=row.run_environment,
        run_model=row.run_model,
        figures=_figures_adapter().validate_python(row.figures),
    )


@cache
def _figures_adapter() -> TypeAdapter[CellFigures]:
    return TypeAdapter(CellFigures)


def _with_relations(rows: QuerySet[RunResult]) -> QuerySet[RunResult]:
    return rows.select_related("run_environment__version__environment", "run_model").defer(
        "cases", *DEFERRED_OF_VERSIONS
    )
