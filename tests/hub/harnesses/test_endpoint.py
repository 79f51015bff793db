"""The endpoint of agent programs, used by OpenAI's own client over HTTP."""

import base64
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

from hub.harnesses.steps import program
from hub.protocols.calls import Reply, Usage
from hub.protocols.messages import Message
from tests.hub.harnesses.local_box import After, Played, play_program

USAGE = Usage(input=11, output=7, cached_input=3, reasoning=2)
TOOL = {"name": "add", "description": "Add.", "parameters": {"type": "object", "properties": {}}}
CALL: Any = {
    "role": "assistant",
    "content": "I add.",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}],
}
IMAGE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 24).decode()
START = f"""
IMAGE = {IMAGE!r}
import asyncio, json, openai
client = openai.OpenAI(max_retries=0)
later = openai.AsyncOpenAI(max_retries=0)
"""
Play: TypeAlias = Callable[[str, Sequence[Reply | Message | After]], Played]


def said(text: str, **more: Any) -> Reply:
    return Reply(message={"role": "assistant", "content": text}, usage=USAGE, **more)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Play:
    folder: Path = tmp_path_factory.mktemp("box")
    return lambda script, replies: play_program(monkeypatch, folder, START + script, replies)


# ---- chat completions ------------------------------------------------------------------------------------------------


def test_chat_completions_with_tools_and_usage(play: Play) -> None:
    played = play(
        f"""
tools = [{{"type": "function", "function": {json.dumps(TOOL)}}}]
messages = [{{"role": "user", "content": "1?"}}]
first = client.chat.completions.create(model="gpt", messages=messages, tools=tools, temperature=0.5)
choice = first.choices[0]
assert (first.object, first.model, choice.finish_reason) == ("chat.completion", "gpt", "tool_calls"), first
call = choice.message.tool_calls[0]
assert (call.id, call.function.name, json.loads(call.function.arguments)) == ("c1", "add", {{"a": 1}})
assert (first.usage.prompt_tokens, first.usage.completion_tokens, first.usage.total_tokens) == (11, 7, 18)
assert first.usage.prompt_tokens_details.cached_tokens == 3
assert first.usage.completion_tokens_details.reasoning_tokens == 2
messages += [choice.message, {{"role": "tool", "tool_call_id": call.id, "content": "2"}}]
second = client.chat.completions.create(model="gpt", messages=messages, tools=tools)
assert (second.choices[0].message.content, second.choices[0].finish_reason) == ("two", "length")
assert second.usage is None
assert [model.id for model in client.models.list()] == ["model"]
assert client.models.retrieve("gpt").id == "gpt"
""",
        [Reply(message=CALL, usage=USAGE), said("two", finish_reason="length", metered=False)],
    )
    assert played.new == [False, False]
    assert played.tools[1] == [{"type": "function", "function": TOOL}]
    assert played.messages[1][1:] == [CALL, {"role": "tool", "tool_call_id": "c1", "content": "2"}]


LONG = "A long answer. " * 200
STREAM = f"""
LONG = "A long answer. " * 200

async def main():
    request = dict(model="gpt", messages=[{{"role": "user", "content": "?"}}], stream=True)
    chunks = [chunk async for chunk in await later.chat.completions.create(**request)]
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert deltas[0].role == "assistant" and len(chunks) > 10
    assert "".join(delta.content or "" for delta in deltas) == LONG
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["stop"]
    assert all(chunk.usage is None and chunk.object == "chat.completion.chunk" for chunk in chunks)

asyncio.run(main())
request = dict(model="gpt", messages=[{{"role": "user", "content": "?"}}], tools=[
    {{"type": "function", "function": {json.dumps(TOOL)}}}
])
chunks = list(client.chat.completions.create(stream=True, stream_options={{"include_usage": True}}, **request))
assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 18), chunks[-1]
calls = [call for chunk in chunks[:-1] for call in chunk.choices[0].delta.tool_calls or []]
assert (calls[0].id, calls[0].function.name) == ("c1", "add")
assert "".join(call.function.arguments for call in calls) == '{{"a": 1}}'
with client.chat.completions.stream(**request) as stream:
    final = stream.get_final_completion()
assert final.choices[0].message.tool_calls[0].function.name == "add" and final.choices[0].finish_reason == "tool_calls"
assert final.choices[0].message.content == "I add."
"""


