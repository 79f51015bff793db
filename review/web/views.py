"""Pages of the review queue: the next pair, one pair, and the actions of its reviewer."""

from collections.abc import Collection
from contextlib import suppress
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hub.common.storable import storable
from hub.common.web.pagination import page_or_part, render_part
from hub.common.web.users import signed_in_user
from hub.protocols.messages import JSON
from hub.selectors import may_see_content
from hub.web.audited import record_nothing
from preferences.decision_fields import decision_fields
from preferences.selectors import visible_preferences
from review import decisions
from review.errors import AlreadyDecided, InvalidDecision
from review.models import Assignment, Pair
from review.queue import assignments
from review.queue.backlog import pairs_assigned_to_others, review_progress
from review.queue.blinding import DECIDE
from review.queue.loading import find_assignment, load_responses
from review.selectors import (
    PAIRS_SHOWN,
    list_judge_calls,
    list_response_pairs,
    summarize_run_pairs,
)
from review.web.forms import DecisionForm, describe_marks
from review.web.page import ENTERED, pair_context, pair_view, posted_kept
from review.web.queries import get_visible_pair
from runs.selectors import visible_runs
from runs.tracking.mlflow_links import mlflow_url, mlflow_url_of
from runs.web.queries import get_visible_response, get_visible_run

reviewer_only = permission_required(DECIDE, raise_exception=True)


def run_number(text: str) -> int | None:
    """Parse a run id from a query parameter; None if it is empty. Raises Http404 if it is not a number."""
    if not text:
        return None
    if not text.isdecimal() or len(text) > 15:
        raise Http404(f"{text[:40]!r} is not a run id. Use the number shown on the run's page.")
    return int(text)


def _assignments_of(request: HttpRequest, pk: int) -> QuerySet[Assignment]:
    visible = visible_runs(request.user).order_by().filter(pk=OuterRef("pair__run_id"))
    return Assignment.objects.filter(Exists(visible), pair_id=pk, reviewer=signed_in_user(request))


def _assignment_of(request: HttpRequest, pk: int) -> Assignment | None:
    """Return the assignment, open or not, of the requesting user for a pair that they may see, with the pair."""
    assignment = find_assignment(_assignments_of(request, pk))
    if assignment is not None:
        assignment.reviewer = signed_in_user(request)
    return assignment


def _run_filter(request: HttpRequest) -> int | None:
    """Return the run that limits the queue, from `?run=` or the form field `run`."""
    return run_number(request.GET.get("run") or request.POST.get("run", ""))


def _render_pair(
    request: HttpRequest,
    assignment: Assignment,
    form: DecisionForm | None = None,
    status: int = 200,
    runs: Collection[int] | None = None,
) -> HttpResponse:
    assignment.reviewer = signed_in_user(request)
    context = pair_context(assignment, form, run=_run_filter(request), view=pair_view(request), runs=runs)
    return render(request, "review/pair.html", context, status=status)


def _render_not_stored(request: HttpRequest, title: str, why: str) -> HttpResponse:
    """Report that a decision was not stored, and show the texts that were entered so that they can be copied."""
    context = {"title": title, "why": why, "typed": _posted_texts(request), "run": _run_filter(request)}
    return record_nothing(render(request, "review/not_stored.html", context, status=_htmx_status(request, 409)))


def _render_assignment_lost(request: HttpRequest, why: str) -> HttpResponse:
    return _render_not_stored(request, "This pair is not assigned to you", why)


