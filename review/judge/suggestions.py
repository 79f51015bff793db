"""What one reviewer sees of a pair's suggestion: all of it, nothing until a first verdict, or an attention check."""

from dataclasses import dataclass

from django.utils import timezone

from preferences.models import Issue
from review.models import Assignment, AttentionCheck


@dataclass(frozen=True, slots=True)
class Shown:
    """A suggestion as one reviewer sees it; for an attention check with the wrong verdict in its place."""

    verdict: str
    confidence: float | None
    critique: str
    order_critiques: list[str]
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
        return Shown(check.wrong_verdict, confidence, "", [], False, suggestion.self_preference, [])
    return Shown(
        suggestion.verdict,
        suggestion.confidence,
        suggestion.critique,
        list(suggestion.order_critiques),
        suggestion.order_sensitive,
        suggestion.self_preference,
        list(suggestion.issues.select_related("category")),
    )
