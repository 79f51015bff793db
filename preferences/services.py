"""Services that record preferences of reviewers, judges and execution."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from hub.common.storable import storable
from hub.models import CaseDefect
from preferences.answers import compare_answers
from preferences.evidence import Evidence
from preferences.models import Issue, IssueCategory, Preference
from preferences.spans import Span
from runs.models import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIssue:
    """Issue to record. Without `span`, it applies to the whole response."""

    response: Response
    category: IssueCategory
    severity: str = Issue.Severity.MAJOR
    note: str = ""
    span: Span | None = None
    kept_from: Issue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeIdentity:
    """Judge model, prompt version and conditions of a judge's verdict.

    `orders` holds the verdicts with the first and with the second response shown as A. `order_critiques` holds the
    critiques in the same sequence.
    """

    label: str
    fingerprint: str
    prompt_version: str
    order_sensitive: bool = False
    orders: Sequence[str] = ()
    order_critiques: Sequence[str] = ()
    saw_evidence: bool = False
    self_preference: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """Relation of a reviewer's verdict to the suggestion: what was shown, when, and the verdict given before."""

    suggestion: Preference | None = None
    taken: bool | None = None
    seen_at: datetime | None = None
    first_verdict: str = ""
    dismissed: Sequence[int] = ()
    check_result: str = ""
    disputes_tests: bool = False
    defect: CaseDefect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPreference:
    """Verdict on two responses to one case, to record. Either `reviewer` or `judge` is set, or neither for execution.

    `fields` has values of `Preference.DECISION_FIELDS` by name. Its texts and the notes of `issues` refer to the
    responses by the tokens of `preferences.sides`. `supersedes` is the preference that the new one replaces.
    """

    first: Response
    second: Response
    verdict: str
    fields: Mapping[str, object] = field(default_factory=dict)
    confidence: float | None = None
    issues: Sequence[NewIssue] = ()
    evidence: Evidence = field(default_factory=Evidence)
    reviewer: User | None = None
    judge: JudgeIdentity | None = None
    reaction: Reaction = field(default_factory=Reaction)
    seconds: float | None = None
    supersedes: Preference | None = None


def record_preference(item: NewPreference) -> Preference:
    """Store one preference; see `record_preferences`."""
    return record_preferences([item])[0]


def record_preferences(items: Sequence[NewPreference]) -> list[Preference]:
    """Store preferences with their issues in one transaction.

    Raises ValueError if two responses belong to different cases. The source is human if an item has a reviewer, llm if
    it has a judge, else execution.
    """
    rows = [_preference(item) for item in items]
    with transaction.atomic(savepoint=False):  # `decide` calls this in a transaction, and rolls all of it back
        Preference.objects.bulk_create(rows)
        Issue.objects.bulk_create(
            _issue(preference, issue) for preference, item in zip(rows, items, strict=True) for issue in item.issues
        )
    return rows


def _preference(item: NewPreference) -> Preference:
    if item.first.case_id != item.second.case_id:
        raise ValueError("A preference compares two responses to the same case.")
    judge, reaction = item.judge, item.reaction
    source = Preference.Source.EXECUTION
    if item.reviewer is not None:
        source = Preference.Source.HUMAN
    elif judge is not None:
        source = Preference.Source.LLM
    run = item.first.run_environment.run
    return Preference(
        first=item.first,
        second=item.second,
        verdict=item.verdict,
        source=source,
        **{name: storable(value) if isinstance(value, str) else value for name, value in item.fields.items()},
        confidence=item.confidence,
        reviewer=item.reviewer,
        judge=judge.label if judge else "",
        judge_fingerprint=judge.fingerprint if judge else "",
        prompt_version=judge.prompt_version if judge else "",
        order_sensitive=bool(judge and judge.order_sensitive),
        orders=list(judge.orders) if judge else [],
        order_critiques=[storable(text) for text in judge.order_critiques] if judge else [],
        saw_evidence=bool(judge and judge.saw_evidence),
        self_preference=bool(judge and judge.self_preference),
        suggestion=reaction.suggestion,
        suggestion_taken=reaction.taken,
        suggestion_seen_at=reaction.seen_at,
        first_verdict=reaction.first_verdict,
        dismissed=list(reaction.dismissed),
        check_result=reaction.check_result,
        disputes_tests=reaction.disputes_tests,
        defect=reaction.defect,
        run=run,
        version_id=item.first.run_environment.version_id,
        case=item.first.case,
        input_digest=item.first.case.input_digest,
        scoring_digest=item.first.case.scoring_digest,
        config_hash=run.config_hash,
        evidence=item.evidence,
        **compare_answers(item.first, item.second),
        seconds=item.seconds,
        supersedes=item.supersedes,
    )


def _issue(preference: Preference, item: NewIssue) -> Issue:
    span = (
        {key: storable(value) if isinstance(value, str) else value for key, value in asdict(item.span).items()}
        if item.span
        else {}
    )
    return Issue(
        preference=preference,
        response=item.response,
        category=item.category,
        severity=item.severity,
        note=storable(item.note),
        kept_from=item.kept_from,
        **span,
    )
