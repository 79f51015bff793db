"""The rule `tool_calls`: which calls match the expected ones, and the reasons for those that do not."""

import json
from typing import Any

import pytest

from hub.harnesses.base import Services
from hub.protocols.calls import CallKey
from hub.protocols.cases import CaseData
from hub.scorers.base import Submission, Verdict
from hub.scorers.registry import SCORERS
from hub.scorers.tool_calls import ToolCallsOptions
from tests.hub.playing import assistant, calls
from tests.hub.scoring import judge

USER = {"role": "user", "content": "Please."}


async def judged(expect: Any, *made: tuple[str, Any], messages: Any = None, turns: int = 1, **options: Any) -> Verdict:
    submission = Submission(
        case=CaseData(id="c"),
        key=CallKey(purpose="answer", environment="e", case="c"),
        rule="calls",
        text="",
        messages=messages or [USER, calls(*made) if made else assistant("No.")],
        turns=turns,
    )
    chosen = ToolCallsOptions.model_validate({"expect": expect, **options})
    return await SCORERS["tool_calls"].score(chosen, submission, Services())


FIND = {"name": "find", "arguments": {"city": "Paris", "nights": 2}}


@pytest.mark.parametrize(
    ("arguments", "value", "reason"),
    [
        ({"city": "Paris", "nights": 2}, 1, "The call is as expected."),
        ({"nights": 2.0, "city": "Paris"}, 1, "The call is as expected."),
        ({"city": "Paris", "nights": "2"}, 0, 'find: argument nights is "2", expected 2.'),
        ({"city": "paris", "nights": 2}, 0, 'find: argument city is "paris", expected "Paris".'),
        ({"city": "Paris"}, 0, "find: argument nights is missing."),
        ({}, 0, "find: arguments city, nights are missing."),
        ({"city": "Paris", "nights": 2, "stars": 3}, 0, "find: argument stars was not expected."),
        ('{"city": "Paris", "nights": 2', 0, "find: the arguments are not valid JSON"),
        ("[1]", 0, "find: the arguments must be one JSON object, not a list."),
        ({"city": "Paris", "nights": True}, 0, "find: argument nights is true, expected 2."),
    ],
)
async def test_arguments_are_compared_by_value(arguments: Any, value: float, reason: str) -> None:
    verdict = await judged([FIND], ("find", arguments))
    assert verdict.value == value
    assert verdict.reason.startswith(reason)


async def test_reason_names_an_empty_text_that_was_expected() -> None:
    text = [{"name": "f", "arguments": {"x": ""}}]
    assert (await judged(text, ("f", {"x": "a"}))).reason == 'f: argument x is "a", expected "".'
    either = [{"name": "f", "accept": {"x": ["", "b"]}}]
    assert (await judged(either, ("f", {"x": "a"}))).reason == 'f: argument x is "a", expected "" or "b".'
    leaderboard = [{"f": {"x": ["", "b"], "y": [""]}}]
    assert (await judged(leaderboard, ("f", {"x": "a"}))).reason == 'f: argument x is "a", expected "b".'
    assert (await judged(leaderboard, ("f", {"y": "a"}))).reason == "f: argument y was not expected."


async def test_true_is_not_one() -> None:
    assert (await judged([{"name": "f", "arguments": {"x": 1}}], ("f", {"x": True}))).value == 0
    assert (await judged([{"name": "f", "arguments": {"x": True}}], ("f", {"x": 1}))).value == 0


async def test_nested_values_compare_by_structure_and_lists_by_order() -> None:
    expect = [{"name": "f", "arguments": {"x": {"a": [1, {"b": None}], "c": 0.5}}}]
    assert (await judged(expect, ("f", '{"x": {"c": 5e-1, "a": [1.0, {"b": null}]}}'))).value == 1
    assert (await judged(expect, ("f", {"x": {"c": 0.5, "a": [{"b": None}, 1]}}))).value == 0


async def test_reason_distinguishes_no_call_from_a_wrong_call() -> None:
    assert (await judged([FIND])).reason == 'No call was made; expected find(city="Paris", nights=2).'
    verdict = await judged([FIND], ("search", {}))
    assert verdict.reason == 'Expected find(city="Paris", nights=2), which was never called; calls went to search.'


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"city": "Paris"}, 1),
        ({"city": "Paris, France", "unit": "C", "limit": 10, "why": "because"}, 1),
        ({"city": "Paris", "unit": "F"}, 0),
        ({"city": "Paris", "limit": 11}, 0),
        ({"unit": "C"}, 0),
    ],
)
async def test_alternatives_optional_default_and_free_arguments(arguments: Any, value: float) -> None:
    expect = {
        "name": "weather",
        "arguments": {"unit": "C"},
        "accept": {"city": ["Paris", "Paris, France"]},
        "optional": ["unit"],
        "defaults": {"limit": 10},
        "free": ["why"],
    }
    assert (await judged([expect], ("weather", arguments))).value == value


