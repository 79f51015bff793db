"""Pages of runs: list, one run and its progress, downloads; cancelling and resuming a run."""

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.cache import cache
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_POST, require_safe

from hub.common.errors import UserError
from hub.common.web.pagination import keyset_page, order_of, page_or_part, render_list
from hub.common.web.users import signed_in_user
from hub.teams.membership import list_targets
from hub.web.audited import record_move, record_nothing
from runs.description import describe_run, may_describe, tags_of
from runs.exports import ROLLOUT_FORMATS, RolloutSelection
from runs.missing import count_too_long, is_run_complete
from runs.models import ENDED, Response, Run
from runs.reports import stage_sentences
from runs.reports.document import known_cost
from runs.reports.files import REPORT_FILES
from runs.reports.page import results_for_page
from runs.rescoring import create_rescoring
from runs.results.outcomes import outcome_of, outcomes_of
from runs.selectors import (
    find_environment_of_another_team,
    may_delete,
    shown_config,
    shown_summaries,
    visible_runs,
    withheld_environments,
)
from runs.services import RunActive, RunInProgress, cancel_run, delete_run, move_run, resume_run
from runs.spending import BudgetError, budget_of, is_budget_spent
from runs.tracking.mlflow_links import mlflow_run_id, mlflow_url
from runs.web import queries
from runs.web.downloads import download_failures, download_report, download_run_rollouts, failure_formats
from runs.web.forms import (
    DescriptionForm,
    FailuresFilter,
    ResponsesFilter,
    ResumeForm,
    RunRolloutsFilter,
    RunsFilter,
)
from runs.web.live import LiveRun, get_live_run
from runs.web.notices import notify_workers
from runs.web.pilots import find_continuation
from runs.web.progress import get_missing

RUNS_PER_PAGE, RESPONSES_PER_PAGE = 30, 40
_RENDERED_S = 5
ADD, CHANGE = "runs.add_run", "runs.change_run"


@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """List runs, filtered by `?q=&status=&environment=&model=&tag=&team=` and sorted by `?sort=`."""
    form = RunsFilter(request.GET, user=request.user)
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


@require_safe
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the results or the progress of a run, and its responses by `?status=&environment=&model=&flag=&q=&sort=`."""
    found = queries.get_visible_run(request.user, pk)
    form = ResponsesFilter(request.GET)
    chosen = form.chosen
    order = order_of(request, queries.RESPONSE_COLUMNS)
    environments = queries.list_environments(found)
    rows = Response.objects.none()
    if form.is_valid():
        rows = queries.filter_responses(request.user, found, environments, form.filters(), form.values()["status"])
    page = keyset_page(rows, request, by="id", size=RESPONSES_PER_PAGE, order=order)
    queries.set_environments(page.rows, environments)
    queries.hide_withheld_reasons(request.user, page.rows)
    context = {
        "run": found,
        "form": form,
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "order": order,
        "responses": page,
        "attempts": found.attempts,
        "several": len(environments) > 1,
        "ended": found.status in ENDED,
        "report_files": REPORT_FILES,
        "formats": failure_formats(),
        "rollout_formats": {key: item.summary for key, item in ROLLOUT_FORMATS.items()},
        "filters": form.query_string(),
    }
    template = page_or_part(request, "runs/run.html", "responses")
    context["is_partial"] = template != "runs/run.html"
    if not context["is_partial"]:
        context |= _page(request, found)
    return render_list(request, template, context, form)


def _page(request: HttpRequest, run: Run) -> dict[str, object]:
    """Return what the page of a run shows besides its responses."""
    summaries = shown_summaries(run, request.user)
    context = {
        **_results(request, run),
        **_description(request, run),
        **_actions(request, run),
        "environments": run.environments.select_related("version__environment").order_by("position"),
        "models": run.models.order_by("role", "position"),
        "budget_changes": [{**change, "at": parse_datetime(change["at"])} for change in run.budget_changes],
        "mlflow": mlflow_url(request.user, run),
        "mlflow_run_id": mlflow_run_id(request.user, run),
        "config": shown_config(run, request.user),
        "stage_sentences": stage_sentences(summaries),
        "summaries": summaries,
    }
    if run.status not in ENDED:
        context["live"] = get_live_run(request.user, run)
    if run.rescored_from_id is not None:
        context["source_visible"] = visible_runs(request.user).filter(pk=run.rescored_from_id).exists()
    return context


def _description(request: HttpRequest, run: Run) -> dict[str, object]:
    """Return the tags of a run, and the form for name, tags and note if the user may change them."""
    tags = tags_of(run)
    if not may_describe(request.user, run):
        return {"tags": tags}
    given = {"name": run.name, "tags": ", ".join(tags), "note": run.note}
    refused = request.session.pop(_refused_description(run), None)
    return {
        "tags": tags,
        "description_form": DescriptionForm(initial=refused or given),
        "description_refused": refused is not None,
    }


def _actions(request: HttpRequest, run: Run) -> dict[str, object]:
    """Return what the user may do with a run, and what the page says about it."""
    ended, may_add, may_change = run.status in ENDED, request.user.has_perm(ADD), request.user.has_perm(CHANGE)
    context: dict[str, object] = {
        "may_add": may_add,
        "may_change": may_change,
        "may_delete": ended and may_delete(request.user, run),
        "team_targets": list_targets(request.user, run, run.created_by_id) if ended else [],
        "missing": get_missing(run),
        "continuation": find_continuation(request.user, run) if may_add else None,
    }
    if may_change and ended:
        context["too_long"] = count_too_long(run)
    if may_change and is_budget_spent(run):
        context["spent_budget"] = budget_of(run)
    return context


def _results(request: HttpRequest, run: Run) -> dict[str, object]:
    """Return the outcome of a run, and its results if they are available.

    Results are shown only if all responses are stored, because intervals of a part of them would mislead.
    """
    evaluated = run.evaluated_at is not None
    context: dict[str, object] = {"evaluated": evaluated, "outcome": outcome_of(run)}
    if run.status in ENDED or evaluated:
        withheld = set(withheld_environments(request.user, run).values_list("pk", flat=True))
        results = results_for_page(run, withheld=withheld, user=request.user)
        context |= {"results": results, "cost": known_cost(run)}
    return context


@require_safe
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the progress and status of a run, which its page requests again and again until the run has ended.

    The page is reloaded when the results are available, and again when the run has ended. The response is empty (204)
    if the page shows the present state already, the version `?seen=`. The list of responses is reloaded if the number
    of stored responses differs from `?done=`, the number that the page shows.
    """
    found = queries.get_visible_run(request.user, pk)
    results_appeared = found.evaluated_at is not None and "done" in request.GET
    if found.status in ENDED or results_appeared:
        if not getattr(request, "htmx", False):
            return redirect("runs:run", pk=pk)
        return HttpResponse(headers={"HX-Refresh": "true"})
    live = get_live_run(request.user, found)
    if request.GET.get("seen") == live.version:
        return HttpResponse(status=204)
    answer = HttpResponse(_rendered_progress(found, live))
    if request.GET.get("done") not in (None, str(live.snapshot.progress["done"])):
        answer["HX-Trigger"] = "responses-stored"
    return answer


