"""Who reviews which pair: seats with leases taken by compare-and-set, drafts, skip, undo, and the decision itself.

A seat is claimed by one UPDATE that succeeds for one person (`Pair.free`); a lapsed lease gives it back. Whoever comes
back to a seat that is gone gets another one, or is told that the pair is decided.
"""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone

from hub.services import defect_report
from preferences.evidence import evidence_of, winner
from preferences.models import Issue, IssueCategory, Preference
from preferences.services import Judgment, NewIssue, Reaction, preference_record
from preferences.spans import span_at, text_hash, text_of
from review.models import Assignment, AttentionCheck, Pair
from review.services import pairs_whole
from runs.browsing import runs_visible

LEASE = timedelta(minutes=10)
HIDDEN_SHARE = 0.2  # of the pairs with a suggestion, where it is shown after a first verdict only
CHECK_SHARE = 0.04  # of the pairs where exactly one side passes: a deliberately wrong suggestion
WAITING_SHOWN = 100  # more are shown as 100+
_TRIES = 20
_SWEPT = 100

_MARK_FIELDS = ("severity", "note", "message", "start", "end", "text_hash", "quote")

OPEN, DONE, SKIPPED, LAPSED = (Assignment.State(value) for value in ("open", "done", "skipped", "lapsed"))


class SeatGone(Exception):
    """The reviewer holds no seat at the pair (any more); the text says why."""


class DecisionRefused(ValueError):
    """A decision that cannot be taken as it is. `field` names what to mend."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedIssue:
    """A span as the page sends it: `side` of the pair (first, second), message index, code-point offsets."""

    side: str
    category: str
    severity: str = Issue.Severity.MAJOR
    note: str = ""
    message: int = 0
    start: int | None = None
    end: int | None = None
    text_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a reviewer says: a verdict in the pair's own terms. `kept` are ids of the judge's issues.

    `defect` says what is wrong with the tests; only that overrules execution. `blind`: given before a hidden suggestion
    was shown, so that the same form sent twice is not taken for its confirmation.
    """

    verdict: str
    critique: str = ""
    issues: list[MarkedIssue] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    defect: str = ""
    blind: bool = False


# ---- seats -----------------------------------------------------------------------------------------------------------


def pairs_open(user: User) -> QuerySet[Pair]:
    """Pairs with a free seat that *user* may see and has not had, in the queue's order."""
    mine = Assignment.objects.filter(pair=OuterRef("pk"), reviewer=user)
    # Asked of each row on the way down the queue's index; a list of runs would make the database sort all pairs.
    visible = runs_visible(user).order_by().filter(pk=OuterRef("run_id"))
    return Pair.objects.filter(~Exists(mine), Exists(visible), free__gt=0).order_by("position", "id")


def pair_next(user: User, *, run: int | None = None) -> Assignment | None:
    """The seat that *user* holds, else a new one at the next pair; None where the queue is empty for them."""
    held = Assignment.objects.filter(reviewer=user, state=OPEN)
    if run is not None:
        held = held.filter(pair__run_id=run)
    for assignment in held.order_by("-started_at"):
        if seat_renew(assignment=assignment):
            return assignment
    leases_sweep()
    candidates = pairs_open(user)
    if run is not None:
        candidates = candidates.filter(run_id=run)
    for _ in range(_TRIES):
        pair = candidates.first()
        if pair is None:
            return None
        taken = _seat_take(pair, user)
        if taken is not None:
            return taken
    return None


def seat_at(pair: Pair, user: User) -> Assignment:
    """The seat of *user* at *pair*: the one held or decided, or a new one. Raises SeatGone where none is free."""
    mine = Assignment.objects.filter(pair=pair, reviewer=user).first()
    if mine is not None and (mine.state == DONE or (mine.state == OPEN and seat_renew(assignment=mine))):
        return mine
    leases_sweep()
    taken = _seat_take(pair, user)
    if taken is None:
        raise SeatGone("All seats at this pair are taken: others review it, or have decided it.")
    return taken


def _seat_take(pair: Pair, user: User) -> Assignment | None:
    """Claim a free seat; None where somebody else was quicker."""
    try:
        with transaction.atomic():
            if not Pair.objects.filter(pk=pair.pk, free__gt=0).update(free=F("free") - 1):
                return None
            pair = Pair.objects.select_related("suggestion").get(pk=pair.pk)
            used = set(pair.assignments.filter(state__in=[OPEN, DONE]).values_list("seat", flat=True))
            seat = next(number for number in range(pair.overlap) if number not in used)
            return _seated(pair, user, seat)
    except IntegrityError:  # the same person in two windows: one of them has the seat
        return Assignment.objects.filter(pair=pair, reviewer=user, state=OPEN).first()