LEADERBOARD = [
    {"weather": {"city": ["Paris", "Paris, FR"], "unit": ["C", ""], "days": [3], "near": [{"km": [5, 10], "of": [""]}]}}
]


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"city": "Paris", "days": 3, "near": {"km": 10}}, 1),
        ({"city": "Paris, FR", "unit": "C", "days": 3.0, "near": {"km": 5}}, 1),
        ({"city": "Paris", "unit": "F", "days": 3, "near": {"km": 5}}, 0),
        ({"city": "Paris", "days": 3, "near": {"km": 6}}, 0),
        ({"city": "Paris", "days": 3, "near": {}}, 0),
        ({"city": "Paris", "days": 3}, 0),
    ],
)
async def test_berkeley_leaderboard_notation_is_accepted(arguments: Any, value: float) -> None:
    assert (await judged(LEADERBOARD, ("weather", arguments))).value == value


async def test_folded_strings_ignore_case_spaces_and_punctuation() -> None:
    expect = [{"weather": {"city": ["San Francisco, CA"]}}]
    assert (await judged(expect, ("weather", {"city": "san francisco CA"}), strings="folded")).value == 1
    assert (await judged(expect, ("weather", {"city": "San Francisco"}), strings="folded")).value == 0
    assert (await judged(expect, ("weather", {"city": "san francisco CA"}))).value == 0


A, B = {"name": "a"}, {"name": "b"}


@pytest.mark.parametrize(
    ("options", "made", "value", "reason"),
    [
        ({}, "ba", 1, "All 2 calls are as expected."),
        ({"order": "strict"}, "ab", 1, "All 2 calls are as expected."),
        ({"order": "strict"}, "ba", 0, "out of order."),
        ({}, "abc", 0, "c was called, and no further call was expected."),
        ({}, "aba", 0, "a was called, and no further call was expected."),
        ({"extra": "allow"}, "cbxa", 1, "All 2 calls are as expected."),
        ({"extra": "allow", "order": "strict"}, "xaxbx", 1, "All 2 calls are as expected."),
        ({"extra": "allow", "order": "strict"}, "bxa", 0, "out of order."),
        ({"extra": "allow"}, "aa", 0, "Expected b(), which was never called; calls went to a."),
        ({"partial": True}, "a", 0.5, "Expected b()"),
        ({"partial": True}, "abcd", 0.5, "c was called"),
        ({"partial": True, "order": "strict"}, "ba", 0.5, "out of order."),
    ],
)
async def test_strict_order_and_extra_calls(options: Any, made: str, value: float, reason: str) -> None:
    verdict = await judged([A, B], *((name, {}) for name in made), **options)
    assert verdict.value == value
    assert reason in verdict.reason


@pytest.mark.parametrize("order", ["any", "strict"])
async def test_reason_of_a_call_that_is_expected_more_often_than_made_counts_the_calls(order: str) -> None:
    assert (await judged([A, A], ("a", {}), order=order)).reason == "Expected a() once more; it was called once."
    verdict = await judged([A, A, A], ("a", {}), ("a", {}), order=order)
    assert verdict.reason == "Expected a() once more; it was called 2 times."


async def test_reason_shows_where_a_long_argument_differs() -> None:
    text = "All work and no play makes Jack a dull boy. " * 10
    verdict = await judged([{"name": "write", "arguments": {"text": f"{text}1"}}], ("write", {"text": f"{text}2"}))
    assert verdict.reason == (
        """write: argument text is …'o play makes Jack a dull boy. 2"', expected …'o play makes Jack a dull boy. 1"'."""
    )


async def test_calls_are_assigned_to_expectations_one_to_one() -> None:
    either = {"name": "f", "accept": {"x": [1, 2]}}
    one = {"name": "f", "arguments": {"x": 1}}
    assert (await judged([either, one], ("f", {"x": 1}), ("f", {"x": 2}))).value == 1


