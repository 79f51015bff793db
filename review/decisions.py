"""Decisions of reviewers: validating, storing and undoing them."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from hub.common import leases
from hub.common.storable import storable
from hub.models import CaseDefect
from hub.protocols.messages import JSON
from hub.services import extend_defect, report_defect
from preferences.decision_fields import shown_values, stored_values
from preferences.evidence import Evidence, evidence_of
from preferences.models import Preference
from preferences.services import NewPreference, Reaction, record_preference
from preferences.sides import Sides, lists_choices
from review.errors import AlreadyDecided, InvalidDecision
from review.issues import MarkedIssue, kept_issues, new_issues
from review.judge.suggestions import attention_check_of
from review.models import Assignment, AttentionCheck
from review.queue.assignments import (
    DONE,
    LEASE,
    OPEN,
    SKIPPED,
    AssignmentLost,
    claim_pair,
    name_responses_by_id,
    release_open_assignment,
    renew_assignment,
)
from runs.selectors import visible_runs

_MARK_FIELDS = ("severity", "message", "call", "start", "end", "text_hash")
MAX_DEFECT = 4000  # characters of a description of what is wrong with the tests
_LISTED_QUOTE = 80  # characters of a quote in a draft, for the list of marks on the page


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Decision of a reviewer. `verdict` is first, second, tie or both_bad; texts name the responses A and B as shown.

    `fields` has values of `Preference.DECISION_FIELDS` by name, as the reviewer entered them. `kept` holds ids of
    suggested issues. `defect` describes what is wrong with the tests. It is required if the verdict contradicts them,
    and is reported with any verdict. `blind`: the reviewer had not seen the hidden suggestion. If such a form is sent
    twice, the second one does not count as confirmation.
    """

    verdict: str
    fields: Mapping[str, object] = field(default_factory=dict)
    issues: list[MarkedIssue] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    defect: str = ""
    blind: bool = False


def decide(*, assignment: Assignment, decision: Decision) -> Preference | None:
    """Store the decision and end the assignment. The same decision sent twice is stored once.

    The assignment was read in this request; `find_assignment` loads all that is needed. If it has ended since then,
    that is noticed when its lease is released.

    Returns None if the suggestion was hidden and this was the first verdict: the verdict is saved, and the reviewer
    confirms or changes it once the suggestion is shown. Raises InvalidDecision, AssignmentLost, and AlreadyDecided for
    another decision than the stored one.
    """
    if assignment.state != OPEN:
        return _stored_decision(assignment, decision)
    pair = assignment.pair
    check = _update_attention_check(assignment, decision)
    if check is not None:  # the issues of a check are made up
        decision = replace(decision, kept=[])
    if pair.suggestion is not None and assignment.hides_suggestion and (decision.blind or not assignment.first_verdict):
        undecided = Assignment.objects.filter(pk=assignment.pk, state=OPEN, first_verdict="")
        undecided.update(first_verdict=decision.verdict)
        renew_assignment(assignment=assignment)
        assignment.refresh_from_db(fields=["first_verdict"])
        return None
    evidence = evidence_of(pair.first, pair.second)
    disputes = bool(evidence["winner"]) and decision.verdict != evidence["winner"]
    if disputes and not decision.defect.strip():
        raise InvalidDecision(
            "defect",
            "Your verdict contradicts the tests, which pass on one side only. Describe what is wrong with the tests, "
            "or choose the side that passes.",
        )
    return _store(assignment, decision, evidence, _reaction(assignment, decision, check, disputes))


def _update_attention_check(assignment: Assignment, decision: Decision) -> AttentionCheck | None:
    """Return the attention check of the assignment. Records its result at the first verdict after it was shown."""
    check = attention_check_of(assignment)
    if check is not None and check.accepted is None and assignment.suggestion_seen_at is not None:
        check.accepted = check.wrong_verdict == decision.verdict
        check.save(update_fields=["accepted"])
    return check