def _rendered_progress(run: Run, live: LiveRun) -> str:
    """Return the progress as HTML. It is rendered once for each version, for all who watch the run."""
    key = f"run-progress:{run.pk}:{live.version}"
    rendered: str | None = cache.get(key)
    if rendered is None:
        context = {"run": run, "polled": True, "outcome": outcome_of(run), "live": live}
        context["evaluated"] = run.evaluated_at is not None
        rendered = render_to_string("runs/run.html#progress", context)
        cache.set(key, rendered, _RENDERED_S)
    return rendered


@require_POST
@permission_required(CHANGE, raise_exception=True)
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    found = queries.get_visible_run(request.user, pk)
    if not cancel_run(run=found):
        messages.warning(request, "The run had already ended.")
        return record_nothing(redirect("runs:run", pk=pk))
    if found.status == Run.Status.CANCELLED:
        messages.success(request, "The run is cancelled. Stored responses are kept.")
    else:
        messages.success(request, "The run will stop within seconds. Stored responses are kept.")
    return redirect("runs:run", pk=pk)


@require_POST
@permission_required(CHANGE, raise_exception=True)
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    found = queries.get_visible_run(request.user, pk)
    form = ResumeForm(request.POST)
    is_valid = form.is_valid()
    retry_too_long = form.cleaned_data["retry_too_long"]
    if is_run_complete(found, retry_too_long=retry_too_long):
        unchanged = " Its budget is unchanged." if request.POST.get("budget_usd") else ""
        messages.info(request, f"The run is complete: no response is to be requested.{unchanged}")
        return record_nothing(redirect("runs:run", pk=pk))
    try:
        if not is_valid:
            raise BudgetError("The new budget is not an amount of US dollars, such as 20.")
        resumed = resume_run(
            run=found,
            budget_usd=form.cleaned_data["budget_usd"],
            user=signed_in_user(request),
            retry_too_long=retry_too_long,
        )
    except UserError as error:
        messages.error(request, error.message)
        return record_nothing(redirect("runs:run", pk=pk))
    if not resumed:
        messages.warning(request, RunInProgress(found).message)
        return record_nothing(redirect("runs:run", pk=pk))
    if notify_workers(request, found):
        messages.success(request, "The run is resumed: missing and errored responses are requested again.")
    return redirect("runs:run", pk=pk)


