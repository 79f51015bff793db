"""Score of a response, computed from the verdicts of its rules."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hub.common.storable import storable
from hub.manifest.schema import RuleSpec
from hub.protocols.messages import JSON
from hub.scorers.base import ROUNDING, Verdict
from sandbox.verdicts.results import Outcome

REASON_LENGTH = 4000  # of the reason of a rule, and of a response
Status = Literal["passed", "failed", "unscored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleScore:
    """Verdict of one rule with its weight. `value` is None if the rule could not decide."""

    rule: str
    type: str
    value: float | None
    weight: float
    required: bool
    reason: str
    detail: dict[str, JSON] = field(default_factory=dict)
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeScore:
    """Score of a response: `value` from 0 to 1 (None: unscored), and its rules in order."""

    status: Status
    value: float | None
    rules: list[RuleScore]

    @property
    def reason(self) -> str:
        """Return the reason of the first rule below 1. Undecided rules come first, then required ones."""
        if not self.rules:
            return "No scoring rule applies to this case, because `when` is false for each."
        below_one = [rule for rule in self.rules if rule.value is None or rule.value < 1]
        below_one.sort(key=lambda rule: (rule.value is not None, not rule.required))
        return below_one[0].reason if below_one else ""


def rule_score(spec: RuleSpec, verdict: Verdict) -> RuleScore:
    """Return the score of a rule, with texts that can be stored. A reason that is cut is complete in the detail.

    Raises TypeError if the scorer returned something else than a verdict.
    """
    if not isinstance(verdict, Verdict):
        raise TypeError(f"The scorer of the rule type {spec.type!r} must return a Verdict, not {verdict!r}.")
    whole = storable(verdict.reason)  # a script or a judge model may write any character
    reason, detail = cut_reason(whole), storable(verdict.detail)
    return RuleScore(
        rule=spec.name,
        type=spec.type,
        value=verdict.value,
        weight=spec.weight,
        required=spec.required,
        reason=reason,
        detail=detail if reason == whole else {**detail, "reason": whole},
        outcome=verdict.outcome,
    )


def cut_reason(reason: str) -> str:
    """Return *reason* with at most REASON_LENGTH characters, and how many were cut."""
    if len(reason) <= REASON_LENGTH:
        return reason
    kept = REASON_LENGTH - 50
    return f"{reason[:kept]} … [cut: {len(reason) - kept:,} more characters]"


def combine(rules: Sequence[RuleScore], pass_mark: float) -> EpisodeScore:
    """Return sum(weight x value) / sum(weight); passed from *pass_mark* on unless a required rule is below 1.

    If one rule is undecided, the response is unscored: a mean of the others would ignore the undecided part.
    """
    values = [rule.value for rule in rules]
    if not rules or any(value is None for value in values):
        return EpisodeScore(status="unscored", value=None, rules=list(rules))
    value = sum(rule.weight * (rule.value or 0.0) for rule in rules) / sum(rule.weight for rule in rules)
    required_failed = any(rule.required and (rule.value or 0.0) < 1 - ROUNDING for rule in rules)
    # Rounding may make a sum of weights slightly less than a pass mark that it equals exactly.
    passed = not required_failed and value >= pass_mark - ROUNDING
    return EpisodeScore(status="passed" if passed else "failed", value=value, rules=list(rules))