async def test_any_of_accepts_each_alternative_call() -> None:
    expect = [{"any_of": [{"name": "mail", "arguments": {"to": "x"}}, {"name": "ring", "arguments": {"no": 1}}]}]
    assert (await judged(expect, ("ring", {"no": 1}))).value == 1
    verdict = await judged(expect, ("ring", {"no": 2}))
    assert (verdict.value, verdict.reason) == (0, "ring: argument no is 2, expected 1.")


async def test_call_fails_if_none_is_expected() -> None:
    assert (await judged([])).value == 1
    assert (await judged([], ("f", {}))).reason == "f was called, and no call was expected."


async def test_unreadable_block_of_the_last_message_counts_as_a_call() -> None:
    block = '```tool_call\n{"name": "f"\n```'
    verdict = await judge("tool_calls", block, expect=[])
    assert (verdict.value, verdict.reason) == (0.0, "A call without a name was called, and no call was expected.")
    messages = [{"role": "assistant", "content": block}, {"role": "assistant", "content": "I need no tool."}]
    assert (await judge("tool_calls", "I need no tool.", expect=[], messages=messages)).value == 1.0


async def test_calls_of_all_turns_count_without_calls_in_the_prompt() -> None:
    messages = [USER, calls(("a", {})), USER, calls(("a", {})), {"role": "tool", "content": "1"}, calls(("b", {}))]
    assert (await judged([A, B], messages=messages, turns=2)).value == 1
    assert (await judged([A, B], messages=messages, turns=3)).value == 0


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "tool_calls": ["what", None, {}]},
        {"role": "assistant", "content": None, "tool_calls": "what"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": 7, "arguments": 9}}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": "find", "arguments": "[" * 100_000}}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": "find", "arguments": '{"city": NaN}'}}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": "find", "arguments": '{"city": 1e999}'}}]},
        calls(*[("find", {})] * 1200),
    ],
)
async def test_malformed_calls_fail_with_storable_details(message: Any) -> None:
    verdict = await judged([FIND], messages=[USER, message])
    assert verdict.value == 0
    json.dumps(verdict.detail, allow_nan=False)


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ("find()", "expect is a list of calls"),
        ([["find"]], r"expect\[0\] is not a mapping"),
        (["{"], r"expect\[0\] is text that is not JSON"),
        (["[" * 100_000], r"expect\[0\] is text that is not JSON"),
        ([{"name": "f", "argumnts": {}}], r"expect\[0\].argumnts: unknown key; did you mean 'arguments'\?"),
        ([{"name": "f", "accept": {"x": 1}}], r"expect\[0\].accept.x: must be a list \(found 1\)"),
        ([{"name": "f", "arguments": [1]}], r"expect\[0\].arguments: must be a mapping"),
        ([{"name": "f", "arguments": {"x": 1}, "free": ["x"]}], "x is named in more than one place"),
        ([{"name": "f", "optional": ["x"]}], "optional names x"),
        ([{"name": "f", "accept": {"x": []}}], "accept.x"),
        ([{"f": {"x": 1}}], r"expect\[0\].f.x is a list of acceptable values"),
        ([{"f": {}, "g": {}}], "neither"),
        ([{"any_of": []}], "any_of is a list of calls"),
    ],
)
def test_invalid_expectation_is_rejected_with_its_path(expect: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ToolCallsOptions.model_validate({"expect": expect})


async def test_expectation_is_parsed_from_json_text() -> None:
    assert (await judged([json.dumps(FIND)], ("find", FIND["arguments"]))).value == 1


COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize(("written", "made"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
@pytest.mark.parametrize(
    "notation",
    [
        lambda key: {"name": key, "arguments": {key: key}},
        lambda key: {"name": key, "accept": {key: [1, key]}},
        lambda key: {"name": key, "arguments": {key: 1}, "optional": [key], "free": []},
        lambda key: {"name": key, "defaults": {key: key}},
        lambda key: {"name": key, "free": [key]},
        lambda key: {key: {key: [key]}},
        lambda key: {"any_of": [{"name": key, "arguments": {key: key}}]},
    ],
)
async def test_names_of_functions_and_arguments_may_be_composed_or_not(notation: Any, written: str, made: str) -> None:
    expect = notation(written)
    arguments = {} if "optional" in expect else {made: made}
    assert (await judged([expect], (made, arguments))).value == 1


async def test_keys_within_leaderboard_arguments_may_be_composed_or_not() -> None:
    expect = [{"find": {"place": [{COMPOSED: ["x"]}]}}]
    assert (await judged(expect, ("find", {"place": {DECOMPOSED: "x"}}))).value == 1
    assert (await judged(expect, ("find", {"place": {DECOMPOSED: "y"}}))).value == 0
