"""Issues that a reviewer marks in responses, or keeps from a suggestion."""

from collections.abc import Sequence
from dataclasses import dataclass

from preferences.models import Issue, IssueCategory
from preferences.services import NewIssue
from preferences.sides import Side, Sides
from preferences.spans import Span, span_at, text_at, text_hash
from review.errors import InvalidDecision
from review.models import Pair
from runs.models import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedIssue:
    """Issue that a reviewer marked: `side` (first or second), message index and code-point offsets of a span.

    If `call` is set, the offsets refer to the text of the tool call with that index in the message.
    """

    side: Side
    category: str
    severity: str = Issue.Severity.MAJOR
    note: str = ""
    message: int = 0
    call: int | None = None
    start: int | None = None
    end: int | None = None
    text_hash: str = ""


def new_issues(pair: Pair, items: Sequence[MarkedIssue], sides: Sides, choices: bool) -> list[NewIssue]:
    """Return the marked issues with their spans. Raises InvalidDecision.

    *choices* says that the task lists choices named by letters; see `Sides.letters_to_tokens`.
    """
    slugs = {item.category for item in items}
    categories = {category.slug: category for category in IssueCategory.objects.filter(slug__in=slugs)} if slugs else {}
    return [_new_issue(pair, item, categories.get(item.category), sides, choices) for item in items]


def _new_issue(pair: Pair, item: MarkedIssue, category: IssueCategory | None, sides: Sides, choices: bool) -> NewIssue:
    if category is None:
        raise InvalidDecision(
            "issues", f"There is no issue category {item.category!r}. Reload the page and mark the issue again."
        )
    if item.severity not in Issue.Severity.values:
        raise InvalidDecision(
            "issues", f"There is no severity {item.severity!r}. Use one of {', '.join(Issue.Severity.values)}."
        )
    response = pair.response(item.side)
    return NewIssue(
        response=response,
        category=category,
        severity=item.severity,
        note=sides.letters_to_tokens(item.note, choices=choices),
        span=_marked_span(response, item),
    )


def _marked_span(response: Response, item: MarkedIssue) -> Span | None:
    """Return the span of *item* in *response*; None if it is about the whole response. Raises InvalidDecision."""
    if item.start is None and item.end is None:
        return None
    if item.start is None or item.end is None:
        raise InvalidDecision(
            "issues", "A mark has a start without an end, or an end without a start. Give both or none."
        )
    if item.message < response.first_answer:
        raise InvalidDecision("issues", f"Message {item.message} is part of the task. Mark text of the response.")
    try:
        text = text_at(response.messages, item.message, item.call)
        if item.text_hash and item.text_hash != text_hash(text):
            raise ValueError("A mark refers to an older version of the response. Reload the page and mark again.")
        return span_at(text, item.start, item.end, item.message, item.call)
    except ValueError as error:
        raise InvalidDecision("issues", str(error)) from None


def kept_issues(pair: Pair, ids: list[int]) -> list[NewIssue]:
    """Return copies of the suggested issues that the reviewer keeps."""
    if pair.suggestion is None or not ids:
        return []
    kept = []
    for issue in pair.suggestion.issues.select_related("category", "response"):
        if issue.pk not in ids:
            continue
        span = None
        if issue.start is not None and issue.end is not None:
            text = text_at(issue.response.messages, issue.message, issue.call)
            span = span_at(text, issue.start, issue.end, issue.message, issue.call)
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
