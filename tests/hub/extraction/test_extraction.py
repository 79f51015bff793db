"""Extraction of code, numbers, choices, final answers and JSON from prose."""

from fractions import Fraction
from typing import Any

import pytest

from hub import extraction
from hub.extraction import (
    NoJSON,
    choice,
    code,
    continue_prefix,
    fences,
    final_answer,
    json_value,
    number,
    without_reasoning,
)

PREFIX = 'def total(xs: list[int]) -> int:\n    """The sum.\n    >>> total([1, 2])\n    3\n    """\n'
BODY = "    result = 0\n    for x in xs:\n        result += x\n    return result\n"


def runs(text: str, name: str = "total", *arguments: Any) -> Any:
    """What the extracted program's function gives: extraction is right when the program works."""
    scope: dict[str, Any] = {}
    exec(code(text, entry_point=name, prefix=PREFIX).text, scope)
    return scope[name](*(arguments or ([1, 2, 3],)))


# ---- reasoning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>maybe 41?</think>\n\nAnswer: 42", "Answer: 42"),
        ("<thinking>\na\n</thinking>ok", "ok"),
        ("so it is 41, no wait\n</think>\n42", "42"),
        ("42\n<think>and now I wonder", "42"),
        ("```python\n# drop <think>\nx = 1\n```\nDone.", "```python\n# drop <think>\nx = 1\n```\nDone."),
        ("```python\nx = 1\n```\n<think>Is x 1?", "```python\nx = 1\n```"),
        ("<think>a</think>x<think>b</think>y", "xy"),
        ("no tags at all", "no tags at all"),
        ("if a < think and b > c", "if a < think and b > c"),
    ],
)
def test_reasoning_is_removed(text: str, rest: str) -> None:
    assert without_reasoning(text) == rest


def test_code_within_reasoning_is_ignored() -> None:
    text = (
        "<think>\n```python\ndef total(xs): return 0\n```\nno\n</think>\n```python\ndef total(xs): return sum(xs)\n```"
    )
    assert runs(text) == 6


# ---- fences ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Here you go:\n\n```python\ndef total(xs):\n    return sum(xs)\n```\n\nIt adds them up.",
        "```py\ndef total(xs):\n    return sum(xs)\n```",
        '```Python3 title="a.py"\ndef total(xs):\n    return sum(xs)\n```',
        "~~~\ndef total(xs):\n    return sum(xs)\n~~~",
        "````python\ndef total(xs):\n    '''```'''\n    return sum(xs)\n````",
        "1. Do this:\n\n   ```python\n   def total(xs):\n       return sum(xs)\n   ```\n2. Done.",
        "> ```python\n> def total(xs):\n>     return sum(xs)\n> ```".replace("> ", ""),
        "```python\ndef total(xs):\n    return sum(xs)",
        "```python\r\ndef total(xs):\r\n    return sum(xs)\r\n```",
        "\ufeff```python\ndef total(xs):\n\treturn sum(xs)\n```",
        "```python\n>>> def total(xs):\n...     return sum(xs)\n```",
    ],
    ids=["prose", "py", "info", "tildes", "four", "list", "quote", "unclosed", "windows", "bom and tabs", "session"],
)
def test_fenced_block_is_found(text: str) -> None:
    assert runs(text) == 6


def test_block_in_another_language_is_not_code() -> None:
    text = "```bash\npip install x\n```\n```python\ndef total(xs):\n    return sum(xs)\n```\n```text\n6\n```"
    assert runs(text) == 6


def test_block_that_shows_a_session_is_not_the_answer() -> None:
    text = "```python\ndef total(xs):\n    return sum(xs)\n```\nFor example:\n```\n>>> total([1])\n1\n```"
    assert runs(text) == 6
    assert code(text, entry_point="total").found == "fence"


def test_last_block_that_defines_the_entry_point_is_used() -> None:
    text = (
        "First try:\n```python\ndef total(xs):\n    return 0\n```\nThat ignores the items. Better:\n"
        "```python\ndef total(xs):\n    return sum(xs)\n```\nUse it so:\n```python\nprint(total([1]))\n```"
    )
    assert runs(text) == 6
    assert code(text, entry_point="total").found == "last_fence"


def test_helpers_from_earlier_blocks_are_joined_if_used() -> None:
    text = (
        "A helper:\n```python\ndef plus(a, b):\n    return a + b\n```\nand the function:\n"
        "```python\ndef total(xs):\n    r = 0\n    for x in xs:\n        r = plus(r, x)\n    return r\n```"
    )
    assert runs(text) == 6
    assert code(text, entry_point="total").found == "joined_fences"


