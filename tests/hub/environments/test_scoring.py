"""Scores of rules: reasons that are cut."""

from typing import cast

import pytest

from hub.environments.scoring import REASON_LENGTH, combine, rule_score
from hub.manifest.schema import RuleSpec, Scoring
from hub.scorers.base import Verdict

RULE = RuleSpec.model_validate({"type": "state", "name": "check", "path": "check.py"})


def test_long_reason_is_cut_and_complete_in_the_detail() -> None:
    reason = "The order is missing. " * 1000
    score = rule_score(RULE, Verdict(value=0.0, reason=reason, detail={"orders": 3}))
    assert len(score.reason) <= REASON_LENGTH
    assert score.reason.endswith("[cut: 18,050 more characters]")
    assert score.detail == {"orders": 3, "reason": reason}
    assert combine([score], 1.0).reason == score.reason


def test_reason_within_the_limit_is_kept_as_it_is() -> None:
    score = rule_score(RULE, Verdict(value=0.0, reason="x" * REASON_LENGTH, detail={"orders": 3}))
    assert (score.reason, score.detail) == ("x" * REASON_LENGTH, {"orders": 3})


def test_required_rule_may_miss_1_by_rounding() -> None:
    required = RULE.model_copy(update={"required": True})
    scores = [rule_score(required, Verdict(value=value, reason="")) for value in (sum([0.1] * 10), 0.99)]
    assert [combine([score], 0.5).status for score in scores] == ["passed", "failed"]


@pytest.mark.parametrize("value", [-1.0, 1.5, 100.0, float("nan")])
def test_verdict_out_of_range_is_an_error_of_the_scorer(value: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1, or None if undecided, not"):
        Verdict(value=value, reason="")


def test_weight_of_a_rule_is_no_truth_value() -> None:
    with pytest.raises(ValueError, match="must be a number, not a boolean"):
        Scoring.model_validate({"rules": [{"type": "regex", "weight": True}]})
    assert Scoring.model_validate({"rules": [{"type": "regex", "when": False, "sure": True}]}).rules[0].when is False


def test_sum_of_the_weights_must_be_finite() -> None:
    with pytest.raises(ValueError, match="sum of the weights"):
        Scoring.model_validate({"rules": [{"type": "regex", "name": name, "weight": 1e308} for name in "ab"]})


def test_response_without_an_applicable_rule_is_unscored_with_a_reason() -> None:
    score = combine([], 1.0)
    assert (score.status, score.value) == ("unscored", None)
    assert score.reason == "No scoring rule applies to this case, because `when` is false for each."


def test_scorer_that_returns_a_number_is_named() -> None:
    verdict: object = 0.5
    with pytest.raises(TypeError, match=r"^The scorer of the rule type 'state' must return a Verdict, not 0\.5\.$"):
        rule_score(RULE, cast("Verdict", verdict))