def test_streamed_chat_completions(play: Play) -> None:
    play(STREAM, [said(LONG), Reply(message=CALL, usage=USAGE), CALL])


# ---- responses -------------------------------------------------------------------------------------------------------

FUNCTION = repr({"type": "function", **TOOL, "strict": True})
RESPONSES = f"""
tools = [{FUNCTION}]
first = client.responses.create(model="gpt", instructions="Be brief.", input="1?", tools=tools)
assert (first.status, first.model, first.output_text, first.error) == ("completed", "gpt", "I add.", None), first
text, call = first.output
assert (call.type, call.call_id, call.name, json.loads(call.arguments)) == ("function_call", "c1", "add", {{"a": 1}})
assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.total_tokens) == (11, 7, 18)
assert first.usage.input_tokens_details.cached_tokens == 3
assert first.usage.output_tokens_details.reasoning_tokens == 2
output = {{"type": "function_call_output", "call_id": call.call_id, "output": "2"}}
"""
CONVERSATION: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "1?"},
    CALL,
    {"role": "tool", "tool_call_id": "c1", "content": "2"},
]


@pytest.mark.parametrize(
    "input",
    [
        pytest.param("input=[output], previous_response_id=first.id", id="previous-response"),
        pytest.param("input=[{'role': 'user', 'content': '1?'}, *first.output, output], store=False", id="all-items"),
        pytest.param(
            "input=[{'role': 'user', 'content': [{'type': 'input_text', 'text': '1?'}]},"
            " *[item.model_dump() for item in first.output], output]",
            id="parts",
        ),
    ],
)
def test_responses_continue_a_conversation(play: Play, input: str) -> None:
    played = play(
        RESPONSES
        + f"""
second = client.responses.create(
    model="gpt", instructions="Be brief.", tools=[{FUNCTION}], {input}
)
assert (second.output_text, second.status) == ("two", "incomplete")
assert (second.incomplete_details.reason, second.usage) == ("max_output_tokens", None)
""",
        [Reply(message=CALL, usage=USAGE), said("two", finish_reason="length", metered=False)],
    )
    assert played.messages[1] == CONVERSATION
    assert played.new == [False, False]
    assert played.tools[0] == [{"type": "function", "function": {**TOOL, "strict": True}}]


@pytest.mark.exhaustive
def test_earlier_responses_can_be_continued_twice_and_with_other_instructions(play: Play) -> None:
    played = play(
        """
first = client.responses.create(model="gpt", input="one")
second = client.responses.create(model="gpt", input="two", previous_response_id=first.id)
other = client.responses.create(model="gpt", input="three", previous_response_id=first.id, instructions="New.")
assert other.previous_response_id == first.id
last = client.responses.create(model="gpt", input="four", previous_response_id=second.id, store=False)
try:
    client.responses.create(model="gpt", input="five", previous_response_id=last.id)
except openai.BadRequestError as error:
    assert (error.code, error.param) == ("previous_response_not_found", "previous_response_id")
else:
    raise AssertionError("a response that is not stored was continued")
""",
        [said(text) for text in ("1", "2", "3", "4")],
    )
    contents = [[str(message["content"]) for message in messages] for messages in played.messages]
    assert contents == [["one"], ["one", "1", "two"], ["New.", "one", "1", "three"], ["one", "1", "two", "2", "four"]]
    assert played.new == [False, False, True, True]


def test_streamed_responses(play: Play) -> None:
    play(
        f"""
tools = [{FUNCTION}]
events = list(client.responses.create(model="gpt", input="?", tools=tools, stream=True))
kinds = [event.type for event in events]
assert kinds == [
    "response.created", "response.in_progress",
    "response.output_item.added", "response.content_part.added", "response.output_text.delta",
    "response.output_text.done", "response.content_part.done", "response.output_item.done",
    "response.output_item.added", "response.function_call_arguments.delta",
    "response.function_call_arguments.done", "response.output_item.done",
    "response.completed",
], kinds
assert [event.sequence_number for event in events] == list(range(len(events)))
assert events[4].delta == "I add." and events[4].item_id == events[2].item.id and events[9].output_index == 1
assert events[-1].response.usage.total_tokens == 18 and events[0].response.status == "in_progress"

async def main():
    async with later.responses.stream(model="gpt", input="?") as stream:
        text = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
        final = await stream.get_final_response()
    assert text == final.output_text == "A long answer. " * 200
    events = [event async for event in await later.responses.create(model="gpt", input="?", stream=True)]
    assert (events[-1].type, events[-1].response.status) == ("response.incomplete", "incomplete")

asyncio.run(main())
""",
        [Reply(message=CALL, usage=USAGE), said(LONG), said("cut", finish_reason="content_filter")],
    )