@require_POST
@permission_required(ADD, raise_exception=True)
def rescore(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue a run that scores the stored responses of this one again."""
    found = queries.get_visible_run(request.user, pk)
    try:
        rescoring = create_rescoring(run=found, user=signed_in_user(request))
    except UserError as error:
        messages.error(request, str(error))
        return record_nothing(redirect("runs:run", pk=pk))
    notify_workers(request, rescoring.run)
    messages.success(request, " ".join(["The stored responses are scored again.", *rescoring.notes()]))
    return redirect("runs:run", pk=rescoring.run.pk)


@require_POST
def describe(request: HttpRequest, pk: int) -> HttpResponse:
    """Change name, tags and note of a run."""
    found = queries.get_visible_run(request.user, pk)
    queries.check_may_describe(request.user, found)
    form = DescriptionForm(request.POST)
    if not form.is_valid():
        request.session[_refused_description(found)] = {name: request.POST.get(name, "") for name in form.fields}
        for field, problems in form.errors.items():
            messages.error(request, f"{field.capitalize()}: {' '.join(map(str, problems))} Nothing was changed.")
        return record_nothing(redirect("runs:run", pk=pk))
    describe_run(run=found, **form.cleaned_data)
    messages.success(request, "Name, tags and note are stored.")
    return redirect("runs:run", pk=pk)


def _refused_description(run: Run) -> str:
    """Return the key of the session for a description that was not stored, so that the form shows it again."""
    return f"refused_description_{run.pk}"


@require_POST
def move(request: HttpRequest, pk: int) -> HttpResponse:
    """Move a run to another team."""
    found = queries.get_visible_run(request.user, pk)
    try:
        move_run(run=found, team=queries.find_target(signed_in_user(request), found, request.POST.get("team", "")))
    except UserError as error:
        messages.error(request, error.message)
        return record_nothing(redirect("runs:run", pk=pk))
    messages.success(request, f"The run belongs to {found.team.name}." if found.team else "The run is shared.")
    environment = find_environment_of_another_team(found)
    if environment is not None:
        messages.warning(
            request,
            f"But its environment {environment.slug} belongs to the team {environment.team}, so only members of that "
            "team see the run. Move the environment, too.",
        )
    response = redirect("runs:run", pk=pk)
    record_move(response, request.path, found.team)
    return response


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a run that has ended. It can be restored in the admin."""
    found = queries.get_visible_run(request.user, pk)
    queries.check_may_delete(request.user, found)
    try:
        delete_run(run=found, user=signed_in_user(request))
    except RunActive as error:
        messages.warning(request, str(error))
        return record_nothing(redirect("runs:run", pk=pk))
    messages.success(request, f"Run {pk} is deleted. An administrator can restore it.")
    return redirect("runs:list")


@require_safe
def report(request: HttpRequest, pk: int) -> FileResponse:
    """Return the report as a file in `?format=`: html (without external resources), markdown or junit."""
    file = REPORT_FILES.get(request.GET.get("format", "html"))
    if file is None:
        raise Http404(f"Formats of reports are {', '.join(REPORT_FILES)}.")
    return download_report(file, queries.get_reportable_run(request.user, pk, file), request.user)


@require_safe
def failures(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return the failing cases in `?format=` as a file; the filters are those of the list of responses."""
    found = queries.get_exportable_run(request.user, pk)
    form = FailuresFilter(request.GET)
    try:
        download = download_failures(found, form.filters(), format=form.format_name)
    except UserError as error:
        advice = " Select it in the filters of the responses." if error.path in ("environment", "model") else ""
        messages.error(request, f"{error}{advice}")
        query = form.query_string(without=["format"]) if form.is_valid() else ""
        return record_nothing(redirect(f"{reverse('runs:run', args=[pk])}{f'?{query}' if query else ''}"))
    if download.left_out:
        messages.warning(request, f"The downloaded file is incomplete. {download.left_out}")
    return download.response


@require_safe
def rollouts(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return the scored responses in `?format=` as a file to train on."""
    found = queries.get_exportable_run(request.user, pk)
    try:
        given = RunRolloutsFilter(request.GET).values()
        selection = RolloutSelection(environment=given["environment"], model=given["model"])
        download = download_run_rollouts(found, selection, format=given["format"])
    except UserError as error:
        messages.error(request, str(error))
        return record_nothing(redirect("runs:run", pk=pk))
    if download.left_out:
        messages.warning(request, f"The downloaded file is incomplete. {download.left_out}")
    return download.response
