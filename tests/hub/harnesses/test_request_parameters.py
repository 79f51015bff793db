"""Parameters of agent programs' requests (`temperature`, `response_format`), sent by OpenAI's own client over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hub.harnesses.local_box import Played, play_program
from tests.hub.harnesses.test_endpoint import START, TOOL, said

TOOLS = [{"type": "function", "function": TOOL}]
SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
NAMED = {"name": "answer", "strict": True, "schema": SCHEMA}
SENT = """
def ask(**more):
    return client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "?"}], **more)

def respond(**more):
    return client.responses.create(model="gpt", input="?", **more)

def refusal(call, **more):
    try:
        call(**more)
    except openai.BadRequestError as error:
        return {"type": error.type, "param": error.param, "code": error.code}
    raise AssertionError("it was not refused")
"""


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("box")


def play(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str, replies: int) -> Played:
    return play_program(monkeypatch, folder, START + SENT + script, [said("yes")] * replies)


CHAT: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "presence_penalty": -0.5,
    "frequency_penalty": 2,
    "logit_bias": {"50256": -100},
    "max_completion_tokens": 100,
    "seed": 7,
    "stop": ["END", "\n\n"],
    "response_format": {"type": "json_schema", "json_schema": NAMED},
    "reasoning_effort": "low",
    "verbosity": "high",
    "parallel_tool_calls": False,
    "tool_choice": {"type": "function", "function": {"name": "add"}},
}


def test_chat_completions_pass_on_what_influences_the_answer(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    script = f"""
ask(tools={TOOLS!r}, **{CHAT!r})
ask(max_tokens=5, stop="x", response_format={{"type": "json_object"}}, tools={TOOLS!r}, tool_choice="required")
ask(user="me", store=True, metadata={{"a": "b"}}, service_tier="auto", response_format={{"type": "text"}},
    tool_choice="none", parallel_tool_calls=True, temperature=None)
"""
    played = play(monkeypatch, folder, script, 3)
    assert played.parameters == [
        CHAT,
        {"max_tokens": 5, "stop": "x", "response_format": {"type": "json_object"}, "tool_choice": "required"},
        {},
    ]


def test_parsed_chat_completions_send_their_schema(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    script = """
import pydantic

class Answer(pydantic.BaseModel):
    sum: int

message = [{"role": "user", "content": "?"}]
first = client.chat.completions.parse(model="gpt", messages=message, response_format=Answer)
assert first.choices[0].message.parsed == Answer(sum=3), first
second = client.responses.parse(model="gpt", input="?", text_format=Answer)
assert second.output_parsed == Answer(sum=3), second
"""
    played = play_program(monkeypatch, folder, START + script, [said('{"sum": 3}')] * 2)
    chat, responses = (given["response_format"]["json_schema"] for given in played.parameters)  # type: ignore[index,call-overload]
    assert chat["schema"] == responses["schema"]
    assert (chat["name"], chat["strict"]) == (responses["name"], responses["strict"]) == ("Answer", True)


def test_responses_pass_on_the_same_under_the_names_of_chat_completions(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    tools = [{"type": "function", **TOOL}]
    script = f"""
given = dict(temperature=0.5, top_p=0.9, max_output_tokens=100, parallel_tool_calls=False,
    tool_choice={{"type": "function", "name": "add"}}, reasoning={{"effort": "low", "summary": "auto"}},
    text={{"format": {{"type": "json_schema", **{NAMED!r}}}, "verbosity": "high"}})
first = respond(tools={tools!r}, **given)
assert (first.temperature, first.max_output_tokens, first.parallel_tool_calls) == (0.5, 100, False), first
assert first.text.format.name == "answer" and first.tool_choice.name == "add", first
respond(tools={tools!r}, text={{"format": {{"type": "json_object"}}}}, tool_choice={{
    "type": "allowed_tools", "mode": "required", "tools": [{{"type": "function", "name": "add"}}]}})