# ---- images ----------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_images_of_both_apis_reach_the_model_as_parts_of_chat_completions(play: Play) -> None:
    played = play(
        """
url = "data:image/png;base64," + IMAGE
messages = [{"role": "user", "content": [
    {"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
]}]
first = client.chat.completions.create(model="gpt", messages=messages)
messages += [first.choices[0].message, {"role": "user", "content": "Sure?"}]
client.chat.completions.create(model="gpt", messages=messages)
parts = [{"type": "input_text", "text": "And now?"}, {"type": "input_image", "image_url": url, "detail": "auto"}]
third = client.responses.create(model="gpt", input=[{"role": "user", "content": parts}])
client.responses.create(model="gpt", input="Really?", previous_response_id=third.id)
""",
        [said("A dot."), said("Yes."), said("A dot."), said("Really.")],
    )

    def image(detail: str) -> dict[str, object]:
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}", "detail": detail}}

    asked = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image("low")]}
    assert played.messages[1] == [
        asked,
        {"role": "assistant", "content": "A dot."},
        {"role": "user", "content": "Sure?"},
    ]
    assert played.messages[3][0]["content"] == [{"type": "text", "text": "And now?"}, image("auto")]
    assert played.new == [False, False, True, False]


@pytest.mark.exhaustive
def test_images_are_limited_in_number(play: Play) -> None:
    play(
        """
part = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + IMAGE}}
try:
    client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": [part] * 51}])
except openai.BadRequestError as error:
    assert "messages[0].content has 51 images; at most 50 are allowed" in error.message, error.message
else:
    raise AssertionError("accepted")
client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": [part] * 50}])
""",
        [said("Many dots.")],
    )


# ---- errors ----------------------------------------------------------------------------------------------------------


REFUSED = [
    ("responses.create(input='x', background=True)", "background", "`background` must be `false`"),
    ("responses.create(input='x', conversation='conv_1')", "conversation", "`conversation` is not available"),
    ("responses.create(input='x', prompt={'id': 'p'})", "prompt", "`prompt` is not available"),
    ("responses.create(input='x', include=['file_search_call.results'])", "include", "`include` must be"),
    ("responses.create(input='x', extra_body={'wishes': 1})", "wishes", "Unknown parameter: `wishes`."),
    (
        "responses.create(input='x', tools=[{'type': 'file_search', 'vector_store_ids': ['v']}])",
        "tools[0].type",
        "'file_search' is not supported; only functions are",
    ),
    (
        "responses.create(input=[{'role': 'user', 'content': [{'type': 'input_image', 'image_url': 'https://x/y'}]}])",
        "input[0].content[0].image_url",
        "addresses and file ids are not supported",
    ),
    (
        "responses.create(input=[{'role': 'user', 'content': [{'type': 'input_file', 'file_id': 'f'}]}])",
        "input[0].content[0].type",
        "'input_file' is not supported; only text and images are",
    ),
    (
        "responses.create(input=[{'type': 'item_reference', 'id': 'x'}])",
        "input[0].type",
        "'item_reference' is not supported",
    ),
    (
        "responses.create(input=[{'type': 'function_call', 'name': 'x', 'call_id': 'y'}])",
        "input[0].arguments",
        "Missing required parameter: input[0].arguments.",
    ),
    ("responses.create(input=[])", "input", "`input` must be text, or a list with at least one item"),
    ("responses.create(input=[1])", "input", "`input` must be a list of items"),
    ("responses.create(input='x', previous_response_id='resp_9')", "previous_response_id", "'resp_9' not found"),
    (
        "chat.completions.create(messages=[{'role': 'user', 'content': [{'type': 'image_url', 'image_url': {}}]}])",
        "messages[0].content[0].image_url.url",
        "images must be data URLs",
    ),
    (
        "chat.completions.create(messages=[{'role': 'user', 'content': [{'type': 'image_url', 'image_url': "
        "{'url': 'data:image/png;base64,AAAA'}}]}])",
        "messages[0].content[0].image_url.url",
        "the image is not PNG, JPEG, GIF or WebP",
    ),
    (
        "chat.completions.create(messages=[{'role': 'user', 'content': [{'type': 'image_url', 'image_url': "
        "{'url': 'data:image/png;base64,' + IMAGE, 'detail': 'sharp'}}]}])",
        "messages[0].content[0].detail",
        "must be one of auto, low, high, original",
    ),
    ("chat.completions.create(messages=[], n=1)", "messages", "`messages` must be a list with at least one"),
    ("chat.completions.create(messages=[{'role': 'user', 'content': 'x'}], n=2)", "n", "`n` must be `1` here"),
    (
        "chat.completions.create(messages=[{'role': 'user', 'content': 'x'}], functions=[], audio={})",
        "audio",
        "`audio`, `functions` is not available",
    ),
    (
        "chat.completions.create(messages=[{'role': 'user', 'content': 'x'}], tools=[{'type': 'custom'}])",
        "tools[0].type",
        "'custom' is not supported; only functions are",
    ),
]


