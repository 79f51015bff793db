"""Pages of runs: list, new run, one run and its progress, downloads; cancelling and resuming a run."""

from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hub.common.errors import UserError
from hub.common.web.pagination import keyset_page, order_of, page_or_part, render_list
from runs.config.resolve import ResolvedConfig
from runs.execution.dispatch import dispatch_run
from runs.exports import FORMATS
from runs.missing import count_missing, is_run_complete
from runs.models import ENDED, ModelEndpoint, Response, Run
from runs.reports import render_html, stage_sentences
from runs.reports.document import known_cost
from runs.reports.page import results_for_page
from runs.results.outcomes import outcome_of, outcomes_of
from runs.selectors import shown_config
from runs.services import cancel_run, create_run, resume_run
from runs.tracking.links import mlflow_url
from runs.web import queries
from runs.web.downloads import download_failures
from runs.web.forms import ConfigForm, FailuresFilter, ResponsesFilter, RunForm, RunsFilter

RUNS_PER_PAGE, RESPONSES_PER_PAGE = 30, 40
ADD, CHANGE = "runs.add_run", "runs.change_run"


@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """List runs, filtered by `?q=&status=&environment=&model=` and sorted by `?sort=`."""
    form = RunsFilter(request.GET)
    chosen = form.chosen
    rows = queries.filter_runs(request.user, **form.values()) if form.is_valid() else Run.objects.none()
    order = order_of(request, queries.RUN_COLUMNS)
    page = keyset_page(rows, request, by="id", size=RUNS_PER_PAGE, descending=True, order=order)
    context = {
        "order": order,
        "form": form,
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "page": page,
        "contents": queries.get_run_contents(page.rows),
        "outcomes": outcomes_of(page.rows),
        "may_add": request.user.has_perm(ADD),
    }
    return render_list(request, page_or_part(request, "runs/list.html", "runs"), context, form)


@require_http_methods(["GET", "POST"])
@permission_required(ADD, raise_exception=True)
def new(request: HttpRequest) -> HttpResponse:
    """Create and queue a run from the form, or from a config."""
    assert request.user.is_authenticated
    from_config = "config" in request.POST
    data = request.POST if request.method == "POST" else None
    form = RunForm(None if from_config else data, user=request.user, environments=request.GET.getlist("environment"))
    config_form = ConfigForm(data if from_config else None, user=request.user)
    sent: RunForm | ConfigForm = config_form if from_config else form
    if data is not None and sent.is_valid():
        run = _start(request, sent.resolved)
        return redirect("runs:run", pk=run.pk)
    context = {
        "form": form,
        "config_form": config_form,
        "any_model": ModelEndpoint.objects.filter(enabled=True).exists(),
    }
    return render(request, "runs/new.html", context, status=200 if data is None else 422)


def _start(request: HttpRequest, resolved: ResolvedConfig) -> Run:
    assert request.user.is_authenticated
    run = create_run(config=resolved.config, environments=resolved.environments, user=request.user)
    dispatch_run(run=run)
    return run