def _posted_texts(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the label and the text of each free text that was posted and is not blank, and the marks as one text."""
    labels = {field.name: f"Your {field.verbose_name}" for field in decision_fields()}
    labels["defect"] = "What is wrong with the tests"
    texts = [(label, _posted_text(request, name).strip()) for name, label in labels.items()]
    texts.append(("Your marks", describe_marks(_posted_text(request, "issues"))))
    return [(label, text) for label, text in texts if text]


def _htmx_status(request: HttpRequest, status: int) -> int:
    """Return 200 for htmx requests, because htmx does not swap in responses with an error status."""
    return 200 if request.headers.get("HX-Request") else status


@require_safe
@reviewer_only
def next_pair(request: HttpRequest) -> HttpResponse:
    """Redirect to the next pair, or show the empty queue. `?run=` limits the queue to one run.

    Raises Http404 if the run does not exist or the user may not see it.
    """
    run = _run_filter(request)
    assignment = assignments.claim_next_pair(signed_in_user(request), run=run).assignment
    if assignment is not None:
        return redirect(_pair_url(assignment, run))
    if run is not None:
        get_visible_run(request.user, run)  # raises Http404 with the reason
    return _render_empty_queue(request, run)


def _render_empty_queue(request: HttpRequest, run: int | None) -> HttpResponse:
    user = signed_in_user(request)
    context = {
        "progress": review_progress(user, run=run),
        "run": run,
        "run_has_pairs": run is not None and Pair.objects.filter(run=run).exists(),
        "held": pairs_assigned_to_others(user, run=run),
    }
    return render(request, "review/empty.html", context)


def _pair_url(assignment: Assignment | None, run: int | None) -> str:
    return _with_run(reverse("review:pair", args=[assignment.pair_id]) if assignment else reverse("review:next"), run)


def _with_run(address: str, run: int | None) -> str:
    return address if run is None else f"{address}?{urlencode({'run': run})}"


def _redirect_to_pair(request: HttpRequest, pk: int) -> HttpResponse:
    return redirect(
        _with_run(reverse("review:pair", args=[get_visible_pair(request.user, pk).pk]), _run_filter(request))
    )


@require_safe
@reviewer_only
def pair(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one pair to its reviewer. Users without an assignment see a preview, which does not claim the pair."""
    assignment = _assignment_of(request, pk)
    if assignment is not None and assignments.is_current(assignment):
        return _render_pair(request, assignment)
    return _render_preview(request, assignment.pair if assignment is not None else get_visible_pair(request.user, pk))


def _render_preview(request: HttpRequest, pair: Pair) -> HttpResponse:
    claimable, assigned_until = assignments.pair_availability(pair)
    context = pair_context(
        assignments.preview_assignment(pair, signed_in_user(request)), run=_run_filter(request), view=pair_view(request)
    )
    context |= {"preview": True, "claimable": claimable, "assigned_until": assigned_until}
    return render(request, "review/pair.html", context)


@require_http_methods(["GET", "POST"])
@reviewer_only
def take(request: HttpRequest, pk: int) -> HttpResponse:
    """Claim a pair, releasing the current assignment, and redirect to it. GET only redirects, for reloads."""
    if request.method == "GET":
        return _redirect_to_pair(request, pk)
    try:
        assignment = assignments.claim_pair(get_visible_pair(request.user, pk), signed_in_user(request))
    except assignments.AssignmentLost as error:
        return _render_assignment_lost(request, str(error))
    return redirect(_pair_url(assignment, _run_filter(request)))


@require_safe
def of_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the pairs and verdicts of a run, as a fragment of the run page or as a page."""
    run = get_visible_run(request.user, pk)
    context = {
        "run": run,
        "counts": summarize_run_pairs(run),
        "mlflow": mlflow_url(request.user, run),
    }
    return render_part(request, page_or_part(request, "review/of_run.html", "judged"), context)


@require_safe
def of_response(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the pairs and verdicts of a response, as a fragment of the response page or as a page."""
    response = get_visible_response(request.user, pk)
    pairs = list_response_pairs(request.user, response)
    context = {
        "response": response,
        "run": response.run_environment.run,
        "pairs": pairs,
        "more": len(pairs) == PAIRS_SHOWN,
        "mlflow": mlflow_url_of(request.user, response),
    }
    return render_part(request, page_or_part(request, "review/of_response.html", "judged"), context)


@require_safe
def judge_calls(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the calls of the judge behind a preference, as a fragment of the preference's page or as a page."""
    preference = visible_preferences(request.user, superseded=True).filter(pk=pk).first()
    if preference is None:
        raise Http404(f"There is no preference {pk}, or you may not see it.")
    context = {
        "preference": preference,
        "calls": list_judge_calls(preference),
        "content": may_see_content(request.user, preference.version.environment),
    }
    return render_part(request, page_or_part(request, "review/judge_calls.html", "calls"), context)


@require_http_methods(["GET", "POST"])
@reviewer_only
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Store the decision and continue with the next pair, or show the form again with its errors.

    GET, for example a reload of the form with its errors, redirects to the pair.
    """
    if request.method == "GET":
        return _redirect_to_pair(request, pk)
    try:
        assignment = _assignment_for_decision(request, pk)
    except assignments.AssignmentLost as error:
        return _render_assignment_lost(request, str(error))
    form = _posted_decision(request)
    if form.is_valid() and (response := _store_decision(request, assignment, form)) is not None:
        return response
    with suppress(assignments.AssignmentLost):  # the form is shown again, so a reload must not lose what it contains
        assignments.save_draft(assignment=assignment, draft=_posted_draft(request))
    assignment.refresh_from_db()
    assignment.pair = get_visible_pair(request.user, pk)
    status = _htmx_status(request, 200 if form.is_valid() else 422)
    return record_nothing(_render_pair(request, assignment, form, status))


def _posted_decision(request: HttpRequest) -> DecisionForm:
    given = request.POST.copy()
    if "accept" in given:  # the Accept button sends the verdict itself
        given["verdict"] = given.get("accept", "")
    return DecisionForm(given)


def _store_decision(request: HttpRequest, assignment: Assignment, form: DecisionForm) -> HttpResponse | None:
    """Store a valid decision and respond with the next pair, or with the reason why it cannot be stored.

    Returns None if the form has to be shown again: it has got an error, or the reviewer confirms the first verdict.
    """
    try:
        stored = decisions.decide(assignment=assignment, decision=form.decision(assignment))
    except InvalidDecision as error:
        form.add_error(error.path if error.path in form.fields else None, str(error))
        return None
    except AlreadyDecided as error:
        if _posted_texts(request):
            return _render_not_stored(request, "You had already decided this pair", str(error))
        messages.warning(request, str(error))
        return record_nothing(_respond_with_next_pair(request))
    except assignments.AssignmentLost as error:
        assignments.keep_lapsed_draft(assignment=assignment, draft=_posted_draft(request))
        return _render_assignment_lost(request, str(error))
    return _respond_with_next_pair(request) if stored is not None else None


def _assignment_for_decision(request: HttpRequest, pk: int) -> Assignment:
    """Return the assignment to decide, claiming the pair if necessary. Raises AssignmentLost."""
    assignment = _assignment_of(request, pk)
    if assignment is not None and assignment.state in (assignments.OPEN, assignments.DONE):
        return assignment
    pair = get_visible_pair(request.user, pk)
    try:
        claimed = assignments.claim_pair(pair, signed_in_user(request))
    except assignments.AssignmentLost:
        if assignment is None:
            raise
        assignments.keep_lapsed_draft(assignment=assignment, draft=_posted_draft(request))
        raise assignments.AssignmentLost(
            "Your assignment of this pair has lapsed, and other reviewers have it now."
        ) from None
    claimed.pair = pair
    return claimed


def _posted_draft(request: HttpRequest) -> dict[str, JSON]:
    texts = {key: _posted_text(request, key) for key in ENTERED}
    return {**texts, "kept": posted_kept(request.POST)}


def _respond_with_next_pair(request: HttpRequest) -> HttpResponse:
    """Claim the next pair and redirect to it. For htmx, render its page at once, which saves a request."""
    run = _run_filter(request)
    claimed = assignments.claim_next_pair(signed_in_user(request), run=run)
    assignment = claimed.assignment
    address = _pair_url(assignment, run)
    if not request.headers.get("HX-Request"):
        return redirect(address)
    if assignment is None:
        answer = _render_empty_queue(request, run)
    else:
        load_responses([assignment.pair])
        answer = _render_pair(request, assignment, runs=claimed.runs)
    answer["HX-Push-Url"] = address
    return answer


@require_POST
@reviewer_only
def skip(request: HttpRequest, pk: int) -> HttpResponse:
    try:
        assignment = _assignment_of(request, pk)
        if assignment is None:
            raise assignments.AssignmentLost("This pair is not assigned to you, so it was not skipped.")
        assignments.skip_pair(assignment=assignment, reason=_posted_text(request, "reason").strip())
    except assignments.AssignmentLost as error:
        messages.warning(request, str(error))
        return record_nothing(_respond_with_next_pair(request))
    if assignment.preference_id is not None:
        messages.info(request, "Your earlier verdict on the skipped pair stays in force.")
    return _respond_with_next_pair(request)


def _posted_text(request: HttpRequest, name: str) -> str:
    """Return a posted field as text that the database can store."""
    return storable(request.POST.get(name, "")[:200_000])


@require_POST
@reviewer_only
def undo(request: HttpRequest) -> HttpResponse:
    try:
        assignment = decisions.undo_last(user=signed_in_user(request))
    except assignments.AssignmentLost as error:
        messages.warning(request, f"Your last pair is not reopened. {error}")
        return record_nothing(_respond_with_next_pair(request))
    if assignment is None:
        messages.warning(request, "There is nothing to undo.")
        return record_nothing(_respond_with_next_pair(request))
    in_force = " Your earlier verdict stays in force until you submit a new one." if assignment.preference_id else ""
    messages.info(request, f"Reopened.{in_force}")
    return redirect(_pair_url(assignment, _run_filter(request)))


@require_POST
@reviewer_only
def draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Save the posted form as a draft. This also renews the lease of the assignment."""
    assignment = _assignments_of(request, pk).first()
    try:
        if assignment is None:
            raise assignments.AssignmentLost(
                "The draft was not saved: the run of this pair was deleted, or you may not see it. Copy your text."
            )
        assignments.save_draft(assignment=assignment, draft=_posted_draft(request))
    except assignments.AssignmentLost as error:
        return HttpResponse(str(error), status=409, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)