def test_unsupported_requests_get_an_error_that_names_the_field(play: Play) -> None:
    calls = [f"    lambda: client.{request.replace('(', '(model=model, ', 1)}," for request, _, _ in REFUSED]
    played = play(
        'model = "gpt"\ncalls = [\n'
        + "\n".join(calls)
        + f"""
]
for call, (request, param, text) in zip(calls, {REFUSED!r}):
    try:
        call()
    except openai.BadRequestError as error:
        assert error.param == param and text in error.message, (request, error.param, error.message)
        assert error.type == "invalid_request_error", request
    else:
        raise AssertionError(request)
client.responses.create(model=model, input="end")
""",
        [said("done")],
    )
    assert [message["content"] for message in played.messages[0]] == ["end"]


@pytest.mark.exhaustive
def test_other_paths_and_keys_are_refused(play: Play) -> None:
    play(
        """
for call in (lambda: client.responses.retrieve("resp_1"), lambda: client.embeddings.create(model="m", input="x")):
    try:
        call()
    except openai.NotFoundError as error:
        assert "only POST /chat/completions, POST /responses and GET /models are offered" in error.message
    else:
        raise AssertionError("answered")
try:
    openai.OpenAI(max_retries=0, api_key="other").responses.create(model="gpt", input="x")
except openai.AuthenticationError as error:
    assert error.code == "invalid_api_key"
else:
    raise AssertionError("answered")
client.responses.create(model="gpt", input="end")
""",
        [said("done")],
    )


# ---- waiting, repeated and abandoned requests ------------------------------------------------------------------------

RAW = """
import http.client, os, socket
from pathlib import Path
from urllib.parse import urlparse

address = urlparse(os.environ["OPENAI_BASE_URL"]).netloc
ASK = dict(model="gpt", messages=[{"role": "user", "content": "?"}])

def send(method, path, body=None, **headers):
    connection = http.client.HTTPConnection(address, timeout=30)
    key = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    connection.request(method, "/v1" + path, body, {**key, **headers}, encode_chunked=not isinstance(body, bytes))
    return connection.getresponse()

def lines_until(response, wanted, count):
    lines = []
    while lines.count(wanted) < count:
        lines.append(response.readline())
        assert lines[-1], lines
    return lines
"""


@pytest.mark.parametrize("api", [pytest.param("chat", marks=pytest.mark.exhaustive), "responses"])
def test_streams_begin_before_the_model_has_answered(play: Play, monkeypatch: pytest.MonkeyPatch, api: str) -> None:
    monkeypatch.setattr(program, "KEEP_ALIVE_S", 600)
    request = "chat.completions.create(**ASK" if api == "chat" else "responses.create(model='gpt', input='?'"
    play(
        RAW
        + f"""
stream = client.{request}, stream=True)
Path("begun").touch()
assert len(list(stream)) > 2
""",
        [After("begun", said("yes"))],
    )


@pytest.mark.exhaustive
def test_streams_have_comments_while_the_model_is_asked(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "KEEP_ALIVE_S", 0.05)
    play(
        RAW
        + """
response = send("POST", "/chat/completions", json.dumps({**ASK, "stream": True}))
assert response.headers["Content-Type"] == "text/event-stream"
lines_until(response, b": waiting\\n", 3)
Path("begun").touch()
rest = response.read()
assert rest.rstrip().endswith(b"data: [DONE]"), rest
with client.chat.completions.stream(**ASK) as stream:
    Path("again").touch()
    assert stream.get_final_completion().choices[0].message.content == "yes"
""",
        [After("begun", said("yes")), After("again", said("yes"))],
    )


