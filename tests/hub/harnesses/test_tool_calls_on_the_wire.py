"""Tool calls of models, native or as text, and the messages with their results."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.common.storable import storable
from hub.harnesses.steps.tool_calls import (
    CallResult,
    ParsedCall,
    as_native,
    call_problem,
    describe_tools,
    native_calls,
    result_messages,
    result_text,
    text_calls,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = {
    "f": {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "kind": {"type": "string", "enum": ["a", "b"]}},
        "required": ["n"],
        "additionalProperties": False,
    }
}


def block(value):
    return f"```tool_call\n{value if isinstance(value, str) else json.dumps(value)}\n```"


def call(name="f", problem="", **arguments):
    return ParsedCall(id="1", name=name, arguments=arguments, problem=problem)


@given(JSON)
def test_malformed_tool_calls_never_raise(value):
    for read in native_calls({"role": "assistant", "tool_calls": value}):
        assert isinstance(read.name, str)
        assert isinstance(read.arguments, dict)


@pytest.mark.parametrize(
    ("raw", "arguments"), [("", {}), (None, {}), ("null", {}), ("{}", {}), ({"a": 1}, {"a": 1}), ('{"a":1}', {"a": 1})]
)
def test_arguments_may_be_text_object_or_missing(raw, arguments):
    read = native_calls({"tool_calls": [{"id": "x", "function": {"name": "f", "arguments": raw}}]})[0]
    assert (read.id, read.arguments, read.problem) == ("x", arguments, "")


def test_call_without_an_id_gets_one_from_its_position():
    read = native_calls({"tool_calls": [{"function": {"name": "f"}}, {"id": None, "function": {"name": "g"}}]})
    assert [item.id for item in read] == ["call_0", "call_1"]


@pytest.mark.parametrize("raw", ["{", "[1]", '"x"', "[" * 100_000])
def test_arguments_that_are_not_an_object_are_reported(raw):
    assert "JSON" in native_calls({"tool_calls": [{"function": {"name": "f", "arguments": raw}}]})[0].problem


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"x": NaN}', "NaN"),
        ('{"x": [1e999]}', "infinity"),
        ({"x": float("nan")}, "NaN"),
        ('{"x": "\\ud800"}', "surrogate"),
        ('{"x": ["a\\u0000b"]}', "NUL"),
        ('{"\\u0000": 1}', "NUL"),
    ],
)
def test_arguments_that_cannot_be_stored_are_reported(raw, said):
    assert said in native_calls({"tool_calls": [{"function": {"name": "f", "arguments": raw}}]})[0].problem


def test_escaped_backslash_before_u0000_is_not_nul():
    raw = json.dumps({"x": "\\u0000"})
    assert native_calls({"tool_calls": [{"function": {"name": "f", "arguments": raw}}]})[0].problem == ""


def test_fenced_blocks_are_parsed_as_calls_in_order():
    text = (
        f"I will look.\n{block({'name': 'a', 'arguments': {'x': '```'}})}\nand\n{block([{'name': 'b'}, {'name': 'c'}])}"
    )
    read, problem = text_calls(text)
    assert problem == ""
    assert [(item.name, item.arguments) for item in read] == [("a", {"x": "```"}), ("b", {}), ("c", {})]


def test_indented_blocks_are_parsed_as_calls():
    calls, problem = text_calls(
        '1. First:\n   ```tool_call\n   {"name": "f"}\n   ```\n2. Then:\n\t```tool_call\n\t{"name": "g"}'
    )
    assert ([call.name for call in calls], "block 2 is not closed" in problem) == ([], True)
    calls, problem = text_calls('1. First:\n   ```tool_call\n   {"name": "f"}\n   ```\n   Then I wait.')
    assert ([call.name for call in calls], problem) == (["f"], "")


def test_calls_within_reasoning_are_ignored():
    assert text_calls(f"<think>Maybe\n{block({'name': 'a'})}\n</think>No need.") == ([], "")
    assert text_calls(f"<think>{block({'name': 'a'})}") == ([], "")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (block("{name: a}"), "not valid JSON"),
        (block({"tool": "a"}), "must be one object"),
        (block("3"), "must be one object"),
        ('```tool_call\n{"name": "a"}\n', "not closed"),
        ('```tool_call\n{"name": "a"}', "not closed"),
        ('```tool_call {"name": "a"}```', "on the lines between"),
        (block({"name": "a", "parameters": {"x": 1}}), 'under "arguments"'),
        (block({"name": "a", "x": 1}), 'under "arguments"'),
        (block({"name": "a"}) + "\n" + block("{"), "block 2"),
    ],
)
def test_unreadable_block_is_answered_with_a_fix(text, remedy):
    read, problem = text_calls(text)
    assert read == []
    assert remedy in problem


@given(st.text(max_size=300))
def test_parsing_calls_never_raises(text):
    text_calls("```tool_call\n" + text)


def test_example_in_the_protocol_description_can_be_parsed():
    description = describe_tools(
        [{"type": "function", "function": {"name": "f", "description": "F.", "parameters": {}}}]
    )
    assert '"name": "f"' in description
    assert text_calls(description)[0][0].name == "the_tool"


@pytest.mark.parametrize("arguments", [[1], "all", '"{}"', float("nan"), {"x": float("inf")}, "a\0b", {"x": "\ud800"}])
def test_unreadable_arguments_stay_unreadable_in_a_native_transcript(arguments):
    native = as_native([{"role": "assistant", "content": block({"name": "f", "arguments": arguments})}])
    again = native_calls(native[0])[0]
    assert again.name == "f"
    assert again.problem
    assert storable(native[0]["tool_calls"][0]["function"]["arguments"]) == again.written


@given(st.lists(st.tuples(st.sampled_from("fg"), st.text(max_size=40)), min_size=1, max_size=3))
def test_text_transcript_is_converted_to_native_calls(results):
    text = "\n".join(block({"name": name, "arguments": {"n": 1}}) for name, _ in results)
    answers = [CallResult(item, content) for item, (_, content) in zip(text_calls(text)[0], results, strict=True)]
    said = {"role": "assistant", "content": text}
    closing = {"role": "assistant", "content": "Done."}
    messages = as_native([{"role": "user", "content": "Go."}, said, *result_messages(answers, "text"), closing])
    asked, *answered, last = messages[1:]
    assert [item["function"]["name"] for item in asked["tool_calls"]] == [name for name, _ in results]
    assert [message["content"] for message in answered] == [content for _, content in results]
    assert [message["tool_call_id"] for message in answered] == [item["id"] for item in asked["tool_calls"]]
    assert last == closing


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (call("g"), "there is no tool 'g'; the tools are f"),
        (call(problem="broken"), "broken"),
        (call(), "missing argument n"),
        (call(n=1, m=2), "unknown argument m; known are n, kind"),
        (call(n="1"), 'argument n must be integer, not "1"'),
        (call(n=True), "argument n must be integer, not true"),
        (call(n=1, kind="c"), 'argument kind must be one of "a", "b", not "c"'),
    ],
)
def test_problem_of_an_invalid_call_is_described(wrong, said):
    assert call_problem(wrong, SCHEMAS) == said


def test_missing_arguments_are_named_once():
    schema = {"type": "object", "properties": {}, "required": ["n", "m"]}
    assert call_problem(call(), {"f": schema}) == "missing argument n, m"


def test_valid_call_has_no_problem():
    assert call_problem(call(n=1, kind="a"), SCHEMAS) == ""


def test_tool_results_are_text_or_json_and_cut():
    assert result_text("plain") == "plain"
    assert result_text({"ü": None}) == '{"ü": null}'
    assert result_text("a\0b\ud800") == "a\ufffdb\ufffd"
    assert result_text("x" * 60_000).endswith("[cut: 10,000 more characters]")
