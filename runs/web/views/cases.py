"""Pages of the cases of a run: the grid of cases and models, and accuracies on slices of the cases."""

from collections.abc import Sequence
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hub.common.web.pagination import keyset_page, order_of, page_or_part, render_list
from hub.models import Case
from hub.selectors import may_see_content
from runs.charts.plots import IntervalRow, interval_chart
from runs.charts.svg import Chart
from runs.models import Run, RunEnvironment, RunModel
from runs.results.breakdown.slices import CaseValues, Slice, case_values, label_counts, slice_results
from runs.results.case_grid import grid_cases, grid_rows
from runs.selectors import models_under_test
from runs.web import queries
from runs.web.downloads import failure_formats
from runs.web.forms import GridFilter, SlicesFilter

CASES_PER_PAGE = 50
GRID_COLUMNS = {"case": "external_id", "solved": "share"}


@require_safe
def grid(request: HttpRequest, pk: int) -> HttpResponse:
    """Show which models passed which cases, of `?environment=`; filtered by `?solved=`, sorted by `?sort=`."""
    run, run_environments = _run_with_environments(request, pk)
    form = GridFilter(request.GET, slugs=[_slug(item) for item in run_environments])
    chosen = form.chosen
    run_environment = _chosen_environment(run_environments, chosen["environment"])
    order = order_of(request, GRID_COLUMNS)
    rows = grid_cases(run_environment, share=form.values()["solved"]) if form.is_valid() else Case.objects.none()
    page = keyset_page(rows.defer("data"), request, by="position", size=CASES_PER_PAGE, order=order)
    models = models_under_test(run)
    context = {
        "run": run,
        "run_environment": run_environment,
        "run_environments": run_environments,
        "form": form,
        "chosen": chosen,
        "order": order,
        "page": page,
        "models": models,
        "rows": grid_rows(run_environment, models, page.rows),
        "formats": failure_formats(),
        "shown": _query(environment=_slug(run_environment), solved=chosen["solved"]),
    }
    return render_list(request, page_or_part(request, "runs/grid.html", "grid"), context, form)


def _run_with_environments(request: HttpRequest, pk: int) -> tuple[Run, list[RunEnvironment]]:
    """Return run *pk*, if the user may see it, and its environments in order. Raises Http404, also without any."""
    run = queries.get_visible_run(request.user, pk)
    run_environments = list(run.environments.select_related("version__environment").order_by("position"))
    if not run_environments:
        raise Http404(f"Run {pk} has no environment.")
    return run, run_environments


def _slug(run_environment: RunEnvironment) -> str:
    return run_environment.version.environment.slug


def _chosen_environment(run_environments: list[RunEnvironment], slug: str) -> RunEnvironment:
    """Return the environment with *slug*, or the first one."""
    return next((item for item in run_environments if _slug(item) == slug), run_environments[0])


def _query(**values: str) -> str:
    return urlencode({name: value for name, value in values.items() if value})


def _first_with_values(
    request: HttpRequest, run_environments: list[RunEnvironment]
) -> tuple[RunEnvironment, CaseValues]:
    """Return the first environment whose cases have metadata that the user may see, else the first one without any."""
    for item in run_environments:
        if may_see_content(request.user, item.version.environment) and (values := case_values(item)):
            return item, values
    return run_environments[0], {}


@require_safe
def slices(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the accuracy on the cases of `?environment=` by the values of `?by=`, a key of their metadata.

    Without `?environment=`, the first environment whose cases have metadata is shown.
    """
    run, run_environments = _run_with_environments(request, pk)
    form = SlicesFilter(request.GET, slugs=[_slug(item) for item in run_environments])
    chosen = form.chosen
    run_environment, values = _first_with_values(
        request,
        [_chosen_environment(run_environments, chosen["environment"])] if chosen["environment"] else run_environments,
    )
    may_see = may_see_content(request.user, run_environment.version.environment)
    keys = label_counts(values)
    by = chosen["by"] if chosen["by"] in values else next(iter(keys), "")
    models = models_under_test(run)
    found = slice_results(run, run_environment, models, values[by]) if by else []
    context = {
        "run": run,
        "run_environment": run_environment,
        "run_environments": run_environments,
        "form": form,
        "keys": keys,
        "by": by,
        "unknown": chosen["by"] if chosen["by"] and chosen["by"] not in values else "",
        "may_see": may_see,
        "slices": found,
        "chart": _slices_chart(by, models, found),
        "formats": failure_formats(),
        "exports": [(item, _query(environment=_slug(run_environment), by=by, value=item.value)) for item in found],
    }
    return render(request, "runs/slices.html", context, status=200 if form.is_valid() else 400)


def _slices_chart(by: str, models: Sequence[RunModel], found: Sequence[Slice]) -> Chart | None:
    """Return the chart of the accuracy of each model on each slice, or None if there is none."""
    rows = [
        IntervalRow(
            label=f"{item.value}, {model.label}" if len(models) > 1 else item.value,
            n=estimate.n,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
        )
        for item in found
        for model, estimate in zip(models, item.estimates, strict=True)
    ]
    title = f"Accuracy by {by}, with 95 % intervals"
    return interval_chart("chart-slices", title, rows, axis="accuracy, % of cases") if rows else None
