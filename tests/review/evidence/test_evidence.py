"""Tests of scoring results side by side: rules, failed tests, lines that raised errors and tool calls."""

import re
from html import unescape
from typing import Any

import pytest

from hub.web.reading.spans import MarkedSpan
from hub.web.reading.transcripts import ReadingOptions, read_text
from review.evidence.findings import call_rows, rule_rows
from runs.models import Response, Score
from runs.results.error_lines import ErrorLine
from tests.review.pages import waiting_pairs

pytestmark = pytest.mark.django_db

CODE = "Here:\n\n```python\ndef f(x):\n    y = x / 0\n    return y\n```\n"


def sides(texts: tuple[str, str] = ("one", "two"), outcome: str = "pf") -> tuple[Response, Response]:
    (pair,) = waiting_pairs(1, texts=texts, outcome=outcome)
    Score.objects.all().delete()
    return pair.first, pair.second


def scored(
    response: Response, value: float | None, *, rule: str = "tests", type: str = "python_tests", **fields: Any
) -> None:
    Score.objects.create(response=response, position=0, rule=rule, type=type, value=value, **fields)


def ran(
    status: str, passed: int, *, test: str = "", line: int | None = None, message: str = "", **failure: str
) -> dict[str, Any]:
    found = {"test": test, "line": line, "expected": "", "got": "", **failure} if test else None
    return {"status": status, "passed": passed, "total": 5, "message": message, "failure": found}


def test_failed_test_shows_expected_and_actual_value_and_pass_of_other_side() -> None:
    a, b = sides()
    scored(a, 1.0, reason="All 5 tests passed.", execution=ran("passed", 5))
    scored(b, 0.0, execution=ran("assertion", 2, test="f(1) == 2", line=7, expected="2", got="3"))
    (row,) = rule_rows(a, b)
    assert row.differs
    assert [(side.passed, side.total) for side in row.sides if side] == [(5, 5), (2, 5)]
    (test,) = row.tests
    assert (test.test, test.cells[0].state, test.cells[1].state) == ("f(1) == 2", "passed", "failed")
    assert (test.cells[1].expected, test.cells[1].got) == ("2", "3")


def test_different_first_failures_are_two_rows_in_test_order() -> None:
    a, b = sides(outcome="ff")
    scored(a, 0.0, execution=ran("assertion", 4, test="f(9) == 9", line=9))
    scored(b, 0.0, execution=ran("assertion", 1, test="f(2) == 2", line=2))
    (row,) = rule_rows(a, b)
    states = [(test.test, *(cell.state for cell in test.cells)) for test in row.tests]
    assert states == [("f(2) == 2", "passed", "failed"), ("f(9) == 9", "failed", "unknown: an earlier test failed")]


def test_same_failed_test_with_different_results_is_one_differing_row() -> None:
    a, b = sides(outcome="ff")
    for side, got in ((a, "1"), (b, "2")):
        scored(side, 0.0, reason="A test failed.", execution=ran("assertion", 1, test="f(2) == 3", line=2, got=got))
    (row,) = rule_rows(a, b)
    (test,) = row.tests
    assert [cell.got for cell in test.cells] == ["1", "2"]
    assert row.differs


def test_rules_with_equal_results_do_not_differ() -> None:
    a, b = sides(outcome="pp")
    for side in (a, b):
        scored(side, 1.0, rule="answer", type="number", reason="It is 4.")
    scored(a, 1.0, rule="only", type="regex")
    rows = {row.rule: row for row in rule_rows(a, b)}
    assert not rows["answer"].differs
    assert (rows["only"].differs, rows["only"].sides[1]) == (True, None)


def test_exception_marks_line_of_answer() -> None:
    a, b = sides((CODE, CODE))
    message = "The code raised ZeroDivisionError: division by zero (line 2)"
    scored(a, 1.0, execution=ran("passed", 5))
    scored(
        b, 0.0, reason=message, detail={"code": "fence"},
        execution=ran("exception", 1, test="f(1) == 1", line=3, message=message),
    )  # fmt: skip
    (row,) = rule_rows(a, b)
    start = CODE.index("    y = x / 0")
    error_line = ErrorLine(number=5, code="y = x / 0", message=1, start=start, end=start + len("    y = x / 0"))
    assert row.tests[0].cells[1].error_line == error_line
    assert row.sides[1] is not None
    assert row.sides[1].reason == "The code raised ZeroDivisionError: division by zero"


def test_marked_line_is_counted_as_python_counts_lines() -> None:
    answer = "```python\ntext = 'a\u2028b\x0cc'\ny = 1 / 0\n```"
    a, b = sides((CODE, answer))
    scored(b, 0.0, detail={"code": "fence"}, execution=ran("exception", 1, message="It raised (line 2)"))
    (row,) = rule_rows(a, b)
    assert row.sides[1] is not None and row.sides[1].error_line is not None
    assert row.sides[1].error_line.code == "y = 1 / 0"


@pytest.mark.parametrize(
    ("text", "message", "detail"),
    [
        (CODE + CODE, "It raised (line 2)", {"code": "fence"}),  # which of the two blocks was run is not sure
        (CODE, "It raised (line 99)", {"code": "fence"}),
        (CODE, "It raised", {"code": "fence"}),
        (CODE, "It raised (line 2)", {"code": "fence", "with_prefix": True}),
    ],
)
def test_no_line_is_marked_if_it_is_ambiguous(text: str, message: str, detail: dict[str, Any]) -> None:
    a, b = sides((CODE, text))
    scored(b, 0.0, detail=detail, execution=ran("exception", 1, message=message))
    (row,) = rule_rows(a, b)
    assert row.sides[1] is not None
    assert row.sides[1].error_line is None


def test_instructions_not_followed_by_one_side_are_rows() -> None:
    a, b = sides()
    for side, followed in ((a, True), (b, False)):
        listed = [
            {"id": "letter:count", "followed": True, "problem": ""},
            {"id": "sentences", "followed": followed, "problem": "" if followed else "it has 2 sentences, not 3"},
        ]
        scored(side, float(followed), rule="follows", type="instructions", detail={"instructions": listed})
    (row,) = rule_rows(a, b)
    (test,) = row.tests
    assert (test.test, test.cells[0].state, test.cells[1].got) == ("sentences", "passed", "it has 2 sentences, not 3")


def test_tool_calls_are_aligned_and_differences_flagged() -> None:
    a, b = sides()
    for side, names in ((a, ["look", "decline", "say"]), (b, ["look", "change", "note", "say"])):
        calls = [{"function": {"name": name, "arguments": "{}"}} for name in names]
        side.messages = [{"role": "assistant", "content": "", "tool_calls": [call]} for call in calls]
    rows = [(row.a, row.b, row.differs) for row in call_rows(a, b)]
    assert rows == [
        ("look({})", "look({})", False),
        ("decline({})", "change({})", True),
        ("", "note({})", True),
        ("say({})", "say({})", False),
    ]


def test_note_below_error_line_adds_no_text() -> None:
    start = CODE.index("    y")
    mark = MarkedSpan(start, start + 13, "error-line", 'f(1) == "<1>"')
    html = read_text(CODE, ReadingOptions(source=True), marks=[mark]).html
    assert unescape(re.sub(r"<[^>]*>", "", html)) == CODE
    assert html.count('data-note="f(1) == &quot;&lt;1&gt;&quot;"') == 1
    assert '</span><span class="below-line"' in html  # after the line, so that its end of line makes no gap
