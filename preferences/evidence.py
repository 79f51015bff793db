"""Scoring results of a pair: the result of each rule for both responses, and the side that execution decides for."""

from typing import Literal, TypedDict

from django.contrib.auth.models import AnonymousUser, User

from hub.selectors import may_see_content
from preferences.models import Issue, Preference
from preferences.sides import Side
from runs.models import Response, Run, Score
from runs.selectors import may_see_log

PASSED, FAILED = Response.Status.PASSED, Response.Status.FAILED


class Failure(TypedDict, total=False):
    """First failed test of an execution, as the sandbox reports it."""

    test: str
    line: int | None
    expected: object
    got: object


class ExecutionResult(TypedDict):
    """Result of executing an answer's code."""

    status: str
    message: str | None
    passed: int | None
    total: int | None
    failure: Failure | None
    tier: str | None


class RuleResult(TypedDict):
    """Result of one rule for one response."""

    rule: str
    type: str
    value: float | None
    reason: str
    execution: ExecutionResult | None


class SideEvidence(TypedDict):
    """Scoring results of one response."""

    response: int
    status: str
    score: float | None
    rules: list[RuleResult]


class Evidence(TypedDict, total=False):
    """Scoring results of both responses. The stored evidence of a preference can be empty."""

    first: SideEvidence
    second: SideEvidence
    winner: Side | Literal[""]


def winner(first: Response, second: Response) -> Side | Literal[""]:
    """Return `first` or `second` if both responses were scored and exactly that one passes, else ""."""
    if first.status == PASSED and second.status == FAILED:
        return "first"
    if second.status == PASSED and first.status == FAILED:
        return "second"
    return ""


def evidence_of(first: Response, second: Response) -> Evidence:
    """Return the scoring results of two responses."""
    return {"first": _side(first), "second": _side(second), "winner": winner(first, second)}


def _side(response: Response) -> SideEvidence:
    return {
        "response": response.pk,
        "status": response.status,
        "score": response.score,
        "rules": [_rule(score) for score in response.scores.all()],
    }


def _rule(score: Score) -> RuleResult:
    execution: ExecutionResult | None = None
    if score.execution:
        execution = {
            "status": score.execution.get("status"),
            "message": score.execution.get("message"),
            "passed": score.execution.get("passed"),
            "total": score.execution.get("total"),
            "failure": score.execution.get("failure"),
            "tier": score.execution.get("tier"),
        }
    return {
        "rule": score.rule,
        "type": score.type,
        "value": score.value,
        "reason": score.reason,
        "execution": execution,
    }


def without_reasons(evidence: Evidence) -> Evidence:
    """Return *evidence* without reasons and execution results, for users who may not see the environment's content."""
    shown = evidence.copy()
    if "first" in evidence:
        shown["first"] = _side_without_reasons(evidence["first"])
    if "second" in evidence:
        shown["second"] = _side_without_reasons(evidence["second"])
    return shown


def _side_without_reasons(side: SideEvidence) -> SideEvidence:
    rules: list[RuleResult] = [{**rule, "reason": "", "execution": None} for rule in side.get("rules", [])]
    return {**side, "rules": rules}


def may_read_words(user: User | AnonymousUser, preference: Preference, issue: Issue | None = None) -> bool:
    """Return whether *user*, who may see *preference*, may read its critiques, or the note of its *issue*.

    A judge that saw the scoring results may quote their reasons, also in an issue that a reviewer has kept.
    """
    kept = issue is not None and issue.kept_from_id is not None
    author = preference.suggestion if kept else preference
    return author is None or not author.saw_evidence or may_see_content(user, preference.version.environment)


class Withholding:
    """Removal of what *user*, who may see the preferences, may not read of them.

    These are the reasons of scores, critiques and notes that may quote them, and the id of the MLflow run, which has
    both for all environments of the run.
    """

    def __init__(self, user: User | AnonymousUser) -> None:
        self._user = user
        self._readable_logs: dict[int, bool] = {}  # by run: an export has many preferences of few runs

    def __call__(self, preference: Preference) -> Preference:
        """Change *preference*, in memory only, and return it. Its issues must be prefetched."""
        for issue in preference.issues.all():
            if not may_read_words(self._user, preference, issue):
                issue.note = ""
        if not may_read_words(self._user, preference):
            preference.critique, preference.order_critiques = "", []
        if not may_see_content(self._user, preference.version.environment):
            preference.evidence = without_reasons(preference.evidence)
        if preference.run.tracking and not self._may_see_log(preference.run):
            preference.run.tracking = {}
        return preference

    def _may_see_log(self, run: Run) -> bool:
        if run.pk not in self._readable_logs:
            self._readable_logs[run.pk] = may_see_log(self._user, run)
        return self._readable_logs[run.pk]