@pytest.mark.exhaustive
def test_other_replies_begin_with_blank_lines_if_the_model_takes_long(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "KEEP_ALIVE_S", 0.05)
    play(
        RAW
        + """
response = send("POST", "/chat/completions", json.dumps(ASK))
lines_until(response, b"\\n", 3)
Path("begun").touch()
assert json.loads(response.read())["choices"][0]["message"]["content"] == "yes"
""",
        [After("begun", said("yes"))],
    )


@pytest.mark.parametrize("stream", [False, True])
def test_invalid_requests_get_their_status(play: Play, stream: bool) -> None:
    play(
        RAW
        + f"""
try:
    client.chat.completions.create(**ASK, n=2, stream={stream})
except openai.BadRequestError as error:
    assert error.param == "n"
else:
    raise AssertionError("answered")
client.chat.completions.create(**ASK)
""",
        [said("end")],
    )


@pytest.mark.parametrize("api", [pytest.param("chat", marks=pytest.mark.exhaustive), "responses"])
def test_invalid_requests_get_an_error_event_if_their_stream_has_begun(
    play: Play, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    monkeypatch.setattr(program, "KEEP_ALIVE_S", 0.05)
    wrong = "chat.completions.create(**ASK, n=2" if api == "chat" else "responses.create(model='gpt', input=[1]"
    param = "n" if api == "chat" else "input"
    play(
        RAW
        + f"""
import threading, time
first = threading.Thread(target=lambda: client.chat.completions.create(**ASK))
first.start()
while not Path("relay/replies/1.accepted").exists():
    time.sleep(0.01)
stream = client.{wrong}, stream=True)  # it waits for the first
Path("begun").touch()
try:
    list(stream)
except openai.APIError as error:
    assert (error.param, error.type) == ({param!r}, "invalid_request_error"), error
else:
    raise AssertionError("no error")
first.join()
client.chat.completions.create(**ASK)
""",
        [After("begun", said("first")), said("end")],
    )


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ("chat.completions.create(**ASK)", "reply.choices[0].message.content"),
        ("responses.create(model='gpt', input='?')", "reply.output_text"),
    ],
)
def test_request_that_is_repeated_after_a_time_out_asks_the_model_once(play: Play, request_: str, answer: str) -> None:
    played = play(
        RAW
        + f"""
try:
    client.with_options(timeout=0.5).{request_}
except openai.APITimeoutError:
    pass
else:
    raise AssertionError("answered")
Path("gave-up").touch()
reply = client.{request_}
assert {answer} == "one"
reply = client.{request_}
assert {answer} == "two"
""",
        [After("gave-up", said("one")), said("two")],
    )
    assert len(played.messages) == 2


@pytest.mark.exhaustive
def test_reply_that_no_client_has_read_is_kept_for_the_repetition(play: Play) -> None:
    """The first request is repeated only after another one, for which the model was asked later."""
    played = play(
        RAW
        + """
try:
    client.with_options(timeout=0.5).chat.completions.create(**ASK)
except openai.APITimeoutError:
    Path("gave-up").touch()
other = client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "other"}])
assert other.choices[0].message.content == "two"
assert client.chat.completions.create(**ASK).choices[0].message.content == "one"
""",
        [After("gave-up", said("one")), said("two")],
    )
    assert len(played.messages) == 2


@pytest.mark.exhaustive
def test_equal_requests_at_the_same_time_are_answered_each(play: Play) -> None:
    play(
        RAW
        + """
async def main():
    replies = await asyncio.gather(*(later.chat.completions.create(**ASK) for _ in range(8)))
    assert sorted(reply.choices[0].message.content for reply in replies) == list("abcdefgh")

asyncio.run(main())
""",
        [said(letter) for letter in "abcdefgh"],
    )


@pytest.mark.exhaustive
def test_client_that_cancels_its_request_does_not_disturb_the_next(play: Play) -> None:
    play(
        RAW
        + """
async def main():
    with_stream = asyncio.create_task(later.chat.completions.create(**ASK, stream=True))
    stream = await with_stream
    await stream.close()
    Path("closed").touch()
    reply = await later.chat.completions.create(**{**ASK, "messages": [{"role": "user", "content": "next"}]})
    assert reply.choices[0].message.content == "two"

asyncio.run(main())
""",
        [After("closed", said("one")), said("two")],
    )