def test_earlier_attempt_does_not_override_the_later_one() -> None:
    text = (
        "```python\ndef help(x):\n    return x\ndef total(xs):\n    return 0\n```\n"
        "```python\ndef total(xs):\n    return help(sum(xs))\n```"
    )
    assert "return 0" not in code(text, entry_point="total").text


def test_fences_have_a_language_and_no_indentation() -> None:
    found = fences('- x\n  ```json\n  {\n    "a": 1\n  }\n  ```\n')
    assert [(block.language, block.text) for block in found] == [("json", '{\n  "a": 1\n}\n')]


# ---- no fence --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "def total(xs):\n    return sum(xs)\n",
        "Sure! Here is the function:\n\ndef total(xs):\n    return sum(xs)\n\nThis runs in linear time.",
        "import math\n\ndef total(xs):\n    return int(math.fsum(xs))\n\nHope this helps :)",
    ],
    ids=["bare", "prose around", "import first"],
)
def test_unfenced_code_is_found_within_prose(text: str) -> None:
    assert runs(text) == 6


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        BODY.replace("    ", "", 1).replace("\n    ", "\n"),
        BODY.removeprefix("    "),
        "```python\n" + BODY + "```",
        "```python\nreturn sum(xs)\n```",
        BODY + "\nThis sums the list.",
        "\n\n" + BODY,
    ],
    ids=["indented", "flush", "hanging first line", "fenced", "fenced flush", "prose after", "blank lines first"],
)
def test_body_alone_continues_the_prefix(body: str) -> None:
    assert runs(body) == 6
    assert code(body, entry_point="total", prefix=PREFIX).found == "continued"


def test_completion_that_repeats_the_prefix_is_used_alone() -> None:
    assert runs(PREFIX + BODY) == 6
    assert runs(f"```python\n{PREFIX}{BODY}```") == 6


def test_prefix_is_not_continued_with_prose() -> None:
    assert continue_prefix(PREFIX, "I am sorry, I cannot help with that.") is None
    assert continue_prefix(PREFIX, "") is None


@pytest.mark.parametrize("mark", ["", "**", "`"])
def test_body_of_a_function_with_another_name_does_not_continue_the_prefix(mark: str) -> None:
    assert continue_prefix(PREFIX, f"{mark}def plus(xs):{mark}\n{BODY}") is None
    if mark:
        assert continue_prefix(PREFIX, f"{mark}def total(xs):{mark}\n{BODY}") is not None


def test_code_that_does_not_compile_is_returned() -> None:
    found = code("```python\ndef total(xs)\n    return sum(xs)\n```", entry_point="total")
    assert "def total(xs)\n" in found.text


def test_empty_answer_has_no_code() -> None:
    assert code("", entry_point="total", prefix=PREFIX).text == ""


def test_refusal_gives_no_code() -> None:
    with pytest.raises((SyntaxError, KeyError)):
        runs("I'm sorry, but I can't help with that.")


# ---- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Answer: 42", 42),
        ("The total is 3 x 4 = 12.\n\n**Answer: 12**", 12),
        ("**Answer:** 12", 12),
        ("Final answer: $1,234.50", Fraction("1234.5")),
        ("the answer is −7", -7),
        ("Answer: -7", -7),
        ("Answer: $-5", -5),
        ("Answer: -$5.25", Fraction("-5.25")),
        ("So we get \\boxed{3\\,600} metres", 3600),
        ("\\boxed{\\frac{3}{4}}", Fraction(3, 4)),
        ("\\boxed{-\\dfrac{1}{2}}", Fraction(-1, 2)),
        ("work\n#### 18", 18),
        ("#### 1,000,000", 1_000_000),
        ("Answer: 3/4", Fraction(3, 4)),
        ("Answer: 12.5%", Fraction("12.5")),
        ("Answer: 6.02e23", Fraction("6.02e23")),
        ("Answer: 6.02 × 10^23", Fraction("6.02e23")),
        ("Answer: 42 km in 3 hours", 42),
        ("Answer: 6 * 7 = 42", 42),
        ("Answer: 1 234 567", 1_234_567),
        ("Answer: .5", Fraction(1, 2)),
        ("First 10, then 20 apples, so 30 apples in all.", 30),
        ("It takes 5 days.\nAnswer: 5 days", 5),
        ("Answer: 41. Wait, that is wrong.\nAnswer: 42", 42),
        ("<think>Answer: 41</think>Answer: 42", 42),
        ("Answer:\n42", 42),
        ("To answer the question about 3 cats, note 4 + 5 = 9", 9),
        ("Answer: 42.", 42),
        ("Answer: 1.000", 1),
        ("$$x = 17$$", 17),
    ],
)
def test_number_formats(text: str, value: Fraction | int) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["", "I do not know.", "Answer: none", "abc1def", "Answer: 1e999999999"])
def test_text_without_a_number_gives_none(text: str) -> None:
    assert number(text) is None


