"""Seats at pairs: claimed by compare-and-set, held by a lease, given back when they are left or the lease lapses.

A seat is claimed by one UPDATE that succeeds for one person (`Pair.free`). Whoever comes back to a seat that is gone
gets another one, or is told that the pair is decided.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from hub.common.errors import Conflict
from preferences.evidence import winner
from preferences.sides import Sides, lists_choices, tokens_to_phrases
from review.models import Assignment, AttentionCheck, Pair
from review.queue.backlog import first_waiting_pair
from runs.selectors import visible_runs

LEASE = timedelta(minutes=10)
HIDDEN_SHARE = 0.2  # of the pairs with a suggestion, where it is shown after a first verdict only
CHECK_SHARE = 0.04  # of the pairs where exactly one side passes: a deliberately wrong suggestion
_FRESH = timedelta(minutes=1)  # a lease this young is not written anew: most pages are opened just after it was taken
_TRIES = 20
_SWEPT = 100

OPEN, DONE, SKIPPED, LAPSED = (Assignment.State(value) for value in ("open", "done", "skipped", "lapsed"))


TAKEN = "All seats at this pair are taken: others review it, or have decided it."


class AssignmentLost(Conflict):
    """The reviewer holds no seat at the pair (any more); the text says why."""


def claim_next_pair(user: User, *, run: int | None = None) -> Assignment | None:
    """The seat that *user* holds, else a new one at the next pair; None where the queue is empty for them."""
    held = _held(user, run)
    if held is not None:
        return held
    release_lapsed_assignments()
    for _ in range(_TRIES):
        pair = first_waiting_pair(user, run=run)
        if pair is None:
            return None
        taken = _claim_free_slot(pair, user) or _held(user, run)  # another window of theirs may have been quicker
        if taken is not None:
            return taken
    return None


def _held(user: User, run: int | None) -> Assignment | None:
    visible = visible_runs(user).order_by().filter(pk=OuterRef("pair__run_id"))
    held = Assignment.objects.filter(Exists(visible), reviewer=user, state=OPEN)
    if run is not None:
        held = held.filter(pair__run_id=run)
    assignment = held.first()
    return assignment if assignment is not None and renew_assignment(assignment=assignment) else None


def current_assignment(pair: Pair, user: User) -> Assignment | None:
    """The seat that *user* holds at *pair* or has decided it at; None where they would first have to take one."""
    mine = Assignment.objects.filter(pair=pair, reviewer=user).first()
    if mine is not None and (mine.state == DONE or (mine.state == OPEN and renew_assignment(assignment=mine))):
        return mine
    return None


def preview_assignment(pair: Pair, user: User) -> Assignment:
    """What *user* would have at *pair*, not stored: with the sides of a seat taken later and no suggestion."""
    earlier = Assignment.objects.filter(pair=pair, reviewer=user).first()
    swapped = earlier.swapped if earlier is not None else _draw("side", pair, user) < 0.5
    return Assignment(pair=pair, reviewer=user, swapped=swapped, hides_suggestion=True, state=LAPSED)


def pair_availability(pair: Pair) -> tuple[bool, datetime | None]:
    """Whether a seat at *pair* can be taken, and else until when the first of those who hold one has it."""
    release_lapsed_assignments()
    if Pair.objects.filter(pk=pair.pk, free__gt=0).exists():
        return True, None
    leases = pair.assignments.filter(state=OPEN).order_by("lease_until").values_list("lease_until", flat=True)
    return False, leases.first()


def claim_pair(pair: Pair, user: User) -> Assignment:
    """The seat of *user* at *pair*: the one held or decided, or a new one. Raises AssignmentLost where none is free."""
    mine = current_assignment(pair, user)
    if mine is not None:
        return mine
    release_lapsed_assignments()
    taken = _claim_free_slot(pair, user)
    if taken is None:
        raise AssignmentLost(TAKEN)
    return taken


def _claim_free_slot(pair: Pair, user: User) -> Assignment | None:
    """Claim a free seat; None where somebody else was quicker."""
    try:
        with transaction.atomic():
            if not Pair.objects.filter(pk=pair.pk, free__gt=0).update(free=F("free") - 1):
                return None
            pair = Pair.objects.get(pk=pair.pk)
            release_open_assignment(user)
            at_pair = list(pair.assignments.all())
            used = {other.slot for other in at_pair if other.state in (OPEN, DONE)}
            slot = next(number for number in range(pair.overlap) if number not in used)
            earlier = next((own for own in at_pair if own.reviewer_id == user.pk), None)
            return _reopen_assignment(earlier, slot) if earlier is not None else _create_assignment(pair, user, slot)
    except IntegrityError:  # the same person in two windows: one of them has the seat
        return Assignment.objects.filter(pair=pair, reviewer=user, state=OPEN).first()


def release_open_assignment(user: User) -> None:
    """Give back the seat that *user* holds, since they take another; its draft stays."""
    for assignment in Assignment.objects.filter(reviewer=user, state=OPEN):
        if assignment.preference_id is None:
            _release(assignment.pk, assignment.pair_id, state=LAPSED)
        else:
            Assignment.objects.filter(pk=assignment.pk, state=OPEN).update(state=DONE, finished_at=timezone.now())


def _reopen_assignment(earlier: Assignment, slot: int) -> Assignment:
    """A seat that was left or had lapsed: it keeps its sides, its draft and what was seen of the suggestion."""
    changed = Assignment.objects.filter(pk=earlier.pk, state__in=[SKIPPED, LAPSED]).update(
        state=OPEN, slot=slot, lease_until=timezone.now() + LEASE, skip_reason=""
    )
    if not changed:
        raise IntegrityError("the seat is held already")
    earlier.refresh_from_db()
    return earlier


def _create_assignment(pair: Pair, user: User, slot: int) -> Assignment:
    assignment = Assignment.objects.create(
        pair=pair,
        reviewer=user,
        slot=slot,
        lease_until=timezone.now() + LEASE,
        swapped=_draw("side", pair, user) < 0.5,
        hides_suggestion=pair.suggestion_id is not None and _draw("hidden", pair, user) < HIDDEN_SHARE,
    )
    right = winner(pair.first, pair.second) if pair.kind == Pair.Kind.ONE_PASSES else ""
    # Only a judge that is right and sure can be turned round into a check that reads like any other suggestion.
    checkable = bool(right) and pair.suggestion is not None and pair.suggestion.verdict == right
    if checkable and _draw("check", pair, user) < CHECK_SHARE:
        AttentionCheck.objects.create(assignment=assignment, wrong_verdict="second" if right == "first" else "first")
    return assignment


def _draw(what: str, pair: Pair, user: User) -> float:
    """A number in [0, 1) that is the same for this pair and person each time, and looks random to them."""
    raw = hashlib.sha256(f"{what}/{pair.position}/{pair.pk}/{user.pk}".encode()).digest()
    return int.from_bytes(raw[:8], "big") / 2**64


def renew_assignment(*, assignment: Assignment) -> bool:
    """Lengthen the lease; whether the seat is still held. A lapsed one that nobody has swept yet is kept, too."""
    until = timezone.now() + LEASE
    if assignment.state == OPEN and assignment.lease_until > until - _FRESH:
        return True
    renewed = Assignment.objects.filter(pk=assignment.pk, state=OPEN).update(lease_until=until)
    assignment.lease_until = until
    return bool(renewed)


def release_lapsed_assignments() -> int:
    """Give back the seats whose lease has lapsed; how many. An undone decision that was left stands as it was."""
    lapsed = Assignment.objects.filter(state=OPEN, lease_until__lt=timezone.now())
    return sum(_release_lapsed(assignment) for assignment in lapsed[:_SWEPT])


def _release_lapsed(assignment: Assignment) -> bool:
    if assignment.preference_id is None:
        return _release(assignment.pk, assignment.pair_id, state=LAPSED, only_lapsed=True)
    now = timezone.now()
    lapsed = Assignment.objects.filter(pk=assignment.pk, state=OPEN, lease_until__lt=now)
    lapsed.update(state=DONE, finished_at=now, draft={})
    return False


def _release(pk: int, pair_id: int, *, only_lapsed: bool = False, **changes: Any) -> bool:
    with transaction.atomic():
        held = Assignment.objects.filter(pk=pk, state=OPEN)
        if only_lapsed:
            held = held.filter(lease_until__lt=timezone.now())
        if not held.update(**changes):
            return False
        Pair.objects.filter(pk=pair_id).update(free=F("free") + 1)
    return True


def name_responses_by_id(assignment: Assignment, text: str) -> str:
    """*text* of the reviewer with `response 12` for A and B, for readers who do not see the pair."""
    pair = assignment.pair
    letters_to_tokens = Sides(assignment.swapped).letters_to_tokens(text, choices=lists_choices(pair.first.messages))
    return tokens_to_phrases(letters_to_tokens, first=f"response {pair.first_id}", second=f"response {pair.second_id}")


def skip_pair(*, assignment: Assignment, reason: str) -> None:
    """Leave the pair to others, and say why. Raises AssignmentLost."""
    told = name_responses_by_id(assignment, reason)[:400]
    if not _release(assignment.pk, assignment.pair_id, state=SKIPPED, skip_reason=told, finished_at=timezone.now()):
        raise AssignmentLost("This seat is no longer yours to skip.")


def save_draft(*, assignment: Assignment, draft: dict[str, Any]) -> None:
    """Keep what was entered so far, and the seat. One that has lapsed is taken again if it is free and no other held.

    Raises AssignmentLost where it is gone; the draft is kept all the same, for when the reviewer comes back.
    """
    now = timezone.now()
    if Assignment.objects.filter(pk=assignment.pk, state=OPEN).update(draft=draft, lease_until=now + LEASE):
        return
    if not Assignment.objects.filter(pk=assignment.pk, state=LAPSED).update(draft=draft):
        raise AssignmentLost("You have decided or skipped this pair; what you enter here is not kept.")
    if Assignment.objects.filter(reviewer=assignment.reviewer_id, state=OPEN).exists():
        raise AssignmentLost("You hold another pair now. What you entered here is kept as its draft.")
    if _claim_free_slot(assignment.pair, assignment.reviewer) is None:
        raise AssignmentLost(
            "Your seat at this pair has lapsed and others have it. What you entered is kept as your draft."
        )