respond(text={{"format": {{"type": "text"}}}}, reasoning={{"summary": "auto"}}, tool_choice="auto", max_tool_calls=3)
"""
    played = play(monkeypatch, folder, script, 3)
    names = (
        "temperature",
        "top_p",
        "parallel_tool_calls",
        "tool_choice",
        "reasoning_effort",
        "verbosity",
        "response_format",
    )
    function = {"type": "function", "function": {"name": "add"}}
    assert played.parameters == [
        {**{name: CHAT[name] for name in names}, "max_completion_tokens": 100},
        {
            "response_format": {"type": "json_object"},
            "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [function]}},
        },
        {},
    ]


INVALID: list[tuple[str, dict[str, Any], str]] = [
    ("ask", {"temperature": 3}, "temperature"),
    ("ask", {"temperature": "hot"}, "temperature"),
    ("ask", {"temperature": True}, "temperature"),
    ("ask", {"top_p": -1}, "top_p"),
    ("ask", {"max_tokens": 0}, "max_tokens"),
    ("ask", {"max_completion_tokens": 1.5}, "max_completion_tokens"),
    ("ask", {"seed": 2**70}, "seed"),
    ("ask", {"stop": []}, "stop"),
    ("ask", {"stop": ["a", "b", "c", "d", "e"]}, "stop"),
    ("ask", {"logit_bias": {"1": 200}}, "logit_bias.1"),
    ("ask", {"logit_bias": [1]}, "logit_bias"),
    ("ask", {"reasoning_effort": 3}, "reasoning_effort"),
    ("ask", {"parallel_tool_calls": 1}, "parallel_tool_calls"),
    ("ask", {"tool_choice": "required"}, "tool_choice"),
    ("ask", {"tool_choice": "always"}, "tool_choice"),
    ("ask", {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice"),
    ("ask", {"tools": TOOLS, "tool_choice": {"type": "custom", "custom": {"name": "add"}}}, "tool_choice"),
    ("ask", {"tools": TOOLS, "tool_choice": {"type": "allowed_tools"}}, "tool_choice.allowed_tools.mode"),
    ("ask", {"response_format": {"type": "grammar"}}, "response_format.type"),
    ("ask", {"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    (
        "ask",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": 1}}},
        "response_format.json_schema.schema",
    ),
    ("ask", {"extra_body": {"guided_json": {}}}, "guided_json"),
    ("respond", {"temperature": 3}, "temperature"),
    ("respond", {"max_output_tokens": 0}, "max_output_tokens"),
    ("respond", {"text": "long"}, "text"),
    ("respond", {"text": {"format": {"type": "xml"}}}, "text.format.type"),
    ("respond", {"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
    ("respond", {"reasoning": {"effort": 1}}, "reasoning.effort"),
    ("respond", {"tool_choice": {"type": "web_search"}}, "tool_choice"),
]


@pytest.mark.exhaustive
def test_invalid_parameters_are_answered_with_their_name(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr("hub.harnesses.steps.program.MAX_INVALID", len(INVALID) + 1)
    given = [(call, more) for call, more, _ in INVALID]
    script = f"""
found = [refusal({{"ask": ask, "respond": respond}}[call], **more) for call, more in {given!r}]
open("found", "w").write(json.dumps(found))
ask()
"""
    play(monkeypatch, folder, script, 1)
    found = json.loads((folder / "found").read_text())
    assert [item["param"] for item in found] == [param for _, _, param in INVALID]
    assert {item["type"] for item in found} == {"invalid_request_error"}
    assert {item["code"] for item in found} <= {"invalid_value", "unsupported_value", "unknown_parameter"}


@pytest.mark.parametrize(
    "text",
    ['{"temperature": NaN}', '{"stop": "\\ud800"}', '{"response_format": {"type": "json_object", "x": Infinity}}'],
)
def test_what_json_cannot_represent_is_refused(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    script = f"""
import os, urllib.request, urllib.error
body = {text!r}[:-1] + ', "messages": [{{"role": "user", "content": "?"}}]}}'
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body.encode(), {{
    "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}})
try:
    urllib.request.urlopen(request)
except urllib.error.HTTPError as error:
    assert error.code == 400, error.code
else:
    raise AssertionError("answered")
ask()
"""
    play(monkeypatch, folder, script, 1)
