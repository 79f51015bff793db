"""The review pages: the queue's next pair, a pair, and everything a reviewer does there."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import AnonymousUser, User
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from hub.rendering import markdown_html
from preferences.evidence import evidence_of
from preferences.selectors import categories
from preferences.spans import text_of
from review import queue
from review.display import (
    Mark,
    Turn,
    diff_lines,
    evidence_rows,
    final_text,
    opening_length,
    text_html,
    turns_of,
)
from review.forms import DecisionForm
from review.models import Assignment, Guideline, Pair
from review.services import pairs_whole
from runs.browsing import runs_visible
from runs.models import Response

DECIDE = "review.decide_pair"
reviewer_only = permission_required(DECIDE, raise_exception=True)


def _user(request: HttpRequest) -> User:
    assert request.user.is_authenticated
    return request.user


def pair_visible(user: User | AnonymousUser, pk: int) -> Pair:
    """The pair with all it shows. Raises Http404 where there is none that *user* may see."""
    found = pairs_whole([pk])
    if not found or not runs_visible(user).filter(pk=found[0].run_id).exists():
        raise Http404(f"There is no pair {pk}, or it is of an environment that is private to somebody else.")
    return found[0]


@require_safe
@reviewer_only
def start(request: HttpRequest) -> HttpResponse:
    """On to the next pair, or what the empty queue means. `?run=` keeps to one run."""
    run = request.GET.get("run", "")
    assignment = queue.pair_next(_user(request), run=int(run) if run.isdecimal() and len(run) < 16 else None)
    if assignment is None:
        return render(request, "review/empty.html", {"progress": queue.progress_of(_user(request))})
    return redirect(_address(assignment, run))


def _address(assignment: Assignment, run: str = "") -> str:
    address = reverse("review:pair", args=[assignment.pair_id])
    return f"{address}?{urlencode({'run': run})}" if run else address


@require_safe
@reviewer_only
def pair(request: HttpRequest, pk: int) -> HttpResponse:
    """One pair, at the seat of whoever asks."""
    shown = pair_visible(request.user, pk)
    try:
        assignment = queue.seat_at(shown, _user(request))
    except queue.SeatGone as error:
        return render(request, "review/taken.html", {"why": str(error)}, status=409)
    assignment.pair = shown
    return render(request, "review/pair.html", _context(request, assignment))


@require_POST
@reviewer_only
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the decision, then the next pair; what is wrong with it is shown where it was entered."""
    shown = pair_visible(request.user, pk)
    assignment = Assignment.objects.filter(pair=shown, reviewer=_user(request)).first()
    if assignment is None:
        return render(
            request, "review/taken.html", {"why": "You hold no seat at this pair."}, status=_status(request, 409)
        )
    assignment.pair = shown
    given = request.POST.copy()
    if "accept" in given:  # the button that accepts the suggestion needs no verdict chosen
        given["verdict"] = given.get("accept", "")
    form = DecisionForm(given)
    if form.is_valid():
        try:
            stored = queue.decide(assignment=assignment, decision=form.decision(assignment))
        except queue.DecisionRefused as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        except queue.SeatGone as error:
            return render(request, "review/taken.html", {"why": str(error)}, status=_status(request, 409))
        else:
            if stored is None:
                assignment.refresh_from_db()
                assignment.pair = shown
                return render(request, "review/pair.html", _context(request, assignment, form, confirm=True))
            return _onwards(request)
    return render(request, "review/pair.html", _context(request, assignment, form), status=_status(request, 422))


def _status(request: HttpRequest, status: int) -> int:
    """htmx swaps in only what succeeded; a page that says what is wrong is to be swapped in, too."""
    return 200 if request.headers.get("HX-Request") else status


def _onwards(request: HttpRequest) -> HttpResponse:
    run = request.POST.get("run", "")
    return redirect(reverse("review:next") + (f"?{urlencode({'run': run})}" if run else ""))


@require_POST
@reviewer_only
def skip(request: HttpRequest, pk: int) -> HttpResponse:
    assignment = Assignment.objects.filter(pair_id=pk, reviewer=_user(request)).first()
    if assignment is not None:
        try:
            queue.seat_skip(assignment=assignment, reason=request.POST.get("reason", "").strip())
        except queue.SeatGone as error:
            messages.warning(request, str(error))
    return _onwards(request)