def _seated(pair: Pair, user: User, seat: int) -> Assignment:
    """The row of a seat just claimed. One that comes back keeps its sides, its draft and what it has seen."""
    until = timezone.now() + LEASE
    earlier = Assignment.objects.filter(pair=pair, reviewer=user).first()
    if earlier is not None:
        changed = Assignment.objects.filter(pk=earlier.pk, state__in=[SKIPPED, LAPSED]).update(
            state=OPEN, seat=seat, lease_until=until, skip_reason=""
        )
        if not changed:
            raise IntegrityError("the seat is held already")
        earlier.refresh_from_db()
        return earlier
    assignment = Assignment.objects.create(
        pair=pair,
        reviewer=user,
        seat=seat,
        lease_until=until,
        swapped=_drawn("side", pair, user) < 0.5,
        hides_suggestion=pair.suggestion is not None and _drawn("hidden", pair, user) < HIDDEN_SHARE,
    )
    if pair.kind == Pair.Kind.ONE_PASSES and pair.suggestion is not None and _drawn("check", pair, user) < CHECK_SHARE:
        right = winner(pair.first, pair.second)
        AttentionCheck.objects.create(assignment=assignment, wrong_verdict="second" if right == "first" else "first")
    return assignment


def _drawn(what: str, pair: Pair, user: User) -> float:
    """A number in [0, 1) that is the same for this pair and person each time, and looks random to them."""
    raw = hashlib.sha256(f"{what}/{pair.position}/{pair.pk}/{user.pk}".encode()).digest()
    return int.from_bytes(raw[:8], "big") / 2**64


def seat_renew(*, assignment: Assignment) -> bool:
    """Lengthen the lease; whether the seat is still held. A lapsed one that nobody has swept yet is kept, too."""
    until = timezone.now() + LEASE
    renewed = Assignment.objects.filter(pk=assignment.pk, state=OPEN).update(lease_until=until)
    assignment.lease_until = until
    return bool(renewed)


def leases_sweep() -> int:
    """Give back the seats whose lease has lapsed; how many. An undone decision that was left stands as it was."""
    now = timezone.now()
    lapsed = Assignment.objects.filter(state=OPEN, lease_until__lt=now)
    lapsed.filter(preference__isnull=False).update(state=DONE, finished_at=now, draft={})
    waiting = list(lapsed.values_list("pk", "pair_id")[:_SWEPT])
    return sum(_leave(pk, pair, state=LAPSED, only_lapsed=True) for pk, pair in waiting)


def _leave(pk: int, pair_id: int, *, only_lapsed: bool = False, **changes: Any) -> bool:
    with transaction.atomic():
        held = Assignment.objects.filter(pk=pk, state=OPEN)
        if only_lapsed:
            held = held.filter(lease_until__lt=timezone.now())
        if not held.update(**changes):
            return False
        Pair.objects.filter(pk=pair_id).update(free=F("free") + 1)
    return True


def seat_skip(*, assignment: Assignment, reason: str) -> None:
    """Leave the pair to others, and say why. Raises SeatGone."""
    if not _leave(
        assignment.pk, assignment.pair_id, state=SKIPPED, skip_reason=reason[:400], finished_at=timezone.now()
    ):
        raise SeatGone("This seat is no longer yours to skip.")


def draft_save(*, assignment: Assignment, draft: dict[str, Any]) -> None:
    """Keep what was entered so far, and the seat. Raises SeatGone."""
    saved = Assignment.objects.filter(pk=assignment.pk, state=OPEN).update(
        draft=draft, lease_until=timezone.now() + LEASE
    )
    if not saved:
        raise SeatGone("Your seat at this pair has lapsed; what you enter is not kept.")


# ---- suggestions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """A suggestion as one reviewer sees it; for an attention check with the wrong verdict in its place."""

    verdict: str
    confidence: float | None
    critique: str
    order_sensitive: bool
    self_preference: bool
    issues: list[Issue]


def check_of(assignment: Assignment) -> AttentionCheck | None:
    return AttentionCheck.objects.filter(assignment=assignment).first()