@pytest.mark.exhaustive
def test_client_that_closes_only_its_side_gets_the_reply(play: Play) -> None:
    play(
        RAW
        + """
body = json.dumps(ASK)
connection = socket.create_connection(tuple(address.split(":")), timeout=30)
connection.sendall(
    "POST /v1/chat/completions HTTP/1.0\\r\\nAuthorization: Bearer {}\\r\\nContent-Length: {}\\r\\n\\r\\n{}".format(
        os.environ["OPENAI_API_KEY"], len(body), body
    ).encode()
)
connection.shutdown(socket.SHUT_WR)
with connection.makefile("rb") as file:
    head, _, content = file.read().partition(b"\\r\\n\\r\\n")
assert json.loads(content)["choices"][0]["message"]["content"] == "yes", head
""",
        [said("yes")],
    )


# ---- HTTP ------------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_bodies_in_chunks_are_read(play: Play) -> None:
    play(
        RAW
        + """
data = json.dumps(ASK).encode()
response = send("POST", "/chat/completions", iter([data[:7], data[7:]]))
assert response.status == 200, response.read()
response = send("POST", "/chat/completions", b"wrong\\r\\n", **{"Transfer-Encoding": "chunked"})
assert (response.status, b"chunks" in response.read()) == (400, True)
response = send("POST", "/chat/completions", iter([b"x" * 1_000_000] * 5))
assert response.status == 413
""",
        [said("yes")],
    )


@pytest.mark.exhaustive
def test_large_requests_are_refused_with_a_status_and_not_repeated(play: Play) -> None:
    play(
        RAW
        + """
large = {"role": "user", "content": "x" * 20_000_000}
try:
    openai.OpenAI(max_retries=2).chat.completions.create(model="gpt", messages=[large])
except openai.APIStatusError as error:
    assert error.status_code == 413 and "at most 4194304 bytes" in error.message
else:
    raise AssertionError("answered")
response = send("POST", "/chat/completions", b"x" * 20_000_000)  # this client reads no answer before it has sent all
assert response.status == 413, response.status
client.chat.completions.create(**ASK)
""",
        [said("yes")],
    )


@pytest.mark.exhaustive
def test_other_methods_are_answered_in_the_format_of_errors(play: Play) -> None:
    play(
        RAW
        + """
response = send("HEAD", "/models")
assert (response.status, response.read()) == (200, b"") and int(response.headers["Content-Length"]) > 0
response = send("OPTIONS", "/chat/completions")
assert (response.status, response.headers["Allow"]) == (204, "GET, HEAD, OPTIONS, POST")
for method, status in {"PUT": 404, "PATCH": 404, "DELETE": 404, "PROPFIND": 501}.items():
    response = send(method, "/models/m", b"{}")
    assert response.status == status, (method, response.status)
    assert json.loads(response.read())["error"]["type"] == "invalid_request_error"
client.chat.completions.create(**ASK)
""",
        [said("yes")],
    )


def test_too_many_requests_are_told_when_to_try_again(play: Play) -> None:
    play(
        RAW
        + """
import threading
answers = []
def ask(number):
    messages = [{"role": "user", "content": str(number)}]
    answers.append(send("POST", "/chat/completions", json.dumps({"messages": messages})))
threads = [threading.Thread(target=ask, args=(number,)) for number in range(17)]
for thread in threads:
    thread.start()
import time
while not answers:
    time.sleep(0.01)
assert (answers[0].status, answers[0].headers["Retry-After"]) == (429, "5")
Path("refused").touch()
for thread in threads:
    thread.join()
assert sorted(answer.status for answer in answers) == [200] * 16 + [429]
""",
        [After("refused", said("0")), *[said("x")] * 15],
    )


def test_deeply_nested_output_in_place_of_the_relay_is_its_end() -> None:
    engine: Any = SimpleNamespace(execute=lambda *_: SimpleNamespace(output="[" * 60_000))
    box: Any = None
    state: Any = {"request": 0}
    found = program.next_request(engine, box, state, time.time() + 10, "time")
    assert found == program.Ended(output="The program ended the relay.")