@require_POST
@reviewer_only
def undo(request: HttpRequest) -> HttpResponse:
    assignment = queue.undo_last(user=_user(request))
    if assignment is None:
        messages.warning(request, "There is nothing to take back.")
        return _onwards(request)
    messages.info(request, "Taken back: your earlier verdict stands until you give another.")
    return redirect(_address(assignment, request.POST.get("run", "")))


@require_POST
@reviewer_only
def draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep what was entered so far; this is the heartbeat of the seat, too."""
    assignment = Assignment.objects.filter(pair_id=pk, reviewer=_user(request)).first()
    kept: dict[str, Any] = {
        key: request.POST.get(key, "")[:200_000] for key in ("verdict", "critique", "defect", "issues")
    }
    kept["kept"] = request.POST.getlist("kept")[:200]
    try:
        if assignment is None:
            raise queue.SeatGone("You hold no seat at this pair.")
        queue.draft_save(assignment=assignment, draft=kept)
    except queue.SeatGone as error:
        return HttpResponse(str(error), status=409, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)


# ---- what the page shows ---------------------------------------------------------------------------------------------


def _context(
    request: HttpRequest, assignment: Assignment, form: DecisionForm | None = None, *, confirm: bool = False
) -> dict[str, Any]:
    pair, swapped = assignment.pair, assignment.swapped
    a, b = (pair.second, pair.first) if swapped else (pair.first, pair.second)
    suggestion = queue.suggestion_shown(assignment=assignment)
    evidence = evidence_of(a, b)
    guideline = Guideline.objects.filter(active=True).first()
    names = {"first": "b" if swapped else "a", "second": "a" if swapped else "b"}
    hidden = pair.suggestion is not None and suggestion is None
    return {
        "assignment": assignment,
        "pair": pair,
        "done": assignment.state == Assignment.State.DONE,
        "prompt": [
            {"role": message.get("role", ""), "html": text_html(text_of(message))}
            for message in a.messages[: opening_length(a.messages)]
        ],
        "sides": [_side("a", a, suggestion), _side("b", b, suggestion)],
        "evidence": evidence,
        "rows": evidence_rows(evidence["first"], evidence["second"]),
        "diff": diff_lines(final_text(a), final_text(b)),
        "suggestion": suggestion,
        "suggested": names.get(suggestion.verdict, suggestion.verdict) if suggestion else "",
        "suggested_issues": [
            {"issue": issue, "side": "A" if issue.response_id == a.pk else "B"} for issue in suggestion.issues
        ]
        if suggestion
        else [],
        "hidden": hidden,
        "verdicts": [
            ("a", "A is better", "a"),
            ("b", "B is better", "b"),
            ("tie", "Tie", "t"),
            ("both_bad", "Both bad", "x"),
        ],
        "confirm": confirm,
        "form": form or DecisionForm(),
        "entered": _entered(assignment, form),
        "categories": categories(),
        "guideline": markdown_html(guideline.text) if guideline else "",
        "progress": queue.progress_of(_user(request)),
        "run": request.GET.get("run") or request.POST.get("run", ""),
        "recorded": pair.suggestion is not None and (pair.run.summaries.get("judge") or {}).get("recorded"),
    }


def _entered(assignment: Assignment, form: DecisionForm | None) -> dict[str, Any]:
    """What the fields show: what was just sent, else the draft."""
    source: Any = form.data if form is not None else assignment.draft or {}
    kept = source.getlist("kept") if isinstance(source, QueryDict) else source.get("kept")
    entered = {key: source.get(key, "") for key in ("verdict", "critique", "defect", "issues")}
    # Until something was entered, every issue of the judge's is kept.
    return {**entered, "kept": None if kept is None else [int(pk) for pk in kept if str(pk).isdecimal()]}


def _side(name: str, response: Response, suggestion: queue.Shown | None) -> dict[str, Any]:
    marks: dict[int, list[Mark]] = {}
    for issue in suggestion.issues if suggestion else []:
        if issue.response_id == response.pk and issue.start is not None and issue.end is not None:
            label = f"{issue.category} ({issue.severity}): {issue.note}"
            marks.setdefault(issue.message, []).append(Mark(issue.start, issue.end, "judge", label))
    turns: list[Turn] = turns_of(response, marks)
    return {"name": name, "title": name.upper(), "response": response, "turns": turns, "single": len(turns) == 1}
