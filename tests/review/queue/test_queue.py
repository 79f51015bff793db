"""Tests of assignments: order of pairs, lapsed leases, and stored decisions."""

import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, connections, transaction
from django.utils import timezone

from hub.models import CaseDefect, Team
from preferences.models import IssueCategory, Preference
from preferences.services import NewIssue
from preferences.spans import find_quote
from review import decisions
from review.decisions import Decision
from review.errors import AlreadyDecided, InvalidDecision
from review.issues import MarkedIssue
from review.judge.suggestions import show_suggestion
from review.models import Assignment, AttentionCheck, Pair
from review.queue import assignments
from review.queue.assignments import AssignmentLost
from review.queue.backlog import lock_first_pair
from runs.models import Run
from tests.review.pages import reviewer, suggest, waiting_pairs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_drawn(monkeypatch: Any) -> None:
    """No check, nothing hidden, sides as they are, unless a test says otherwise."""
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)


def lapse(assignment: Assignment) -> None:
    Assignment.objects.filter(pk=assignment.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_two_reviewers_get_different_pairs_and_keep_them() -> None:
    first, second = waiting_pairs(2)
    ann, bob = reviewer("ann"), reviewer("bob")
    assert assignments.claim_next_pair(ann).assignment.pair == first
    assert assignments.claim_next_pair(bob).assignment.pair == second
    assert assignments.claim_next_pair(ann).assignment.pair == first
    assert assignments.claim_next_pair(reviewer("cat")).assignment is None


def test_overlap_limits_number_of_reviewers_of_pair() -> None:
    waiting_pairs(1, overlap=2)
    taken = [assignments.claim_next_pair(reviewer(name)).assignment for name in ("ann", "bob")]
    assert [assignment.slot for assignment in taken] == [0, 1]
    assert assignments.claim_next_pair(reviewer("cat")).assignment is None


def test_lapsed_assignment_is_claimed_by_next_reviewer_and_late_decision_fails() -> None:
    waiting_pairs(1)
    mine = assignments.claim_next_pair(reviewer("ann")).assignment
    lapse(mine)
    theirs = assignments.claim_next_pair(reviewer("bob")).assignment
    assert (theirs.pair_id, theirs.slot) == (mine.pair_id, mine.slot)
    with pytest.raises(AssignmentLost):
        decisions.decide(assignment=mine, decision=Decision(verdict="tie"))
    assert not Preference.objects.exists()


def test_saving_draft_renews_lease() -> None:
    waiting_pairs(1)
    mine = assignments.claim_next_pair(reviewer("ann")).assignment
    lapse(mine)
    assignments.save_draft(assignment=mine, draft={"verdict": "a"})
    assert assignments.claim_next_pair(reviewer("bob")).assignment is None


@pytest.mark.django_db(transaction=True)
def test_concurrent_reviewers_never_share_a_slot() -> None:
    waiting_pairs(3, overlap=2)
    people = [reviewer(f"r{i}") for i in range(10)]
    barrier = threading.Barrier(len(people))
    got: list[Assignment | None] = []

    def take(user: Any) -> None:
        try:
            barrier.wait()
            got.append(assignments.claim_next_pair(user).assignment)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=take, args=(user,)) for user in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = [(a.pair_id, a.slot) for a in got if a is not None]
    assert len(got) == 10
    assert len(taken) == len(set(taken)) == 6
    assert not Pair.objects.filter(free__gt=0).exists()


def test_reviewer_who_loses_many_races_still_gets_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting_pairs(40)
    others = [reviewer(f"r{i}") for i in range(30)]

    def lose_to_another(user: Any, **options: Any) -> Pair | None:
        if others:
            assignments.claim_next_pair(others.pop())
            return None
        return lock_first_pair(user, **options)

    late = reviewer("late")
    monkeypatch.setattr(assignments, "lock_first_pair", lose_to_another)
    assert assignments.claim_next_pair(late).assignment is not None
    assert not others


@pytest.mark.django_db(transaction=True)
def test_reviewer_gets_next_pair_while_another_claims_the_first() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite does not lock rows")
    pairs = waiting_pairs(2)
    ann, bob = reviewer("ann"), reviewer("bob")
    taken: list[Assignment | None] = []

    def take() -> None:
        try:
            taken.append(assignments.claim_next_pair(bob).assignment)
        finally:
            connections.close_all()

    with transaction.atomic():
        mine = assignments.claim_next_pair(ann).assignment
        thread = threading.Thread(target=take)
        thread.start()
        thread.join(timeout=30)  # it ends before the transaction of the first reviewer does
        assert [assignment and assignment.pair for assignment in taken] == [pairs[1]]
    assert mine is not None
    assert mine.pair == pairs[0]


