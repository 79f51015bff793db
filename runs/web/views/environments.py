"""Pages of environments that show data of runs: cases with their pass rates, results of all models, best results.

Their addresses are below those of the hub's pages of the environment.
"""

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hub.common.web.pagination import Order, keyset_page, order_of, page_or_part, render_list
from hub.models import Case
from hub.web import queries
from hub.web.case_metadata import (
    MetadataColumn,
    filter_metadata,
    metadata_columns,
    split_filter,
    value_texts,
    with_sort_key,
)
from hub.web.environment_page import page_context
from runs.charts.plots import TrendPoint, trend_chart
from runs.models import RunResult
from runs.results import history
from runs.results.pass_rates import (
    PassRate,
    filter_by_pass_rate,
    get_pass_rates,
    visible_evaluations,
    with_pass_rates,
)
from runs.results.stored import result_of
from runs.web.forms import CasesFilter, ResultsFilter

CASES, RESULTS = 25, 50  # on a page
DRAWN = 100  # results of a chart
_BEST = 100  # environments in one request for their best results


@require_safe
def cases(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """List the cases of a version with metadata, target and pass rate: ?q=&meta=level:hard&solved=&sort="""
    found = queries.get_visible_environment(request.user, slug)
    shown = queries.get_version_or_404(found, version)
    context = page_context(request.user, shown, "cases")
    form = CasesFilter(request.GET)
    context |= {"form": form, "chosen": form.chosen, "filtered": any(form.chosen.values())}
    if context["content"]:
        columns = metadata_columns(shown)
        order = order_of(request, {**queries.CASE_COLUMNS, "passed": "pass_rate", **_sort_names(columns)})
        evaluations = visible_evaluations(request.user, shown)
        rows = Case.objects.none()
        if form.is_valid():
            rows = queries.with_details(queries.list_cases(shown, form.values()["q"]))
            key, value = split_filter(form.values()["meta"])
            if key:
                rows = filter_metadata(rows, key, value)
            rows = _with_keys(rows, order, form.values()["solved"], columns, evaluations)
        page = keyset_page(rows, request, by="position", size=CASES, order=order)
        rates = get_pass_rates(page.rows, evaluations)
        context |= {
            "order": order,
            "page": page,
            "columns": columns,
            "filters": [column for column in columns if column.values],
            "targets": any(getattr(case, "target", None) for case in page.rows),
            "runs": len(evaluations),
            "rows": [(case, rates.get(case.pk, PassRate()), _metadata_texts(case, columns)) for case in page.rows],
        }
    return render_list(request, page_or_part(request, "hub/cases.html", "cases"), context, form)


def _sort_names(columns: list[MetadataColumn]) -> dict[str, str]:
    return {column.sort: "metadata_key" for column in columns}


def _with_keys(
    rows: QuerySet[Case], order: Order, solved: str, columns: list[MetadataColumn], evaluations: list[int]
) -> QuerySet[Case]:
    """Annotate what *rows* are sorted by, and keep those that none, some or all responses passed, as *solved* says."""
    if order.field == "pass_rate" or solved:
        rows = with_pass_rates(rows, evaluations)
    if order.field == "metadata_key":
        rows = with_sort_key(rows, next(column for column in columns if column.sort == order.name))
    return filter_by_pass_rate(rows, solved) if solved else rows


def _metadata_texts(case: Case, columns: list[MetadataColumn]) -> list[tuple[MetadataColumn, str]]:
    metadata = getattr(case, "metadata", None)
    values = metadata if isinstance(metadata, dict) else {}
    return [(column, ", ".join(value_texts(values.get(column.key)))) for column in columns]


@require_safe
def results(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Show the leaderboard of a version, and the results on all versions over time; `?model=` chooses one model."""
    found = queries.get_visible_environment(request.user, slug)
    shown = queries.get_version_or_404(found, version)
    form = ResultsFilter(request.GET)
    template = page_or_part(request, "runs/environment_results.html", "past")
    context = page_context(request.user, shown, "results") | {"form": form, "chosen": form.chosen}
    history.store_environment_results(request.user, found)
    if request.headers.get("HX-Target") == "history":
        template = "runs/environment_results.html#history"
    else:
        context["leaderboard"] = history.leaderboard(request.user, shown)
    if not template.endswith("#past"):
        model = form.values()["model"] if form.is_valid() else ""
        rows = history.results_over_time(request.user, found, model=model)
        rows = rows if form.is_valid() else rows.none()
        page = keyset_page(rows, request, by="id", size=RESULTS, descending=True)
        context |= {
            "models": history.models_evaluated_on(request.user, found),
            "page": page,
            "results": [(row.run, result_of(row)) for row in page.rows],
            "chart": trend_chart(
                "chart-history",
                "Accuracy over time, with 95 % intervals",
                [_trend_point(row) for row in rows.order_by("-id")[:DRAWN]],
                axis="accuracy, %",
            ),
        }
    return render_list(request, template, context, form)


def _trend_point(row: RunResult) -> TrendPoint:
    cell = result_of(row)
    accuracy = cell.accuracy
    return TrendPoint(
        label=cell.model,
        detail=f"version {cell.version}, run {row.run_id}",
        moment=row.run_finished_at,
        n=accuracy.n,
        value=accuracy.value,
        low=accuracy.low,
        high=accuracy.high,
    )


@require_safe
def best_results(request: HttpRequest) -> HttpResponse:
    """Return the best result on each `?environment=`, which htmx puts into the list of environments."""
    slugs = list(dict.fromkeys(request.GET.getlist("environment")[:_BEST]))
    best = history.best_results(request.user, slugs)
    return render(request, "runs/best_results.html", {"results": [(slug, best.get(slug)) for slug in slugs]})
