"""Scoring results of two responses side by side: rules, failed tests, tool calls, and the line that raised an error."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest

from hub.protocols.messages import call_text, calls_of
from preferences.evidence import Failure
from runs.models import Response, Score
from runs.results.error_lines import ErrorLine, find_error_line, without_line_number

MAX_CALLS = 200  # compared calls of each response


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFinding:
    """Result of one rule for one response. `passed` and `total` count tests, if tests were run."""

    value: float | None
    reason: str
    passed: int | None = None
    total: int | None = None
    error_line: ErrorLine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCell:
    """Result of one test for one response. `state` is passed, failed, or a phrase on why it is unknown."""

    state: str
    expected: str = ""
    got: str = ""
    error_line: ErrorLine | None = None


@dataclass(frozen=True, slots=True)
class TestRow:
    """Test that at least one of the two responses failed."""

    test: str
    cells: tuple[TestCell, TestCell]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """Results of one rule for both responses; None if the rule did not score a response."""

    rule: str
    type: str
    sides: tuple[RuleFinding | None, RuleFinding | None]
    tests: list[TestRow] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Whether the results differ in value, in a test, or in the reason for a value below 1."""
        a, b = self.sides
        if a is None or b is None or a.value != b.value:
            return True
        short = a.value is None or a.value < 1
        return any(x != y for x, y in (row.cells for row in self.tests)) or (short and a.reason != b.reason)


def rule_rows(a: Response, b: Response) -> list[RuleRow]:
    """Return a row for each rule that scored *a* or *b*, in the order of the rules."""
    of_a, of_b = ({score.rule: score for score in side.scores.all()} for side in (a, b))
    return [_row(name, a, of_a.get(name), b, of_b.get(name)) for name in dict.fromkeys([*of_a, *of_b])]


def _row(name: str, a: Response, of_a: Score | None, b: Response, of_b: Score | None) -> RuleRow:
    error_lines = find_error_line(a, of_a), find_error_line(b, of_b)
    return RuleRow(
        rule=name,
        type=next(score.type for score in (of_a, of_b) if score is not None),
        sides=(_found(of_a, error_lines[0]), _found(of_b, error_lines[1])),
        tests=[*_tests(of_a, of_b, error_lines), *_instructions(of_a, of_b)],
    )


def _found(score: Score | None, error_line: ErrorLine | None) -> RuleFinding | None:
    if score is None:
        return None
    ran = score.execution or {}
    counts = {"passed": ran["passed"], "total": ran["total"]} if ran.get("total") else {}
    # The line is shown with its number within the message; its number within the code would be confusing.
    reason = without_line_number(score.reason) if error_line else score.reason
    return RuleFinding(value=score.value, reason=reason, error_line=error_line, **counts)


# ---- calls -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallRow:
    """Tool calls of two episodes that correspond to each other; a side is empty if it has no such call."""

    a: str
    b: str

    @property
    def differs(self) -> bool:
        return self.a != self.b


def call_rows(a: Response, b: Response) -> list[CallRow]:
    """Return the tool calls of both responses in order, equal calls aligned; empty if there are none."""
    left, right = _calls(a), _calls(b)
    rows: list[CallRow] = []
    for _kind, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        rows += [CallRow(*both) for both in zip_longest(left[i:i_end], right[j:j_end], fillvalue="")]
    return rows


def _calls(response: Response) -> list[str]:
    calls = [call for message in response.messages for call in calls_of(message)]
    return [call_text(call) for call in calls[:MAX_CALLS]]


# ---- tests -----------------------------------------------------------------------------------------------------------


def _tests(
    a: Score | None, b: Score | None, error_lines: tuple[ErrorLine | None, ErrorLine | None]
) -> Iterator[TestRow]:
    """Yield the first failed test of each response; outcomes name no others. One row if both failed the same test."""
    failures = _failure(a), _failure(b)
    named = [failure for failure in failures if failure.get("test")]
    for failure in sorted(named, key=lambda f: f.get("line") or 0)[: 1 if _same(*failures) else 2]:
        cells = [_cell(*side, failure) for side in zip((a, b), failures, error_lines, strict=True)]
        yield TestRow(str(failure["test"]), (cells[0], cells[1]))


def _failure(score: Score | None) -> Failure:
    execution = score.execution if score else None
    failure: Failure | None = execution.get("failure") if execution else None
    return failure or {}


def _same(one: Failure, other: Failure) -> bool:
    return bool(one) and bool(other) and (one.get("test"), one.get("line")) == (other.get("test"), other.get("line"))


def _cell(score: Score | None, own: Failure, error_line: ErrorLine | None, row: Failure) -> TestCell:
    """Return the result of the test of *row* for the response with *score*, whose first failure is *own*."""
    if _same(own, row):
        return TestCell(
            state="failed",
            expected=str(own.get("expected") or ""),
            got=str(own.get("got") or ""),
            error_line=error_line,
        )
    if score is not None and score.value == 1:
        return TestCell(state="passed")
    own_line, row_line = own.get("line"), row.get("line")
    if own_line and row_line and own_line > row_line:
        return TestCell(state="passed")  # tests run in order, and this response reached a later one
    return TestCell(state="unknown: an earlier test failed" if own else "not reached")


def _instructions(a: Score | None, b: Score | None) -> Iterator[TestRow]:
    """Yield a row for each instruction checked by the rule `instructions` that a response did not follow."""
    listed = [((score.detail if score else None) or {}).get("instructions") or [] for score in (a, b)]
    if [item.get("id") for item in listed[0]] != [item.get("id") for item in listed[1]]:
        return
    for pair in zip(*listed, strict=True):
        if not all(item.get("followed") for item in pair):
            cells = [
                TestCell(state="passed")
                if item.get("followed")
                else TestCell(state="failed", got=str(item.get("problem")))
                for item in pair
            ]
            yield TestRow(str(pair[0].get("id")), (cells[0], cells[1]))