@pytest.mark.django_db(transaction=True)
def test_reviewers_who_exchange_their_pairs_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite does not lock rows")
    first, second = waiting_pairs(2, overlap=2)
    ann, bob = reviewer("ann"), reviewer("bob")
    assignments.claim_pair(first, ann)
    assignments.claim_pair(second, bob)
    both_hold_their_locks = threading.Barrier(2)
    release = assignments.release_open_assignment

    def release_late(user: Any) -> None:
        with suppress(threading.BrokenBarrierError):
            both_hold_their_locks.wait(2)
        release(user)

    monkeypatch.setattr(assignments, "release_open_assignment", release_late)
    errors: list[Exception] = []

    def exchange(user: Any, pair: Pair) -> None:
        try:
            assignments.claim_pair(pair, user)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=exchange, args=pair) for pair in ((ann, second), (bob, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_time_of_a_decision_does_not_include_the_time_before_the_assignment_was_reopened() -> None:
    (pair,) = waiting_pairs(1)
    ann = reviewer("ann")
    mine = assignments.claim_pair(pair, ann)
    lapse(mine)
    Assignment.objects.update(started_at=timezone.now() - timedelta(days=1))
    assignments.release_lapsed_assignments()
    decisions.decide(assignment=assignments.claim_pair(pair, ann), decision=Decision(verdict="tie"))
    seconds = Preference.objects.get().seconds
    assert seconds is not None
    assert seconds < 60


def test_decision_sent_twice_is_stored_once_and_another_one_is_refused() -> None:
    waiting_pairs(1)
    mine = assignments.claim_next_pair(reviewer()).assignment
    decision = Decision(verdict="first", fields={"critique": "A is shorter. "})
    first = decisions.decide(assignment=mine, decision=decision)
    assert decisions.decide(assignment=mine, decision=decision) == first
    assert Preference.objects.count() == 1
    assert (first.verdict, first.critique, first.source) == ("first", "⟦first⟧ is shorter.", "human")


@pytest.mark.parametrize(
    "other",
    [
        Decision(verdict="second"),
        Decision(verdict="first", fields={"critique": "On reflection, B is wrong."}),
        Decision(verdict="first", issues=[MarkedIssue(side="second", category="style")]),
    ],
)
def test_another_decision_without_undo_is_rejected(other: Decision) -> None:
    waiting_pairs(1)
    mine = assignments.claim_next_pair(reviewer()).assignment
    first = decisions.decide(assignment=mine, decision=Decision(verdict="first"))
    with pytest.raises(AlreadyDecided):
        decisions.decide(assignment=mine, decision=other)
    assert Preference.objects.get() == first


def test_decision_with_marks_and_kept_issues_sent_twice_is_stored_once() -> None:
    (pair,) = waiting_pairs(1)
    category = IssueCategory.objects.get(slug="style")
    suggestion = suggest(pair, "first", issues=[NewIssue(response=pair.second, category=category) for _ in range(2)])
    kept, other = suggestion.issues.values_list("pk", flat=True)
    marks = [
        MarkedIssue(side="first", category="style", severity="minor", note="A\0 is long.", message=1, start=0, end=2),
        MarkedIssue(side="second", category="style", message=1),
    ]
    mine = assignments.claim_next_pair(reviewer()).assignment
    show_suggestion(assignment=mine)
    decision = Decision(verdict="first", issues=marks, kept=[kept, 0])
    first = decisions.decide(assignment=mine, decision=decision)
    assert decisions.decide(assignment=mine, decision=replace(decision, issues=marks[::-1])) == first
    for changed in (replace(decision, issues=marks[:1]), replace(decision, kept=[kept, other])):
        with pytest.raises(AlreadyDecided):
            decisions.decide(assignment=mine, decision=changed)
    assert first.issues.count() == 3


def test_verdict_against_tests_requires_and_reports_defect() -> None:
    waiting_pairs(1, outcome="pf")
    mine = assignments.claim_next_pair(reviewer()).assignment
    with pytest.raises(InvalidDecision) as refused:
        decisions.decide(assignment=mine, decision=Decision(verdict="second"))
    assert refused.value.path == "defect"
    stored = decisions.decide(assignment=mine, decision=Decision(verdict="second", defect="The test wants 2 + 2 = 5."))
    assert stored.disputes_tests
    assert CaseDefect.objects.get().description == "The test wants 2 + 2 = 5."
    assert stored.defect == CaseDefect.objects.get()


@pytest.mark.parametrize("outcome", ["pf", "ff"])
def test_defect_is_reported_with_a_verdict_that_does_not_contradict_tests(outcome: str) -> None:
    waiting_pairs(1, outcome=outcome)
    mine = assignments.claim_next_pair(reviewer()).assignment
    decision = Decision(verdict="first", defect="The test wants 2 + 2 = 5.")
    stored = decisions.decide(assignment=mine, decision=decision)
    assert stored.defect == CaseDefect.objects.get()
    assert stored.defect.description == "The test wants 2 + 2 = 5."
    assert not stored.disputes_tests
    assert decisions.decide(assignment=mine, decision=decision) == stored
    with pytest.raises(AlreadyDecided):
        decisions.decide(assignment=mine, decision=replace(decision, defect="It wants 6."))


def test_second_verdict_against_tests_adds_to_open_defect_report() -> None:
    waiting_pairs(1, outcome="pf")
    ann = reviewer()
    mine = assignments.claim_next_pair(ann).assignment
    decisions.decide(assignment=mine, decision=Decision(verdict="second", defect="It wants 5."))
    back = decisions.undo_last(user=ann)
    assert back.draft["defect"] == "It wants 5."
    decisions.decide(assignment=back, decision=Decision(verdict="tie", defect=back.draft["defect"]))
    assert CaseDefect.objects.get().description == "It wants 5."
    back = decisions.undo_last(user=ann)
    stored = decisions.decide(assignment=back, decision=Decision(verdict="tie", defect="It also wants 6."))
    assert stored.defect == CaseDefect.objects.get()
    assert stored.defect.description == "It wants 5.\n\nIt also wants 6."


def test_accepted_and_overridden_suggestions_are_recorded() -> None:
    for verdict, pair in zip(("first", "second"), waiting_pairs(2), strict=True):
        suggestion = suggest(pair, "first")
        mine = assignments.claim_next_pair(reviewer(verdict)).assignment
        show_suggestion(assignment=mine)
        stored = decisions.decide(assignment=mine, decision=Decision(verdict=verdict))
        assert (stored.suggestion, stored.suggestion_taken) == (suggestion, verdict == "first")
        assert stored.suggestion_seen_at is not None


def test_hidden_suggestion_is_shown_after_first_verdict_and_both_verdicts_stored(monkeypatch: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.0 if what == "hidden" else 0.99)
    (pair,) = waiting_pairs(1)
    suggest(pair, "first")
    mine = assignments.claim_next_pair(reviewer()).assignment
    assert show_suggestion(assignment=mine) is None
    blind = Decision(verdict="second", blind=True)
    assert decisions.decide(assignment=mine, decision=blind) is None
    assert decisions.decide(assignment=mine, decision=blind) is None  # a double click confirms nothing
    mine.refresh_from_db()
    assert show_suggestion(assignment=mine).verdict == "first"
    stored = decisions.decide(assignment=mine, decision=Decision(verdict="first"))
    assert (stored.first_verdict, stored.verdict, stored.suggestion_taken) == ("second", "first", True)


def test_attention_check_shows_wrong_verdict_and_records_acceptance(monkeypatch: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.0 if what == "check" else 0.99)
    (pair,) = waiting_pairs(1, outcome="pf")
    suggest(pair, "first")
    mine = assignments.claim_next_pair(reviewer()).assignment
    assert show_suggestion(assignment=mine).verdict == "second"
    with pytest.raises(InvalidDecision):
        decisions.decide(assignment=mine, decision=Decision(verdict="second"))
    stored = decisions.decide(assignment=mine, decision=Decision(verdict="first"))
    assert AttentionCheck.objects.get().accepted
    assert (stored.check_result, stored.suggestion_taken) == ("failed", None)


@pytest.fixture
def checked(monkeypatch: Any) -> Assignment:
    """Assignment with an attention check: the judge rightly prefers the first answer, the check shows the second."""
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.0 if what == "check" else 0.99)
    texts = ("def f(x):\n    return x + 1\n", "def f(x):\n    # adds one\n    return x - 1\n")
    (pair,) = waiting_pairs(1, outcome="pf", texts=texts)
    issue = NewIssue(
        response=pair.second,
        category=IssueCategory.objects.get(slug="wrong-result"),
        note="⟦second⟧ subtracts.",
        span=find_quote(pair.second.messages, "return x - 1"),
    )
    suggest(pair, "first", critique="⟦first⟧ adds, ⟦second⟧ does not.", issues=[issue], confidence=0.6)
    return assignments.claim_next_pair(reviewer()).assignment


def test_attention_check_has_critique_and_issues_for_wrong_verdict(checked: Assignment) -> None:
    shown = show_suggestion(assignment=checked)
    assert (shown.verdict, shown.confidence) == ("second", 0.6)
    assert shown.critique == "⟦second⟧ adds, ⟦first⟧ does not."
    (issue,) = shown.issues
    assert (issue.side, issue.note, issue.quote.strip()) == ("first", "⟦first⟧ subtracts.", "return x + 1")
    text = checked.pair.first.messages[issue.message]["content"]
    assert text[issue.start : issue.end] == issue.quote


def test_issues_of_attention_check_are_not_stored(checked: Assignment) -> None:
    (issue,) = show_suggestion(assignment=checked).issues
    stored = decisions.decide(assignment=checked, decision=Decision(verdict="first", kept=[issue.pk]))
    assert (stored.check_result, stored.dismissed) == ("passed", [])
    assert not stored.issues.exists()


def test_no_attention_check_if_suggestion_is_wrong_or_undecided(monkeypatch: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.0 if what == "check" else 0.99)
    ann = reviewer()
    for pair, verdict in zip(waiting_pairs(2, outcome="pf"), ("second", "tie"), strict=True):
        suggest(pair, verdict)
        mine = assignments.claim_next_pair(ann).assignment
        assert show_suggestion(assignment=mine).verdict == verdict
        decisions.decide(assignment=mine, decision=Decision(verdict="first"))
    assert not AttentionCheck.objects.exists()


def test_undo_reopens_decision_and_next_one_supersedes_it() -> None:
    waiting_pairs(2)
    ann = reviewer()
    mine = assignments.claim_next_pair(ann).assignment
    text = mine.pair.first.messages[1]["content"]
    mark = MarkedIssue(side="first", category="style", message=1, start=0, end=len(text))
    before = decisions.decide(assignment=mine, decision=Decision(verdict="tie", issues=[mark]))
    back = decisions.undo_last(user=ann)
    assert (back.pk, back.draft["verdict"]) == (mine.pk, "tie")
    assert '"quote": "one"' in back.draft["issues"]
    after = decisions.decide(assignment=back, decision=Decision(verdict="first"))
    assert after.supersedes == before
    assert Preference.objects.filter(successor__isnull=True).get() == after


def test_each_further_undo_goes_one_pair_further_back() -> None:
    waiting_pairs(4)
    ann = reviewer()
    mine = []
    for skipped in (False, True, False):
        mine.append(assignments.claim_next_pair(ann).assignment)
        if skipped:
            assignments.skip_pair(assignment=mine[-1], reason="")
        else:
            decisions.decide(assignment=mine[-1], decision=Decision(verdict="tie"))
    assignments.claim_next_pair(ann)
    for expected in reversed(mine):
        assert decisions.undo_last(user=ann) == expected
    assert decisions.undo_last(user=ann) is None
    assert Assignment.objects.get(state="open") == mine[0]
    # After a new decision, undo begins with the pair that was decided last.
    decisions.decide(assignment=Assignment.objects.get(state="open"), decision=Decision(verdict="first"))
    assert decisions.undo_last(user=ann) == mine[0]
    assert decisions.undo_last(user=ann) == mine[2]
    # The skipped pair is back in the queue: it is claimed again, and is not a pair that was undone.
    decisions.decide(assignment=Assignment.objects.get(state="open"), decision=Decision(verdict="first"))
    again = assignments.claim_next_pair(ann).assignment
    assert again == mine[1]
    assert decisions.undo_last(user=ann) == mine[2]


def test_changes_to_an_undone_decision_are_kept_as_draft_if_undo_goes_further_back() -> None:
    waiting_pairs(2)
    ann = reviewer()
    for _ in range(2):
        decisions.decide(assignment=assignments.claim_next_pair(ann).assignment, decision=Decision(verdict="tie"))
    second = decisions.undo_last(user=ann)
    assignments.save_draft(assignment=second, draft={**second.draft, "critique": "Half a sentence"})
    first = decisions.undo_last(user=ann)
    decisions.decide(assignment=first, decision=Decision(verdict="first"))
    assert [decisions.undo_last(user=ann) for _ in range(2)] == [first, second]
    assert Assignment.objects.get(pk=second.pk).draft["critique"] == "Half a sentence"


def test_undone_decision_stays_in_force_if_left() -> None:
    waiting_pairs(1)
    ann = reviewer()
    before = decisions.decide(assignment=assignments.claim_next_pair(ann).assignment, decision=Decision(verdict="tie"))
    lapse(decisions.undo_last(user=ann))
    assignments.release_lapsed_assignments()
    assert Assignment.objects.get().state == "done"
    assert assignments.claim_next_pair(reviewer("bob")).assignment is None
    assert Preference.objects.get() == before


def test_undone_decision_stays_in_force_and_keeps_its_slot_if_skipped() -> None:
    (pair,) = waiting_pairs(1)
    ann = reviewer()
    before = decisions.decide(assignment=assignments.claim_next_pair(ann).assignment, decision=Decision(verdict="tie"))
    assignments.skip_pair(assignment=decisions.undo_last(user=ann), reason="I am not sure.")
    mine = Assignment.objects.get()
    assert (mine.state, mine.skip_reason) == ("done", "I am not sure.")
    assert assignments.claim_next_pair(reviewer("bob")).assignment is None
    after = decisions.decide(assignment=decisions.undo_last(user=ann), decision=Decision(verdict="first"))
    assert after.supersedes == before
    pair.refresh_from_db()
    assert pair.free == 0


def test_time_of_a_decision_begins_again_with_undo() -> None:
    waiting_pairs(1)
    ann = reviewer()
    decisions.decide(assignment=assignments.claim_next_pair(ann).assignment, decision=Decision(verdict="tie"))
    Assignment.objects.update(started_at=timezone.now() - timedelta(days=1))
    after = decisions.decide(assignment=decisions.undo_last(user=ann), decision=Decision(verdict="first"))
    assert after.seconds < 60


def test_skip_cannot_be_undone_while_others_have_the_pair() -> None:
    waiting_pairs(1)
    ann = reviewer("ann")
    assignments.skip_pair(assignment=assignments.claim_next_pair(ann).assignment, reason="")
    assignments.claim_next_pair(reviewer("bob"))
    with pytest.raises(AssignmentLost, match="taken"):
        decisions.undo_last(user=ann)


@pytest.mark.parametrize("skipped", [False, True])
def test_pair_of_a_run_that_is_no_longer_visible_is_not_reopened(skipped: bool) -> None:
    (pair,) = waiting_pairs(1)
    ann = reviewer("ann")
    mine = assignments.claim_next_pair(ann).assignment
    if skipped:
        assignments.skip_pair(assignment=mine, reason="")
    else:
        decisions.decide(assignment=mine, decision=Decision(verdict="tie"))
    team = Team.objects.create(group=Group.objects.create(name="others"), slug="others")
    Run.objects.filter(pk=pair.run_id).update(team=team)
    with pytest.raises(AssignmentLost, match=f"no longer see the run of pair {pair.pk}"):
        decisions.undo_last(user=User.objects.get(pk=ann.pk))
    mine.refresh_from_db()
    assert mine.state == ("skipped" if skipped else "done")


def test_skipped_pair_is_offered_to_other_reviewers_only() -> None:
    waiting_pairs(1)
    ann = reviewer("ann")
    assignments.skip_pair(assignment=assignments.claim_next_pair(ann).assignment, reason="I wrote it.")
    assert assignments.claim_next_pair(ann).assignment is None
    assert assignments.claim_next_pair(reviewer("bob")).assignment is not None


def test_mark_outside_response_or_with_other_hash_is_rejected() -> None:
    waiting_pairs(1)
    mine = assignments.claim_next_pair(reviewer()).assignment
    for place in (
        {"start": 0, "end": 99},
        {"start": 0, "end": 1, "text_hash": "0" * 64},
        {"message": 9, "start": 0, "end": 1},
        {"message": 0, "start": 0, "end": 1},  # the task
        {"start": 0},
        {"end": 1},
    ):
        mark = MarkedIssue(side="first", category="style", **{"message": 1, **place})
        with pytest.raises(InvalidDecision):
            decisions.decide(assignment=mine, decision=Decision(verdict="tie", issues=[mark]))
    assert not Preference.objects.exists()


def test_pairs_of_private_environments_are_not_offered() -> None:
    (pair,) = waiting_pairs(1)
    type(pair.first.run_environment.version.environment).objects.update(visibility="private")
    assert assignments.claim_next_pair(reviewer()).assignment is None


def test_only_open_assignment_has_lease_owner() -> None:
    ann = reviewer("ann")
    (pair,) = waiting_pairs(1)
    assignment = assignments.claim_pair(pair, ann)
    assert assignment.lease_owner == f"reviewer:{ann.pk}"
    assignments.skip_pair(assignment=assignment, reason="")
    assignment.refresh_from_db()
    assert (assignment.state, assignment.lease_owner, assignment.lease_until) == ("skipped", "", None)
    again = assignments.claim_pair(pair, ann)
    Assignment.objects.filter(pk=again.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert assignments.release_lapsed_assignments() == 1
    again.refresh_from_db()
    assert (again.state, again.lease_owner, again.lease_until) == ("lapsed", "", None)