def test_thousand_digits_are_ignored() -> None:
    assert number("Answer: " + "9" * 100_000) is None


# ---- choices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Answer: B", "B"),
        ("**Answer: B**", "B"),
        ("Answer: (C)", "C"),
        ("The answer is D.", "D"),
        ("The answer is **B) 1 2 3**", "B"),
        ("\\boxed{A}", "A"),
        ("\\boxed{\\text{C}}", "C"),
        ("B", "B"),
        ("(B)", "B"),
        ("B. Tokyo", "B"),
        ("b", "B"),
        ("A is wrong because of X. B is wrong too.\n\nThe correct option is C.", "C"),
        ("Let me look at A and B.\n\nAnswer: D", "D"),
        ("I would go with option C", "C"),
        ("Tokyo", "B"),
        ("Answer: Tokyo", "B"),
        ("<think>A? no</think>B", "B"),
        ("Answer: A\n\nWait, no.\n\nAnswer: B", "B"),
        ("**C. Lima**", "C"),
    ],
)
def test_choice_formats(text: str, label: str) -> None:
    assert choice(text, ["A", "B", "C", "D"], ["Paris", "Tokyo", "Lima", "Oslo"]) == label


@pytest.mark.parametrize("text", ["", "A good question; I cannot say.", "None of them.", "Answer: E", "I think so"])
def test_text_without_a_choice_gives_none(text: str) -> None:
    assert choice(text, ["A", "B", "C", "D"], ["Paris", "Tokyo", "Lima", "Oslo"]) is None


# ---- final answers and JSON ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Because so.\nAnswer: Paris", "Paris"),
        ("**Final answer:** `Paris`.", "Paris"),
        ('The answer is "Paris".', "Paris"),
        ("so \\boxed{\\text{Paris}}", "Paris"),
        ("Answer: 3.14.", "3.14"),
        ("I will answer the question now", None),
        ("nothing marked", None),
    ],
)
def test_final_answer_is_the_marked_text(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Here:\n```json\n{"a": [1, 2]}\n```\nDone.', {"a": [1, 2]}),
        ('Sure, {"a": {"b": "}"}} is it.', {"a": {"b": "}"}}),
        ("[1, 2, 3]", [1, 2, 3]),
        ('I thought {"a": 0} but it is {"a": 1}', {"a": 1}),
        ('<think>{"a": 0}</think>{"a": 1}', {"a": 1}),
        ("42", 42),
        ('[see below] {"a": 1}', {"a": 1}),
        ('For x in [0, 1), it is {"a": 1}', {"a": 1}),
        ('f(x) = {x, if x > 0} gives {"a": 1}', {"a": 1}),
        ('\\[\n{"a": 1}\n\\]', {"a": 1}),
        ('First {"a": {"b": 1},} was invalid, so {"a": 1}.', {"a": 1}),
        ('```json\n{"a": [1, 2\n```\nI mean {"a": 1}', {"a": 1}),
    ],
)
def test_json_is_found(text: str, value: Any) -> None:
    assert json_value(text) == value


@pytest.mark.parametrize("text", ["", "no", "{'a': 1}", '{"a": NaN}', '{"a": ', "[" * 100_000])
def test_text_without_json_is_an_error(text: str) -> None:
    with pytest.raises(NoJSON):
        json_value(text)


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1}, {"a": 2}, {"a',
        '{"items": [1, 2], "more": ',
        '{"data": {"a": 1}, }',
        '```json\n{"data": {"a": 1}, // comment\n"b": 2}\n```',
        '```json\n[{"a": 1}, {"a": 2}\n```\nDone.',
        "{'data': {\"a\": 1}}",
        '{data: {"a": 1}}',
        '[1, 2, {"a": 1}',
    ],
)
def test_parts_of_truncated_or_invalid_json_are_not_the_answer(text: str) -> None:
    with pytest.raises(NoJSON):
        json_value(text)


@pytest.mark.parametrize(
    "text", ["\x00" * 5000, "`" * 5000, "<think>" * 3000, "\\boxed{" * 3000, "1," * 20_000, "(" * 9000]
)
def test_extraction_neither_raises_nor_stalls_on_any_text(text: str) -> None:
    code(text, entry_point="f", prefix="def f():\n")
    number(text)
    choice(text, ["A", "B"])
    extraction.final_answer(text)
