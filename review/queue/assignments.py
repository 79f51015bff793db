"""Assignments of pairs to reviewers: claimed under a lock, held by a lease, released when left or lapsed.

The lease (hub.common.leases) has an owner exactly while the assignment is open.

Claiming a pair locks its row and uses one of its free slots (`Pair.free`). The next pair of the queue is one that
nobody else has locked, so that reviewers who claim at the same moment do not wait for each other. A reviewer whose
assignment was lost gets another slot of the pair, or AssignmentLost if none is free.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import BooleanField, Exists, ExpressionWrapper, F, OuterRef, Q
from django.utils import timezone

from hub.common import leases
from hub.common.errors import Conflict
from hub.protocols.messages import JSON
from preferences.evidence import winner
from preferences.sides import Sides, lists_choices, other_side, tokens_to_phrases
from review.models import Assignment, AttentionCheck, Pair
from review.queue.backlog import lock_first_pair, next_pair_by_run
from runs.selectors import visible_runs

LEASE = timedelta(minutes=10)
HIDDEN_SHARE = 0.2  # share of the pairs with a suggestion for which it is shown only after a first verdict
CHECK_SHARE = 0.04  # share of the pairs with exactly one passing side that get a deliberately wrong suggestion
_MAX_CLAIMS = 50  # attempts to claim a pair; an attempt fails if other reviewers claimed the last pairs of its run
_MAX_RELEASED = 100

OPEN, DONE, SKIPPED, LAPSED = (Assignment.State(value) for value in ("open", "done", "skipped", "lapsed"))

ALL_ASSIGNED = "All assignments of this pair are taken: other reviewers are reviewing it or have decided it."


class AssignmentLost(Conflict):
    """The pair is not, or no longer, assigned to the reviewer; the message says why."""


@dataclass(frozen=True, slots=True)
class NextPair:
    """Result of `claim_next_pair`.

    assignment: None if no pair waits for the reviewer
    runs: ids of the runs with pairs that waited for the reviewer before the claim; None if they were not read
    """

    assignment: Assignment | None
    runs: Collection[int] | None = None


def claim_next_pair(user: User, *, run: int | None = None) -> NextPair:
    """Return the open assignment of *user*, else claim the next pair of the queue, or of *run* only."""
    for attempt in range(_MAX_CLAIMS):
        # Repeated after a failed attempt, because another window of the reviewer may have claimed a pair.
        held = _held_or_release_lapsed(user, run)
        if held is not None:
            return NextPair(held)
        waiting = next_pair_by_run(user, run=run)
        if not waiting:
            return NextPair(None, waiting.keys())
        claimed = _claim(user, partial(lock_first_pair, user, among=waiting.values(), waits=attempt > 0))
        if claimed is not None:
            return NextPair(claimed, waiting.keys())
    return NextPair(None)


def _held_or_release_lapsed(user: User, run: int | None) -> Assignment | None:
    """Return the open assignment of *user*, renewed. If there is none, release the assignments that have lapsed."""
    visible = visible_runs(user).order_by().filter(pk=OuterRef("pair__run_id"))
    if run is not None:
        visible = visible.filter(pk=run)
    opened = Assignment.objects.filter(Q(reviewer=user) | leases.lapsed(), state=OPEN)
    has_lapsed = ExpressionWrapper(leases.lapsed(), output_field=BooleanField())
    found = list(opened.annotate(visible=Exists(visible), has_lapsed=has_lapsed))
    for assignment in found:
        if assignment.reviewer_id == user.pk and assignment.visible and renew_assignment(assignment=assignment):
            return assignment
    lapsed = [row for row in found if row.has_lapsed]
    for assignment in lapsed[:_MAX_RELEASED]:
        _release_lapsed(assignment)
    return None


def current_assignment(pair: Pair, user: User) -> Assignment | None:
    """Return the open or decided assignment of *pair* to *user*, or None if they have to claim the pair first."""
    mine = Assignment.objects.filter(pair=pair, reviewer=user).first()
    return mine if mine is not None and is_current(mine) else None


def is_current(assignment: Assignment) -> bool:
    """Return whether *assignment* is decided, or open; renew its lease if it is open."""
    return assignment.state == DONE or (assignment.state == OPEN and renew_assignment(assignment=assignment))


def preview_assignment(pair: Pair, user: User) -> Assignment:
    """Return an unsaved assignment for looking at *pair*: same sides as a later claim, suggestion hidden."""
    earlier = Assignment.objects.filter(pair=pair, reviewer=user).first()
    swapped = earlier.swapped if earlier is not None else _draw("side", pair, user) < 0.5
    return Assignment(pair=pair, reviewer=user, swapped=swapped, hides_suggestion=True, state=LAPSED)


def pair_availability(pair: Pair) -> tuple[bool, datetime | None]:
    """Return whether *pair* can be claimed, and if not, when the first of its leases ends (None: it has none)."""
    release_lapsed_assignments()
    if Pair.objects.filter(pk=pair.pk, free__gt=0).exists():
        return True, None
    open_until = pair.assignments.filter(state=OPEN).order_by("lease_until").values_list("lease_until", flat=True)
    return False, open_until.first()


def claim_pair(pair: Pair, user: User) -> Assignment:
    """Return the assignment of *pair* to *user*, claiming a slot if needed. Raises AssignmentLost if none is free."""
    mine = current_assignment(pair, user)
    if mine is not None:
        return mine
    release_lapsed_assignments()
    claimed = _claim(user, partial(_lock_free_pair, pair, user))
    if claimed is None:
        claimed = current_assignment(pair, user)  # the same request, sent twice, may have claimed the pair
    if claimed is None:
        raise AssignmentLost(ALL_ASSIGNED)
    return claimed


def _lock_free_pair(pair: Pair, user: User) -> Pair | None:
    """Return *pair*, locked for the current transaction, or None if it has no free slot.

    The pair that *user* gives up for it is locked as well, in the order of the ids: two reviewers who exchange their
    pairs at the same moment would otherwise wait for each other.
    """
    given_up = Assignment.objects.filter(reviewer=user, state=OPEN).values("pair")
    pairs = Pair.objects.select_for_update(no_key=True).filter(Q(pk=pair.pk) | Q(pk__in=given_up)).order_by("pk")
    return next((locked for locked in pairs if locked.pk == pair.pk and locked.free), None)


def _claim(user: User, lock_pair: Callable[[], Pair | None]) -> Assignment | None:
    """Claim a free slot of the pair that *lock_pair* returns, in one transaction. Returns None if it returns none."""
    pair = None
    try:
        with transaction.atomic():
            pair = lock_pair()
            return None if pair is None else _claim_free_slot(pair, user)
    except IntegrityError:  # the same reviewer claimed the pair in another window
        return Assignment.objects.filter(pair=pair, reviewer=user, state=OPEN).first()


def _claim_free_slot(pair: Pair, user: User) -> Assignment:
    pair.free -= 1
    pair.save(update_fields=["free"])
    # Read in one query: the assignments of the pair, and the one that the reviewer gives up for it.
    rows = list(Assignment.objects.filter(Q(pair=pair) | Q(reviewer=user, state=OPEN)))
    own = [row for row in rows if row.reviewer_id == user.pk]
    _leave([row for row in own if row.state == OPEN])
    used = {row.slot for row in rows if row.reviewer_id != user.pk and row.state in (OPEN, DONE)}
    slot = next(number for number in range(pair.overlap) if number not in used)
    earlier = next((row for row in own if row.pair_id == pair.pk), None)
    return _reopen_assignment(earlier, slot) if earlier is not None else _create_assignment(pair, user, slot)


def release_open_assignment(user: User) -> None:
    """Release the open assignment of *user*, who claims another pair. Its draft is kept."""
    _leave(Assignment.objects.filter(reviewer=user, state=OPEN))


def _leave(opened: Iterable[Assignment]) -> None:
    """Release open assignments of the reviewer, who claims another pair."""
    for assignment in opened:
        if assignment.preference_id is None:
            _release(assignment, state=LAPSED)
        else:
            _leave_reopened(assignment)


def release_assignment_of_deleted_user(instance: User, **_: object) -> None:
    """Give the slot of the open assignment back before it is deleted with its reviewer (a receiver of `pre_delete`)."""
    release_open_assignment(instance)


def _leave_reopened(assignment: Assignment, **changes: object) -> bool:
    """End a reopened assignment whose decision stays in force, so that it keeps its slot; False if it is not open."""
    return leases.release(assignment, assignment.holder, state=DONE, **changes)


def _reopen_assignment(earlier: Assignment, slot: int) -> Assignment:
    """Reopen a skipped or lapsed assignment. Its time begins again.

    Its sides, its draft and whether the suggestion was seen are kept.
    """
    closed = Q(state__in=[SKIPPED, LAPSED])
    holder, now = earlier.holder, timezone.now()
    reopened = leases.take(
        earlier,
        holder,
        LEASE,
        condition=closed,
        state=OPEN,
        slot=slot,
        skip_reason="",
        started_at=now,
        finished_at=None,
    )
    if not reopened:
        raise IntegrityError("The assignment is already open.")
    return earlier


def _create_assignment(pair: Pair, user: User, slot: int) -> Assignment:
    assignment = Assignment(
        pair=pair,
        reviewer=user,
        slot=slot,
        lease_until=leases.end_after(LEASE),
        swapped=_draw("side", pair, user) < 0.5,
        hides_suggestion=pair.suggestion_id is not None and _draw("hidden", pair, user) < HIDDEN_SHARE,
    )
    assignment.lease_owner = assignment.holder
    assignment.save(force_insert=True)
    del assignment.lease_until  # an expression; Django reads the time that the database has computed if it is needed
    drawn = pair.kind == Pair.Kind.ONE_PASSES and _draw("check", pair, user) < CHECK_SHARE
    if drawn and pair.suggestion is not None:
        right = winner(pair.first, pair.second)
        # Only a correct suggestion can be inverted into a check that reads like any other suggestion.
        if right and pair.suggestion.verdict == right:
            AttentionCheck.objects.create(assignment=assignment, wrong_verdict=other_side(right))
    return assignment


def _draw(what: str, pair: Pair, user: User) -> float:
    """Return a pseudo-random number in [0, 1) that depends only on *what*, the pair and the reviewer."""
    raw = hashlib.sha256(f"{what}/{pair.position}/{pair.pk}/{user.pk}".encode()).digest()
    return int.from_bytes(raw[:8], "big") / 2**64


def renew_assignment(*, assignment: Assignment) -> bool:
    """Renew the lease and return whether the assignment is still open. Lapsed but unreleased leases count as open.

    The new `lease_until` is not read.
    """
    try:
        leases.renew(Assignment, assignment.pk, assignment.holder, LEASE)
    except leases.LeaseLost:
        return False
    return True


def release_lapsed_assignments() -> int:
    """Release assignments with a lapsed lease and return how many. Reopened decisions become done again."""
    lapsed = Assignment.objects.filter(leases.lapsed(), state=OPEN)
    return sum(_release_lapsed(assignment) for assignment in lapsed[:_MAX_RELEASED])


def _release_lapsed(assignment: Assignment) -> bool:
    if assignment.preference_id is None:
        return _release(assignment, only_lapsed=True, state=LAPSED)
    leases.expire(assignment, state=DONE, draft={})
    return False


def _release(assignment: Assignment, *, only_lapsed: bool = False, **changes: object) -> bool:
    """Release the lease and give the slot of the pair back; False if the assignment is not open or has not lapsed."""
    with transaction.atomic():
        if only_lapsed:
            released = leases.expire(assignment, **changes)
        else:
            released = leases.release(assignment, assignment.holder, **changes)
        if released:
            Pair.objects.filter(pk=assignment.pair_id).update(free=F("free") + 1)
    return released


def name_responses_by_id(assignment: Assignment, text: str) -> str:
    """Return the reviewer's *text* with A and B replaced by "response <id>", for readers who do not see the pair."""
    pair = assignment.pair
    letters_to_tokens = Sides(assignment.swapped).letters_to_tokens(text, choices=lists_choices(pair.first.prompt))
    return tokens_to_phrases(letters_to_tokens, first=f"response {pair.first_id}", second=f"response {pair.second_id}")


