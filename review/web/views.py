"""The review pages: the queue's next pair, a pair, and everything a reviewer does there."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from hub.common.pagination import page_or_part, render_part
from review import decisions
from review.links import PAIRS_SHOWN, response_judgments, run_judgments
from review.models import Assignment, Pair
from review.queue import assignments
from review.queue.backlog import held_by_others, review_progress
from review.queue.blinding import DECIDE
from review.services import pairs_with_responses
from review.web.forms import DecisionForm
from review.web.page import page_of
from runs.selectors import visible_runs
from runs.tracking.links import mlflow_url, mlflow_url_of
from runs.web.queries import response_of, run_of

reviewer_only = permission_required(DECIDE, raise_exception=True)


def _user(request: HttpRequest) -> User:
    assert request.user.is_authenticated
    return request.user


def run_number(text: str) -> int | None:
    """The number of a run out of an address; None if there is none. Raises Http404 if it is no number."""
    if not text:
        return None
    if not text.isdecimal() or len(text) > 15:
        raise Http404(f"{text[:40]!r} is not the number of a run.")
    return int(text)


def visible_pair(user: User | AnonymousUser, pk: int) -> Pair:
    """The pair with all it shows. Raises Http404 where there is none that *user* may see."""
    visible = visible_runs(user).order_by().filter(pk=OuterRef("run_id"))
    found = pairs_with_responses(Pair.objects.filter(Exists(visible), pk=pk))
    if not found:
        raise Http404(f"There is no pair {pk}, or it is of an environment that is private to somebody else.")
    return found[0]


def _held(request: HttpRequest, pk: int) -> Assignment | None:
    """The seat that whoever asks has or had at a pair that they may see."""
    visible = visible_runs(request.user).order_by().filter(pk=OuterRef("pair__run_id"))
    return Assignment.objects.filter(Exists(visible), pair_id=pk, reviewer=_user(request)).first()


def _run(request: HttpRequest) -> int | None:
    """The run to which the reviewer keeps, by `?run=` or the forms' own field."""
    return run_number(request.GET.get("run") or request.POST.get("run", ""))


def _shown(
    request: HttpRequest, assignment: Assignment, form: DecisionForm | None = None, status: int = 200
) -> HttpResponse:
    assignment.reviewer = _user(request)
    context = page_of(assignment, form, run=_run(request))
    return render(request, "review/pair.html", context, status=status)


def _taken(request: HttpRequest, why: str) -> HttpResponse:
    """That a seat is gone, with what was typed for it: nothing that somebody wrote is lost with a lease."""
    typed = [(label, text) for name, label in _TYPED if (text := _entered(request, name).strip())]
    return render(request, "review/taken.html", {"why": why, "typed": typed}, status=_status(request, 409))


def _status(request: HttpRequest, status: int) -> int:
    """htmx swaps in only what succeeded; a page that says what is wrong is to be swapped in, too."""
    return 200 if request.headers.get("HX-Request") else status


_TYPED = (("critique", "Your critique"), ("defect", "What is wrong with the tests"))


@require_safe
@reviewer_only
def start(request: HttpRequest) -> HttpResponse:
    """On to the next pair, or what the empty queue means. `?run=` keeps to one run."""
    run = _run(request)
    assignment = assignments.claim_next_pair(_user(request), run=run)
    return _empty(request, run) if assignment is None else redirect(_address(assignment, run))


def _empty(request: HttpRequest, run: int | None) -> HttpResponse:
    user = _user(request)
    context = {"progress": review_progress(user, run=run), "run": run, "held": held_by_others(user, run=run)}
    return render(request, "review/empty.html", context)


def _address(assignment: Assignment | None, run: int | None) -> str:
    address = reverse("review:pair", args=[assignment.pair_id]) if assignment else reverse("review:next")
    return address if run is None else f"{address}?{urlencode({'run': run})}"


@require_safe
@reviewer_only
def pair(request: HttpRequest, pk: int) -> HttpResponse:
    """One pair, at the seat that whoever asks has; without one it can be looked at, which takes no seat."""
    shown = visible_pair(request.user, pk)
    assignment = assignments.current_assignment(shown, _user(request))
    if assignment is None:
        return _looked_at(request, shown)
    assignment.pair = shown
    return _shown(request, assignment)


def _looked_at(request: HttpRequest, pair: Pair) -> HttpResponse:
    free, until = assignments.pair_availability(pair)
    context = page_of(assignments.preview_assignment(pair, _user(request)), run=_run(request))
    return render(request, "review/pair.html", {**context, "looking": True, "free": free, "until": until})