@require_safe
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the results or the progress of a run, and its responses by `?status=&environment=&model=&flag=&q=&sort=`."""
    found = queries.get_visible_run(request.user, pk)
    form = ResponsesFilter(request.GET)
    chosen = form.chosen
    order = order_of(request, queries.RESPONSE_COLUMNS)
    rows = (
        queries.filter_responses(request.user, found, **form.values()) if form.is_valid() else Response.objects.none()
    )
    page = keyset_page(rows, request, by="id", size=RESPONSES_PER_PAGE, order=order)
    queries.hide_withheld_reasons(request.user, page.rows)
    context = {
        "run": found,
        "form": form,
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "order": order,
        "responses": page,
        "attempts": found.attempts,
        "several": found.environments.count() > 1,
        "ended": found.status in ENDED,
        "formats": {key: item.summary for key, item in FORMATS.items()},
        "filters": urlencode({name: value for name, value in chosen.items() if value}),
    }
    template = page_or_part(request, "runs/run.html", "responses")
    context["is_partial"] = template != "runs/run.html"
    if not context["is_partial"]:
        context |= _results(found)
        if found.status not in ENDED:
            context["live"] = queries.get_progress(found)
        context["environments"] = found.environments.select_related("version__environment").order_by("position")
        context["models"] = found.models.order_by("role", "position")
        context["may_change"] = request.user.has_perm(CHANGE)
        context["missing"] = count_missing(found)
        context["mlflow"] = mlflow_url(request.user, found)
        context["config"] = shown_config(found, request.user)
        context["stage_sentences"] = stage_sentences(found)
    return render_list(request, template, context, form)


def _results(run: Run) -> dict[str, object]:
    """Return the status of a run, and its results if they are available.

    Results are shown only if all responses are stored, because intervals of a part of them would mislead.
    """
    ended = run.status in ENDED
    context: dict[str, object] = {"ended": ended, "outcome": outcome_of(run)}
    if ended or run.evaluated_at is not None:
        context |= {"results": results_for_page(run), "cost": known_cost(run)}
    return context


@require_safe
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the progress and status of a run, which its page requests every two seconds.

    The page is reloaded when the results are available, and again when the run has ended. The list of responses is
    reloaded if the number of stored responses differs from `?done=`, the number that the page shows.
    """
    found = queries.get_visible_run(request.user, pk)
    results_appeared = found.evaluated_at is not None and "done" in request.GET
    if found.status in ENDED or results_appeared:
        if not getattr(request, "htmx", False):
            return redirect("runs:run", pk=pk)
        return HttpResponse(headers={"HX-Refresh": "true"})
    live = queries.get_progress(found)
    context = {"run": found, "polled": True, **_results(found), "live": live}
    answer = render(request, "runs/run.html#progress", context)
    if request.GET.get("done") not in (None, str(live["done"])):
        answer["HX-Trigger"] = "responses-stored"
    return answer


@require_POST
@permission_required(CHANGE, raise_exception=True)
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    found = queries.get_visible_run(request.user, pk)
    ended_before = found.status in ENDED
    cancel_run(run=found)
    if ended_before:
        messages.warning(request, "The run had already ended.")
    elif found.status == Run.Status.CANCELLED:
        messages.success(request, "The run is cancelled. Stored responses are kept.")
    else:
        messages.success(request, "The run will stop within seconds. Stored responses are kept.")
    return redirect("runs:run", pk=pk)


@require_POST
@permission_required(CHANGE, raise_exception=True)
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    found = queries.get_visible_run(request.user, pk)
    if is_run_complete(found):
        messages.info(request, "The run is complete: no response is missing or errored.")
    elif resume_run(run=found):
        dispatch_run(run=found)
        messages.success(request, "The run is resumed: missing and errored responses are requested again.")
    else:
        messages.warning(request, "The run is already in progress.")
    return redirect("runs:run", pk=pk)


@require_safe
def report(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the report as one HTML file without external resources."""
    found = queries.get_visible_run(request.user, pk)
    return HttpResponse(
        render_html(found, user=request.user),
        headers={"Content-Disposition": f'attachment; filename="run-{found.pk}.html"'},
    )


@require_safe
def failures(request: HttpRequest, pk: int) -> HttpResponse | FileResponse:
    """Return the failing cases in `?format=` as a file; the filters are those of the list of responses."""
    found = queries.get_exportable_run(request.user, pk)
    form = FailuresFilter(request.GET)
    try:
        answer = download_failures(found, **form.values())
    except UserError as error:
        advice = " Select it in the filters of the responses." if error.path in ("environment", "model") else ""
        messages.error(request, f"{error}{advice}")
        kept = {name: value for name, value in form.chosen.items() if value and name != "format"}
        query = f"?{urlencode(kept)}" if kept and form.is_valid() else ""
        return redirect(f"{reverse('runs:run', args=[pk])}{query}")
    if answer.left_out:
        messages.warning(request, f"The downloaded file is incomplete. {answer.left_out}")
    return answer
