"""Scoring results of a pair: the result of each rule for both responses, and the side that execution decides for."""

from typing import Any, Literal

from preferences.sides import Side
from runs.models import Response, Score

PASSED, FAILED = Response.Status.PASSED, Response.Status.FAILED


def winner(first: Response, second: Response) -> Side | Literal[""]:
    """Return `first` or `second` if both responses were scored and exactly that one passes, else ""."""
    if first.status == PASSED and second.status == FAILED:
        return "first"
    if second.status == PASSED and first.status == FAILED:
        return "second"
    return ""


def evidence_of(first: Response, second: Response) -> dict[str, Any]:
    """Return `{"first": side, "second": side, "winner": "first"|"second"|""}`.

    A side is `{"response", "status", "score", "rules": [{"rule", "type", "value", "reason", "execution"}]}`.
    """
    return {"first": _side(first), "second": _side(second), "winner": winner(first, second)}


def _side(response: Response) -> dict[str, Any]:
    return {
        "response": response.pk,
        "status": response.status,
        "score": response.score,
        "rules": [_rule(score) for score in response.scores.all()],
    }


def _rule(score: Score) -> dict[str, Any]:
    ran = score.execution or {}
    kept = ("status", "message", "passed", "total", "failure", "tier")
    return {
        "rule": score.rule,
        "type": score.type,
        "value": score.value,
        "reason": score.reason,
        "execution": {key: ran.get(key) for key in kept} if ran else None,
    }


def without_reasons(evidence: dict[str, Any]) -> dict[str, Any]:
    """*evidence* as those may see it from whom the content of the environment is withheld."""
    shown = dict(evidence)
    for side in ("first", "second"):
        if side in evidence:
            rules = [{**rule, "reason": "", "execution": None} for rule in evidence[side].get("rules", [])]
            shown[side] = {**evidence[side], "rules": rules}
    return shown
