"""Suggestions as shown to one reviewer: as stored, hidden until a first verdict, or replaced by an attention check."""

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Self

from django.utils import timezone

from hub.protocols.messages import text_of
from preferences.evidence import may_read_words, winner
from preferences.models import Issue, IssueCategory, Preference
from preferences.sides import Side, exchange_tokens, other_side
from preferences.spans import Span, find_quote
from review.models import Assignment, AttentionCheck, Pair
from runs.models import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownIssue:
    """Issue of a suggestion. `pk` is the id of the stored issue; `side` is first or second."""

    pk: int
    side: Side
    category: IssueCategory
    severity: str
    note: str
    message: int = 0
    call: int | None = None
    start: int | None = None
    end: int | None = None
    quote: str = ""

    @classmethod
    def of(cls, issue: Issue, suggestion: Preference) -> Self:
        return cls(
            pk=issue.pk,
            side=suggestion.side_of(issue.response_id),
            category=issue.category,
            severity=issue.severity,
            note=issue.note,
            message=issue.message,
            call=issue.call,
            start=issue.start,
            end=issue.end,
            quote=issue.quote,
        )


@dataclass(frozen=True, slots=True)
class ShownSuggestion:
    """Suggestion as shown to one reviewer. For an attention check, it holds the wrong verdict."""

    verdict: str
    confidence: float | None
    critique: str
    order_critiques: list[str]
    order_sensitive: bool
    self_preference: bool
    issues: list[ShownIssue]


def attention_check_of(assignment: Assignment) -> AttentionCheck | None:
    """Return the attention check that was shown for the assignment, or None."""
    if not assignment.pair.judged_blind:  # no other pair gets one
        return None
    return AttentionCheck.objects.filter(assignment=assignment).first()


def show_suggestion(*, assignment: Assignment) -> ShownSuggestion | None:
    """Return the suggestion to show, recording when it was first seen; None if there is none or it is hidden.

    Its words are left out if they may quote reasons that the reviewer may not see.
    """
    suggestion = assignment.pair.suggestion
    if suggestion is None or (assignment.hides_suggestion and not assignment.first_verdict):
        return None
    if assignment.suggestion_seen_at is None:
        assignment.suggestion_seen_at = timezone.now()
        Assignment.objects.filter(pk=assignment.pk, suggestion_seen_at=None).update(
            suggestion_seen_at=assignment.suggestion_seen_at
        )
    issues = [ShownIssue.of(issue, suggestion) for issue in suggestion.issues.select_related("category")]
    suggestion.version = assignment.pair.first.run_environment.version  # loaded already
    words = may_read_words(assignment.reviewer, suggestion)
    if not words:
        issues = [replace(issue, note="") for issue in issues]
    shown = ShownSuggestion(
        verdict=suggestion.verdict,
        confidence=suggestion.confidence,
        critique=suggestion.critique if words else "",
        order_critiques=list(suggestion.order_critiques) if words else [],
        order_sensitive=suggestion.order_sensitive,
        self_preference=suggestion.self_preference,
        issues=issues,
    )
    check = attention_check_of(assignment)
    if check is None:
        return shown
    # The judge's own critique, with the sides exchanged, argues for the wrong verdict and reads like other suggestions.
    return replace(
        shown,
        verdict=check.wrong_verdict,
        critique=exchange_tokens(shown.critique),
        order_critiques=[],
        order_sensitive=False,
        issues=[_exchange_issue(issue, assignment) for issue in shown.issues],
    )


def is_acceptable(suggestion: ShownSuggestion, pair: Pair) -> bool:
    """Return whether the suggested verdict does not contradict the tests, so that a reviewer can accept it as it is."""
    return winner(pair.first, pair.second) in ("", suggestion.verdict)


def _exchange_issue(issue: ShownIssue, assignment: Assignment) -> ShownIssue:
    """Return *issue* moved to the other response; a quote is replaced by the most similar text there."""
    side = other_side(issue.side)
    span = _find_similar(issue.quote, assignment.pair.response(side)) if issue.quote else None
    return ShownIssue(
        pk=issue.pk,
        side=side,
        category=issue.category,
        severity=issue.severity,
        note=exchange_tokens(issue.note),
        message=span.message if span else 0,
        call=span.call if span else None,
        start=span.start if span else None,
        end=span.end if span else None,
        quote=span.quote if span else "",
    )


def _find_similar(quote: str, response: Response) -> Span | None:
    """Return the span of *quote*, else of the most similar line of the last answer; None if there is no answer."""
    messages, start = response.messages, response.first_answer
    found = find_quote(messages, quote, start=start)
    if found is not None:
        return found
    answer = next((text_of(m) for m in reversed(messages[start:]) if m.get("role") == "assistant"), "")
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    nearest = get_close_matches(quote, lines[:200], n=1, cutoff=0.0)
    return find_quote(messages, nearest[0], start=start) if nearest else None