def _store(assignment: Assignment, decision: Decision, evidence: Evidence, reaction: Reaction) -> Preference:
    pair, now = assignment.pair, timezone.now()
    sides, choices = Sides(assignment.swapped), lists_choices(pair.first.prompt)
    issues = new_issues(pair, decision.issues, sides, choices) + kept_issues(pair, decision.kept)
    with transaction.atomic():
        # Updated first, so that a duplicate request waits here and then finds the stored decision.
        if not leases.release(assignment, assignment.holder, state=DONE, finished_at=now):
            return _stored_decision(Assignment.objects.select_related("preference").get(pk=assignment.pk), decision)
        new = NewPreference(
            first=pair.first,
            second=pair.second,
            verdict=decision.verdict,
            fields=stored_values(decision.fields, sides, choices=choices),
            issues=issues,
            evidence=evidence,
            reviewer=assignment.reviewer,
            reaction=replace(reaction, defect=_file_defect(assignment, decision)),
            seconds=(now - assignment.started_at).total_seconds(),
            supersedes=_undone_preference(assignment),
        )
        preference = record_preference(new)
        Assignment.objects.filter(pk=assignment.pk).update(preference=preference, draft={})
        assignment.preference = preference
    return preference


def _stored_decision(assignment: Assignment, decision: Decision) -> Preference:
    """Return the preference of *assignment*, which is not open, if it is equal to *decision*.

    Raises AlreadyDecided if verdict, fields or issues differ or the defect was not reported with it, and AssignmentLost
    if there is no preference.
    """
    stored = assignment.preference
    if assignment.state != DONE or stored is None:
        raise AssignmentLost("Your assignment of this pair has lapsed, and another reviewer may have it.")
    sides, choices = Sides(assignment.swapped), lists_choices(stored.first.prompt)
    entered = storable(stored_values(decision.fields, sides, choices=choices))
    same_fields = all(getattr(stored, name) == value for name, value in entered.items())
    described = storable(name_responses_by_id(assignment, decision.defect.strip()))
    same_defect = described in (stored.defect.description if stored.defect is not None else "")
    same = decision.verdict == stored.verdict and same_fields and same_defect
    if not same or not _has_issues_of(stored, decision, sides, choices):
        raise AlreadyDecided(
            f"You had already decided pair {assignment.pair_id}, so what you sent now is not stored. To change your "
            "last decision, undo it."
        )
    return stored


def _has_issues_of(stored: Preference, decision: Decision, sides: Sides, choices: bool) -> bool:
    """Return whether *decision* has the marks of *stored*, in any order, and keeps the same suggested issues."""
    suggested = set(stored.suggestion.issues.values_list("pk", flat=True)) if stored.suggestion else set()
    issues = list(stored.issues.select_related("category"))
    kept = {issue.kept_from_id for issue in issues if issue.kept_from_id is not None}
    marks = Counter(
        (
            *(stored.side_of(issue.response_id), issue.category.slug, issue.severity, issue.note),
            *(issue.start, issue.end, issue.message, issue.call),
        )
        for issue in issues
        if issue.kept_from_id is None
    )
    entered = Counter(
        (
            *(item.side, item.category, item.severity, storable(sides.letters_to_tokens(item.note, choices=choices))),
            *(item.start, item.end),
            *((item.message, item.call) if item.start is not None else (0, None)),  # of the whole response
        )
        for item in decision.issues
    )
    return kept == suggested.intersection(decision.kept) and marks == entered


def _file_defect(assignment: Assignment, decision: Decision) -> CaseDefect | None:
    """Return the reviewer's open defect report about the case with what they wrote now, or create one.

    Returns None if they described no defect.
    """
    case, reviewer = assignment.pair.case, assignment.reviewer
    description = name_responses_by_id(assignment, decision.defect.strip())
    if not description:
        return None
    waiting = case.defects.filter(reported_by=reviewer, status=CaseDefect.Status.OPEN).first()
    if waiting is None:
        return report_defect(case=case, description=description, user=reviewer)
    extend_defect(defect=waiting, description=description)
    return waiting


