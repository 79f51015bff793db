"""Pages of one case and of one response of a run."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from hub.protocols.messages import Tool
from hub.selectors import get_offered_tools, may_see_content
from hub.web.reading.spans import MarkedSpan
from hub.web.reading.transcripts import Marks
from runs.models import Response, Score
from runs.results.error_lines import find_error_line, without_line_number
from runs.selectors import sees_endpoints, shown_spec
from runs.web import queries

_LONG_REASON = 600  # characters; a longer reason is folded, so that it does not push the transcript down
_LONG_REASON_LINES = 8


@require_safe
def case(request: HttpRequest, pk: int, case: int) -> HttpResponse:
    """Show all responses of a run to one case side by side."""
    run = queries.get_visible_run(request.user, pk)
    rows = (
        Response.objects.filter(run_environment__run=run, case_id=case)
        .select_related("run_model", "case__version__environment", "run_environment__version__environment")
        .order_by("run_model__position", "attempt")
    )
    answers = list(rows)
    queries.hide_withheld_reasons(request.user, answers)
    if not answers:
        return redirect("runs:run", pk=pk)
    context = {"run": run, "case": answers[0].case, "answers": answers, "attempts": run.attempts}
    return render(request, "runs/case.html", context)


@require_safe
def response(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one response: transcript, scores with reasons, and execution.

    The links "previous" and "next" lead to responses of the same model and environment with the same status.
    """
    found = queries.get_visible_response(request.user, pk)
    queries.hide_withheld_reasons(request.user, [found])
    same_status = Response.objects.filter(
        run_environment_id=found.run_environment_id, run_model_id=found.run_model_id, status=found.status
    ).order_by("id")
    open_to_user = may_see_content(request.user, found.run_environment.version.environment)
    scores = list(found.scores.order_by("position"))
    context = {
        "response": found,
        "long_reason": len(found.reason) > _LONG_REASON or found.reason.count("\n") >= _LONG_REASON_LINES,
        "marks": _error_lines(found, scores) if open_to_user else {},
        "target": found.case.data.get("target") if open_to_user else None,
        "has_target": open_to_user and "target" in found.case.data,
        "open_to_user": open_to_user,
        "tools": _offered_tools(found) if open_to_user else None,
        "spec": shown_spec(found.run_model, request.user),
        "served_model": found.served_model if sees_endpoints(request.user) else "",
        "others": queries.list_responses_of_other_runs(request.user, found),
        "run": found.run_environment.run,
        "case": found.case,
        "version": found.run_environment.version,
        "scores": scores,
        "attempts": found.run_environment.run.attempts,
        "before": same_status.filter(pk__lt=pk).values_list("pk", flat=True).last(),
        "after": same_status.filter(pk__gt=pk).values_list("pk", flat=True).first(),
    }
    return render(request, "runs/response.html", context)


def _offered_tools(response: Response) -> list[Tool] | None:
    """Return the tools that were offered; None if they are not known, for example without the environment's archive."""
    try:
        return get_offered_tools(response.run_environment.version, response.case)
    except ValueError:  # an old manifest, or an archive that cannot be read; the page works without it
        return None


def _error_lines(response: Response, scores: list[Score]) -> Marks:
    """Return marks for the lines of the answer that made its code fail, labelled with the failed test."""
    marks: dict[tuple[int, int | None], list[MarkedSpan]] = {}
    for score in scores:
        error_line = find_error_line(response, score)
        if error_line is not None:
            test = ((score.execution or {}).get("failure") or {}).get("test")
            label = "\n".join(filter(None, [test, without_line_number(score.reason)]))
            marks.setdefault((error_line.message, None), []).append(
                MarkedSpan(error_line.start, error_line.end, "error-line", label)
            )
    return marks


@require_safe
def raw(request: HttpRequest, pk: int) -> JsonResponse:
    """Return the stored transcript as JSON."""
    found = queries.get_visible_response(request.user, pk)
    return JsonResponse(
        {"response": found.pk, "messages": found.messages, "text": found.text},
        json_dumps_params={"indent": 1, "ensure_ascii": False},
    )