@require_POST
@reviewer_only
def take(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a seat at one pair, in the place of the one held, and go there."""
    try:
        assignment = assignments.claim_pair(visible_pair(request.user, pk), _user(request))
    except assignments.AssignmentLost as error:
        return _taken(request, str(error))
    return redirect(_address(assignment, _run(request)))


@require_safe
def of_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Pairs and judgments of a run: a fragment of its page, or a page of its own."""
    run = run_of(request.user, pk)
    context = {
        "run": run,
        "trace": run_judgments(run),
        "mlflow": mlflow_url(request.user, run),
    }
    return render_part(request, page_or_part(request, "review/of_run.html", "judged"), context)


@require_safe
def of_response(request: HttpRequest, pk: int) -> HttpResponse:
    """Pairs and judgments of a response: a fragment of its page, or a page of its own."""
    response = response_of(request.user, pk)
    pairs = response_judgments(request.user, response)
    context = {
        "response": response,
        "run": response.run_environment.run,
        "pairs": pairs,
        "more": len(pairs) == PAIRS_SHOWN,
        "mlflow": mlflow_url_of(request.user, response),
    }
    return render_part(request, page_or_part(request, "review/of_response.html", "judged"), context)


@require_POST
@reviewer_only
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the decision, then the next pair; what is wrong with it is shown where it was entered."""
    try:
        assignment = _assignment_for_decision(request, pk)
    except assignments.AssignmentLost as error:
        return _taken(request, str(error))
    given = request.POST.copy()
    if "accept" in given:  # the button that accepts the suggestion needs no verdict chosen
        given["verdict"] = given.get("accept", "")
    form = DecisionForm(given)
    stored = None
    if form.is_valid():
        try:
            stored = decisions.decide(assignment=assignment, decision=form.decision(assignment))
        except decisions.DecisionRefused as error:
            form.add_error(error.path if error.path in form.fields else None, str(error))
        except assignments.AssignmentLost as error:
            _keep(request, assignment)
            return _taken(request, str(error))
    if stored is not None:
        return _onwards(request)
    assignment.refresh_from_db()
    assignment.pair = visible_pair(request.user, pk)
    return _shown(request, assignment, form, _status(request, 200 if form.is_valid() else 422))


def _assignment_for_decision(request: HttpRequest, pk: int) -> Assignment:
    """Return the assignment to decide, claiming the pair if necessary. Raises AssignmentLost."""
    assignment = _held(request, pk)
    if assignment is not None and assignment.state in (assignments.OPEN, assignments.DONE):
        return assignment
    pair = visible_pair(request.user, pk)
    try:
        return assignments.claim_pair(pair, _user(request))
    except assignments.AssignmentLost:
        if assignment is None:
            raise
        _keep(request, assignment)
        raise assignments.AssignmentLost("Your seat at this pair has lapsed, and others have it now.") from None


def _keep(request: HttpRequest, assignment: Assignment) -> None:
    """Keep what was entered as the draft of a seat that is gone, for when it is taken again."""
    Assignment.objects.filter(pk=assignment.pk, state=assignments.LAPSED).update(draft=_draft(request))


def _draft(request: HttpRequest) -> dict[str, Any]:
    kept: dict[str, Any] = {key: _entered(request, key) for key in ("verdict", "critique", "defect", "issues")}
    kept["kept"] = request.POST.getlist("kept")[:200]
    return kept


def _onwards(request: HttpRequest) -> HttpResponse:
    """To the next pair, whose seat is taken here and now; htmx gets its page as the answer, one request less."""
    run = _run(request)
    assignment = assignments.claim_next_pair(_user(request), run=run)
    address = _address(assignment, run)
    if not request.headers.get("HX-Request"):
        return redirect(address)
    if assignment is None:
        answer = _empty(request, run)
    else:
        assignment.pair = pairs_with_responses(Pair.objects.filter(pk=assignment.pair_id))[0]
        answer = _shown(request, assignment)
    answer["HX-Push-Url"] = address
    return answer


@require_POST
@reviewer_only
def skip(request: HttpRequest, pk: int) -> HttpResponse:
    assignment = _held(request, pk)
    if assignment is not None:
        try:
            assignments.skip_pair(assignment=assignment, reason=_entered(request, "reason").strip())
        except assignments.AssignmentLost as error:
            messages.warning(request, str(error))
    return _onwards(request)


def _entered(request: HttpRequest, name: str) -> str:
    """A field as it was sent, without the one character that no database takes."""
    return request.POST.get(name, "")[:200_000].replace("\x00", "")


@require_POST
@reviewer_only
def undo(request: HttpRequest) -> HttpResponse:
    assignment = decisions.undo_last(user=_user(request))
    if assignment is None:
        messages.warning(request, "There is nothing to take back.")
        return _onwards(request)
    messages.info(request, "Taken back: your earlier verdict stands until you give another.")
    return redirect(_address(assignment, _run(request)))


@require_POST
@reviewer_only
def draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep what was entered so far; this is the heartbeat of the seat, too."""
    assignment = _held(request, pk)
    try:
        if assignment is None:
            raise assignments.AssignmentLost("You hold no seat at this pair.")
        assignments.save_draft(assignment=assignment, draft=_draft(request))
    except assignments.AssignmentLost as error:
        return HttpResponse(str(error), status=409, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)
