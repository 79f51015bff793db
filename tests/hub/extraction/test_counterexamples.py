"""Answers that show wrong code, parts or tests after the right program."""

import pytest

from hub.extraction import code, json_value

RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
PROGRAM = "a, b = map(int, input().split())\nprint(a + b)\n"


def fenced(source: str, language: str = "python") -> str:
    return f"```{language}\n{source}```"


@pytest.mark.parametrize(
    "introduction",
    [
        "A common mistake is to write:",
        "Do **not** do this:",
        "Don't write it like this:",
        "Wrong:",
        "❌ Incorrect version:",
        "### What not to do",
        "### Anti-pattern",
        "**Before:**",
        "The original code:",
        "For reference, the original buggy code was:",
        "Note that the following would be wrong:",
        "This is better than:",
        "The bug in your version was:",
        "The problem with your code is this line:",
        "Here is the buggy version for reference:",
        "Compare with the broken version:",
        "Original (incorrect):",
        "Your code:",
        "The code you posted:",
        "You wrote:",
        "For example, a wrong solution would be:",
        "Note that this will fail:",
        "This does not work:",
        "### ❌ Don't",
        "Not this:",
        "Pseudo code:",
        "Pseudocode",
        "### The pseudocode for this function",
        "Here is the pseudo-code:",
        "The same in pseudocode:",
        "Note that this naive version gives wrong results:",
        "The naive solution returns the wrong answer for negative numbers:",
        "This gives incorrect results:",
        "原来的代码是错误的：",
        "原代码有问题：",
        "这里有一个错误。错误的写法如下：",
        "**不要这样写：**",
        "### 反例：",
    ],
)
def test_code_that_is_shown_as_wrong_is_used_only_without_another(introduction: str) -> None:
    shown = f"{introduction}\n\n{fenced(WRONG)}"
    assert code(f"{fenced(RIGHT)}\n\n{shown}", entry_point="add").text == RIGHT
    assert code(shown, entry_point="add").text == WRONG


def test_comment_in_the_first_line_may_call_code_wrong() -> None:
    text = f"{fenced('# Good' + chr(10) + RIGHT)}\n\n{fenced('# Bad' + chr(10) + WRONG)}"
    assert "a + b" in code(text, entry_point="add").text


@pytest.mark.parametrize(
    "introduction",
    [
        "The original code was wrong. Here is the fixed version:",
        "Here is the fixed version of the incorrect code:",
        "This is wrong, because it subtracts. Corrected:",
        "Don't use subtraction here; instead use:",
        "A common pitfall is handled here:",
        "To avoid mistakes, use:",
        "Wait, that does not work:",
        "This does not work.",
        "Your code should be:",
        "Your version, corrected:",
        "Here is your code:",
        "The bug in your version is fixed here:",
        "This will not fail:",
        "Not an invalid result:",
        "Don't forget the import:",
        "The pseudocode above, in Python:",
        "The code above gives wrong results:",
        "This version gives wrong results for negative numbers so use:",
        "This gives wrong results, so add instead:",
        "以下是修正后的代码：",
        "原来的代码是错误的，修正如下：",
        "原来的代码是错误的。修正后的代码：",
        "你的代码应该是：",
        "正确的写法：",
    ],
)
def test_code_that_replaces_wrong_code_is_used(introduction: str) -> None:
    assert code(f"{fenced(WRONG)}\n\n{introduction}\n\n{fenced(RIGHT)}", entry_point="add").text == RIGHT


@pytest.mark.parametrize(
    "after",
    [
        "Test:\n\n" + fenced("assert 2 + 3 == 5\n"),
        "The last line prints:\n\n" + fenced("print(a + b)\n"),
        "The first line reads:\n\n" + fenced("a, b = map(int, input().split())\n"),
        "Don't do this:\n\n" + fenced(PROGRAM.replace("+", "-")),
    ],
)
def test_whole_program_comes_before_parts_and_tests_of_it(after: str) -> None:
    assert code(f"{fenced(PROGRAM)}\n\n{after}").text == PROGRAM


@pytest.mark.parametrize(
    "introduction", ["For comparison, an invalid example:", "For example, an invalid object would be:"]
)
def test_json_that_is_shown_as_wrong_is_not_used(introduction: str) -> None:
    right, wrong = fenced('{"a": 1}\n', "json"), fenced('{"a": 2}\n', "json")
    assert json_value(f"{right}\n\n{introduction}\n\n{wrong}") == {"a": 1}
