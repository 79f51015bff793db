"""Gates of comparisons: conditions such as `accuracy >= -0.01; cost <= 1.2x` on a comparison, decided by intervals."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hub.common.errors import UserError
from hub.protocols.messages import JSON
from runs.results.comparison.pair import Comparison, EnvironmentComparison

Decision = Literal["GO", "NO-GO", "INCONCLUSIVE"]
Bounds = tuple[float, float]
METRICS = {"accuracy": "share of cases", "cost": "US dollars per response", "latency": "milliseconds per response"}
_PART = re.compile(r"\s*([A-Za-z_]*)\s*([<>=!]*)\s*([^;]*?)\s*(?:;|\Z)")
_LIMIT = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(x?)")
_EXAMPLE = 'Write for example "accuracy >= -0.01; cost <= 1.2x".'


class GateError(UserError):
    """The expression of a gate is wrong; the message has the position of the first problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition of a gate on A compared with B. `ratio`: the limit is of A / B, otherwise of A - B."""

    metric: str
    at_least: bool
    limit: float
    ratio: bool

    def __str__(self) -> str:
        return f"{self.metric} {'>=' if self.at_least else '<='} {self.limit:g}{'x' if self.ratio else ''}"

    def decide(self, value: Bounds | None) -> Decision:
        """Return GO if the whole interval meets the limit, NO-GO if no part of it does."""
        if value is None:
            return "INCONCLUSIVE"
        low, high = value
        if low >= self.limit if self.at_least else high <= self.limit:
            return "GO"
        if high < self.limit if self.at_least else low > self.limit:
            return "NO-GO"
        return "INCONCLUSIVE"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCondition:
    """Condition decided on one environment and pair of models. `bounds` is None if there is no interval."""

    condition: Condition
    environment: str
    model_a: str
    model_b: str
    run_a: int
    run_b: int
    bounds: Bounds | None
    note: str
    decision: Decision

    def to_json(self) -> dict[str, JSON]:
        return {
            "condition": str(self.condition),
            "environment": self.environment,
            "run_a": self.run_a,
            "model_a": self.model_a,
            "run_b": self.run_b,
            "model_b": self.model_b,
            "ci95": list(self.bounds) if self.bounds else None,
            "note": self.note,
            "decision": self.decision,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """Decision of a gate: NO-GO if one condition is, GO if all are, else INCONCLUSIVE."""

    expression: str
    checks: list[CheckedCondition]

    @property
    def decision(self) -> Decision:
        decisions = {check.decision for check in self.checks}
        if "NO-GO" in decisions:
            return "NO-GO"
        return "GO" if decisions == {"GO"} else "INCONCLUSIVE"

    def to_json(self) -> dict[str, JSON]:
        """Return the decision and each checked condition, for `compare --json`."""
        return {
            "expression": self.expression,
            "decision": self.decision,
            "checks": [check.to_json() for check in self.checks],
        }


def parse_gate(expression: str) -> list[Condition]:
    """Return the conditions of *expression*, separated by semicolons. Raises GateError."""
    conditions = []
    position = 0
    while position < len(expression):
        found = _PART.match(expression, position)
        if found is None:  # characters that no part of a condition can start with
            start = position + len(expression[position:]) - len(expression[position:].lstrip())
            raise _error(expression, start, f"expected one of {', '.join(METRICS)}")
        if found[0].strip(" ;\t\n"):
            conditions.append(_condition(expression, found))
        position = found.end()
    if not conditions:
        raise GateError(f"The gate has no condition. {_EXAMPLE}", "gate")
    return conditions


def _condition(expression: str, found: re.Match[str]) -> Condition:
    metric, operator, limit = found[1], found[2], found[3]
    if metric not in METRICS:
        raise _error(expression, found.start(1), f"expected one of {', '.join(METRICS)}")
    if operator not in (">=", "<="):
        raise _error(expression, found.start(2), "expected >= or <=")
    number = _LIMIT.fullmatch(limit)
    if number is None:
        advice = "; write 1 % as 0.01" if "%" in limit else ""
        raise _error(expression, found.start(3), f"expected a number such as -0.01, or a ratio such as 1.2x{advice}")
    ratio = bool(number[2])
    if ratio and metric == "accuracy":
        raise _error(expression, found.start(3), "accuracy is compared by its difference: a number from -1 to 1")
    value = float(number[1])
    if metric == "accuracy" and not -1 <= value <= 1:
        raise _error(expression, found.start(3), "a difference of accuracies is from -1 to 1, such as -0.01")
    if not math.isfinite(value) or (ratio and value <= 0):
        raise _error(expression, found.start(3), "a ratio must be above zero")
    return Condition(metric=metric, at_least=operator == ">=", limit=value, ratio=ratio)


def _error(expression: str, position: int, problem: str) -> GateError:
    found = expression[position : position + 20].strip()
    return GateError(
        f"Gate {expression!r}, position {position + 1}: {problem}, found {found!r}. {_EXAMPLE}"
        if found
        else f"Gate {expression!r}, position {position + 1}: {problem}, but it ends here. {_EXAMPLE}",
        "gate",
    )


def decide_gate(expression: str, comparisons: Iterable[Comparison]) -> GateResult:
    """Decide every condition on every environment and pair of models of *comparisons*. Raises GateError."""
    conditions = parse_gate(expression)
    checks = []
    for comparison in comparisons:
        for pair in comparison.models:
            for item in pair.environments:
                for condition in conditions:
                    bounds, note = _bounds(condition, item)
                    checks.append(
                        CheckedCondition(
                            condition=condition,
                            environment=item.slug,
                            model_a=pair.model_a,
                            model_b=pair.model_b,
                            run_a=comparison.run_a.pk,
                            run_b=comparison.run_b.pk,
                            bounds=bounds,
                            note=note,
                            decision=condition.decide(bounds),
                        )
                    )
    return GateResult(expression=expression, checks=checks)


def _bounds(condition: Condition, item: EnvironmentComparison) -> tuple[Bounds | None, str]:
    """Return the interval that *condition* is about, or None and the reason."""
    if condition.metric == "accuracy":
        paired = item.paired
        return _pair(paired.low, paired.high), paired.note
    amounts = item.cost if condition.metric == "cost" else item.latency
    if condition.ratio:
        bounds = _pair(amounts.ratio_low, amounts.ratio_high)
        zero = "B is zero in too many cases" if amounts.mean_b else "B is zero, so that there is no ratio"
        return bounds, amounts.note if bounds else amounts.note or zero
    return _pair(amounts.low, amounts.high), amounts.note


def _pair(low: float | None, high: float | None) -> Bounds | None:
    return None if low is None or high is None else (low, high)