def skip_pair(*, assignment: Assignment, reason: str) -> None:
    """Skip the pair, with a reason for curators. A reopened decision stays in force. Raises AssignmentLost."""
    reason_by_id = name_responses_by_id(assignment, reason)[:400]
    if assignment.preference_id is None:
        skipped = _release(assignment, state=SKIPPED, skip_reason=reason_by_id, finished_at=timezone.now())
    else:
        skipped = _leave_reopened(assignment, skip_reason=reason_by_id, finished_at=timezone.now(), draft={})
    if not skipped:
        raise AssignmentLost("This pair is no longer assigned to you, so it was not skipped.")


def save_draft(*, assignment: Assignment, draft: dict[str, JSON]) -> None:
    """Save the draft and renew the lease. A lapsed assignment is reopened if a slot is free and no other one is open.

    Raises AssignmentLost otherwise. The draft of a lapsed assignment is saved in any case.
    """
    try:
        leases.renew(Assignment, assignment.pk, assignment.holder, LEASE, draft=draft)
    except leases.LeaseLost:
        _save_lapsed_draft(assignment, draft)


def _save_lapsed_draft(assignment: Assignment, draft: dict[str, JSON]) -> None:
    """Save the draft of a lapsed assignment, and reopen it if possible. Raises AssignmentLost."""
    if not keep_lapsed_draft(assignment=assignment, draft=draft):
        raise AssignmentLost("You have decided or skipped this pair, so changes made here are not saved.")
    if Assignment.objects.filter(reviewer=assignment.reviewer_id, state=OPEN).exists():
        raise AssignmentLost(
            "Another pair is assigned to you now. What you entered here is saved as the draft of this pair."
        )
    if _claim(assignment.reviewer, partial(_lock_free_pair, assignment.pair, assignment.reviewer)) is None:
        raise AssignmentLost(
            "Your assignment has lapsed and other reviewers have this pair. What you entered is saved as your draft."
        )


def keep_lapsed_draft(*, assignment: Assignment, draft: dict[str, JSON]) -> bool:
    """Save the draft for when the pair is claimed again; False if the assignment has not lapsed."""
    return bool(Assignment.objects.filter(pk=assignment.pk, state=LAPSED).update(draft=draft))