def suggestion_shown(*, assignment: Assignment) -> Shown | None:
    """What is suggested at this seat, noting when it was first seen; None where there is nothing or it is hidden."""
    suggestion = assignment.pair.suggestion
    if suggestion is None or (assignment.hides_suggestion and not assignment.first_verdict):
        return None
    if assignment.suggestion_seen_at is None:
        assignment.suggestion_seen_at = timezone.now()
        Assignment.objects.filter(pk=assignment.pk, suggestion_seen_at=None).update(
            suggestion_seen_at=assignment.suggestion_seen_at
        )
    check = check_of(assignment)
    if check is not None:
        # The judge's own words argue for another verdict and would give the check away.
        confidence = max(suggestion.confidence or 0.0, 0.8)
        return Shown(check.wrong_verdict, confidence, "", False, suggestion.self_preference, [])
    return Shown(
        suggestion.verdict,
        suggestion.confidence,
        suggestion.critique,
        suggestion.order_sensitive,
        suggestion.self_preference,
        list(suggestion.issues.select_related("category")),
    )


# ---- the decision ----------------------------------------------------------------------------------------------------


def decide(*, assignment: Assignment, decision: Decision) -> Preference | None:
    """Record the decision and give up the lease. The same decision sent twice is stored once.

    Returns None where the suggestion was hidden and this was the first verdict: it is kept, the suggestion is shown,
    and the reviewer confirms or changes. Raises DecisionRefused and SeatGone.
    """
    assignment = Assignment.objects.select_related("preference", "reviewer").get(pk=assignment.pk)
    if assignment.state == DONE and assignment.preference is not None:
        return assignment.preference
    if assignment.state != OPEN:
        raise SeatGone("Your seat at this pair has lapsed and somebody else may have it.")
    pair = pairs_whole([assignment.pair_id])[0]
    assignment.pair = pair
    _check_answer(assignment, decision)
    if pair.suggestion is not None and assignment.hides_suggestion and (decision.blind or not assignment.first_verdict):
        Assignment.objects.filter(pk=assignment.pk, state=OPEN, first_verdict="").update(
            first_verdict=decision.verdict, lease_until=timezone.now() + LEASE
        )
        return None
    evidence = evidence_of(pair.first, pair.second)
    disputes = bool(evidence["winner"]) and decision.verdict != evidence["winner"]
    if disputes and not decision.defect.strip():
        raise DecisionRefused(
            "defect",
            "The tests pass on one side only, and your verdict is another. Say what is wrong with the tests, or follow "
            "them.",
        )
    return _store(assignment, decision, evidence, disputes)


def _check_answer(assignment: Assignment, decision: Decision) -> None:
    """Note how an attention check was met: by the first verdict given after its suggestion was seen."""
    if assignment.suggestion_seen_at is None:
        return
    unanswered = AttentionCheck.objects.filter(assignment=assignment, accepted=None)
    unanswered.filter(wrong_verdict=decision.verdict).update(accepted=True)
    unanswered.filter(accepted=None).update(accepted=False)


def _store(assignment: Assignment, decision: Decision, evidence: dict[str, Any], disputes: bool) -> Preference:
    pair, now = assignment.pair, timezone.now()
    issues = [_new_issue(pair, item) for item in decision.issues] + _kept(pair, decision.kept)
    with transaction.atomic():
        # The row first: of two equal requests one waits here, and then finds the decision made.
        claimed = Assignment.objects.filter(pk=assignment.pk, state=OPEN).update(
            state=DONE, finished_at=now, lease_until=now
        )
        if not claimed:
            done = Assignment.objects.select_related("preference").get(pk=assignment.pk)
            if done.state == DONE and done.preference is not None:
                return done.preference
            raise SeatGone("Your seat at this pair has lapsed and somebody else may have it.")
        judgment = Judgment(
            verdict=decision.verdict,
            critique=decision.critique.strip(),
            issues=issues,
            evidence=evidence,
            reviewer=assignment.reviewer,
            reaction=_reaction(assignment, decision, disputes),
            seconds=(now - assignment.started_at).total_seconds(),
        )
        preference = preference_record(
            first=pair.first, second=pair.second, judgment=judgment, supersedes=_undone(assignment)
        )
        Assignment.objects.filter(pk=assignment.pk).update(preference=preference, draft={})
        if disputes:
            defect_report(case=pair.case, description=decision.defect.strip(), user=assignment.reviewer)
    return preference


def _undone(assignment: Assignment) -> Preference | None:
    """The decision that this seat gave before it was undone."""
    if assignment.preference is None or Preference.objects.filter(supersedes=assignment.preference).exists():
        return None
    return assignment.preference