def _undone_preference(assignment: Assignment) -> Preference | None:
    """Return the undone decision of the assignment that the new one supersedes, if any."""
    if assignment.preference is None or Preference.objects.filter(supersedes=assignment.preference).exists():
        return None
    return assignment.preference


def _reaction(assignment: Assignment, decision: Decision, check: AttentionCheck | None, disputes: bool) -> Reaction:
    suggestion = assignment.pair.suggestion
    result = "" if check is None or check.accepted is None else ("failed" if check.accepted else "passed")
    seen = suggestion is not None and assignment.suggestion_seen_at is not None
    dismissed: list[int] = []
    if suggestion is not None and seen and check is None:
        dismissed = [pk for pk in suggestion.issues.values_list("pk", flat=True) if pk not in decision.kept]
    return Reaction(
        # A check does not show the judge's suggestion, so the suggestion is neither accepted nor overridden.
        suggestion=suggestion if check is None else None,
        taken=decision.verdict == suggestion.verdict if suggestion is not None and seen and check is None else None,
        seen_at=assignment.suggestion_seen_at,
        first_verdict=assignment.first_verdict,
        dismissed=dismissed,
        check_result=result,
        disputes_tests=disputes,
    )


def undo_last(*, user: User) -> Assignment | None:
    """Reopen the last decision or skip of *user* and return its assignment, or None if there is nothing to reopen.

    If *user* has reopened one already, reopen the one before it. A reopened assignment therefore keeps its
    `finished_at`, and other open ones have none.

    A decision stays in force until a new one supersedes it; the time of the new one begins now. Raises AssignmentLost
    if *user* may no longer see the run of the pair, or if other reviewers have the pair that was skipped.
    """
    ended = Assignment.objects.filter(reviewer=user, state__in=[DONE, SKIPPED])
    reopened = Assignment.objects.filter(reviewer=user, state=OPEN, finished_at__isnull=False).first()
    if reopened is not None:
        ended = ended.filter(finished_at__lt=reopened.finished_at)
    last = ended.order_by(F("finished_at").desc(nulls_last=True)).first()
    if last is None:
        return None
    if not visible_runs(user).filter(pk=last.pair.run_id).exists():
        raise AssignmentLost(f"You can no longer see the run of pair {last.pair_id}.")
    if last.state == SKIPPED:
        claimed = claim_pair(last.pair, user)
        Assignment.objects.filter(pk=claimed.pk, state=OPEN).update(finished_at=last.finished_at)
        return claimed
    # Changes that were left when undo went further back are still in the draft.
    draft = last.draft or (_draft_of(last, last.preference) if last.preference else {})
    done, now = Q(state=DONE), timezone.now()
    with transaction.atomic():
        release_open_assignment(user)
        taken = leases.take(last, last.holder, LEASE, condition=done, state=OPEN, draft=draft, started_at=now)
    return last if taken else None


def _draft_of(assignment: Assignment, preference: Preference) -> dict[str, JSON]:
    """Return the draft that corresponds to a stored decision, with sides named A and B."""
    sides = Sides(assignment.swapped)
    issues = list(preference.issues.select_related("category"))
    marks = [
        {
            "side": sides.letter(preference.side_of(issue.response_id)).lower(),
            "category": issue.category.slug,
            **{name: getattr(issue, name) for name in _MARK_FIELDS},
            "quote": issue.quote[:_LISTED_QUOTE],
            "note": sides.shown(issue.note),
        }
        for issue in issues
        if issue.kept_from_id is None
    ]
    reported = preference.defect
    waiting = reported if reported is not None and reported.status == CaseDefect.Status.OPEN else None
    return {
        "verdict": sides.letter(preference.verdict).lower(),
        "defect": waiting.description[:MAX_DEFECT] if waiting is not None else "",
        **shown_values(preference, sides),
        "issues": json.dumps(marks),
        "kept": [issue.kept_from_id for issue in issues if issue.kept_from_id is not None],
    }