def _reaction(assignment: Assignment, decision: Decision, disputes: bool) -> Reaction:
    suggestion = assignment.pair.suggestion
    check = check_of(assignment)
    result = "" if check is None or check.accepted is None else ("failed" if check.accepted else "passed")
    seen = suggestion is not None and assignment.suggestion_seen_at is not None
    dismissed: list[int] = []
    if suggestion is not None and seen and check is None:
        dismissed = [pk for pk in suggestion.issues.values_list("pk", flat=True) if pk not in decision.kept]
    return Reaction(
        # A check shows no suggestion of the judge's, so that it is neither accepted nor overridden.
        suggestion=suggestion if check is None else None,
        taken=decision.verdict == suggestion.verdict if suggestion is not None and seen and check is None else None,
        seen_at=assignment.suggestion_seen_at,
        first_verdict=assignment.first_verdict,
        dismissed=dismissed,
        check_result=result,
        disputes_tests=disputes,
    )


def _new_issue(pair: Pair, item: MarkedIssue) -> NewIssue:
    response = pair.first if item.side == "first" else pair.second
    category = IssueCategory.objects.filter(slug=item.category).first()
    if category is None:
        raise DecisionRefused("issues", f"There is no category {item.category!r}.")
    if item.severity not in Issue.Severity.values:
        raise DecisionRefused("issues", f"A severity is one of {', '.join(Issue.Severity.values)}.")
    span = None
    if item.start is not None and item.end is not None:
        if not 0 <= item.message < len(response.messages):
            raise DecisionRefused("issues", "A mark is in a message that the response does not have.")
        text = text_of(response.messages[item.message])
        if item.text_hash and item.text_hash != text_hash(text):
            raise DecisionRefused("issues", "A mark belongs to another state of the response; reload the page.")
        try:
            span = span_at(text, item.start, item.end, item.message)
        except ValueError as error:
            raise DecisionRefused("issues", str(error)) from None
    return NewIssue(response=response, category=category, severity=item.severity, note=item.note, span=span)


def _kept(pair: Pair, ids: list[int]) -> list[NewIssue]:
    """The judge's issues that the reviewer keeps, as the reviewer's own."""
    if pair.suggestion is None:
        return []
    kept = []
    for issue in pair.suggestion.issues.filter(pk__in=ids).select_related("category", "response"):
        span = None
        if issue.start is not None and issue.end is not None:
            span = span_at(text_of(issue.response.messages[issue.message]), issue.start, issue.end, issue.message)
        kept.append(
            NewIssue(
                response=issue.response,
                category=issue.category,
                severity=issue.severity,
                note=issue.note,
                span=span,
                kept_from=issue,
            )
        )
    return kept


def undo_last(*, user: User) -> Assignment | None:
    """Take the last decision or skip back up; the seat at it, or None where there is nothing or the seat is gone.

    A decision stays stored until the new one supersedes it.
    """
    last = Assignment.objects.filter(reviewer=user, state__in=[DONE, SKIPPED]).order_by("-finished_at").first()
    if last is None:
        return None
    if last.state == SKIPPED:
        try:
            return seat_at(last.pair, user)
        except SeatGone:
            return None
    draft = _draft_of(last, last.preference) if last.preference else {}
    reopened = Assignment.objects.filter(pk=last.pk, state=DONE).update(
        state=OPEN, lease_until=timezone.now() + LEASE, draft=draft, finished_at=None
    )
    last.refresh_from_db()
    return last if reopened else None


def _draft_of(assignment: Assignment, preference: Preference) -> dict[str, Any]:
    """A decision as the page would have drafted it, in terms of A and B."""
    sides = {"first": "b", "second": "a"} if assignment.swapped else {"first": "a", "second": "b"}
    issues = list(preference.issues.select_related("category"))
    marks = [
        {
            "side": sides["first" if issue.response_id == preference.first_id else "second"],
            "category": issue.category.slug,
            **{name: getattr(issue, name) for name in _MARK_FIELDS},
        }
        for issue in issues
        if issue.kept_from_id is None
    ]
    return {
        "verdict": sides.get(preference.verdict, preference.verdict),
        "critique": preference.critique,
        "issues": json.dumps(marks),
        "kept": [issue.kept_from_id for issue in issues if issue.kept_from_id is not None],
    }


@dataclass(frozen=True, slots=True)
class Progress:
    """What *user* did, and what waits for them."""

    done: int
    skipped: int
    waiting: int


def progress_of(user: User) -> Progress:
    mine = Assignment.objects.filter(reviewer=user)
    return Progress(
        done=mine.filter(state=DONE).count(),
        skipped=mine.filter(state=SKIPPED).count(),
        waiting=pairs_open(user)[:WAITING_SHOWN].count(),
    )
