"""Agent programs in workspaces: each request becomes an observation, each message of the model a reply."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hub.environments.compiled import CompileError
from hub.environments.episodes import Step
from hub.harnesses.base import HarnessError
from hub.protocols.cases import CaseData
from sandbox.connections.owners import owner
from sandbox.workspaces.docker_api import OWNER_LABEL
from tests.hub.playing import environment, episode
from tests.sandbox import containers

pytestmark = pytest.mark.docker
RULE = {"name": "tests", "type": "workspace_script", "path": "tests/test.sh", "timeout_s": 20}
CHECK = 'test "$(cat "$WORKDIR/answer" 2>/dev/null)" = 42 || { echo "the answer is not 42"; exit 1; }\n'
CLIENT = """
import json, os, urllib.error, urllib.request

def post(body, key=None, path="/chat/completions"):
    headers = {"Authorization": "Bearer " + (key or os.environ["OPENAI_API_KEY"]), "Content-Type": "application/json"}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + path, data, headers)
    try:
        return 200, urllib.request.urlopen(request, timeout=60).read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()

def ask(messages, **more):
    status, text = post({"model": "any", "messages": messages, **more})
    assert status == 200, text
    return json.loads(text)["choices"][0]["message"]
"""


@pytest.fixture(autouse=True)
def image() -> Iterator[str]:
    yield containers.image()
    client = containers.daemon()
    left = client.containers.list(filters={"label": f"{OWNER_LABEL}={owner()}"}, ignore_removed=True)
    client.close()
    assert left == [], "a box is left"


def play(program: str, **options: Any) -> Any:
    files = {"tests/test.sh": CHECK, "agent/client.py": CLIENT, "agent/main.py": f"from client import *\n{program}"}
    harness = {
        "type": "workspace",
        "image": containers.image(),
        "policy": "program",
        "program": "agent/main.py",
        "limits": {"memory_mb": 256, "disk_mb": 16, "pids": 64},
        **options,
    }
    case = CaseData(id="c", input="Write 42 to answer.")
    return episode(harness, files=files, rules=[RULE], case=case, pool=object())


def said(text: str) -> Any:
    return {"role": "assistant", "content": text}


async def end_of(playing: Any, *texts: str) -> Step:
    await playing.reset()
    for text in texts:
        step: Step = await playing.step(said(text))
    assert step.done
    return step


LOOP = """
messages = [{"role": "user", "content": open(os.environ["INSTRUCTION"]).read()}]
while True:
    reply = ask(messages)
    messages.append({"role": "assistant", "content": reply["content"], "refusal": None})
    if reply["content"] == "done":
        break
    open("answer", "w").write(reply["content"])
    messages.append({"role": "user", "content": "written"})
"""


async def test_program_plays_the_episode_and_its_work_is_scored() -> None:
    playing = play(LOOP)
    observation = await playing.reset()
    assert [message["content"] for message in observation.messages] == ["Write 42 to answer."]
    step = await playing.step(said("42"))
    assert (step.done, [message["content"] for message in step.observation.messages]) == (False, ["written"])
    step = await playing.step(said("done"))
    assert (step.done, step.truncated, step.reward, step.info["exit_code"]) == (True, False, 1.0, 0)
    assert [message["role"] for message in playing.messages] == ["user", "assistant", "user", "assistant"]


async def test_episode_of_a_program_continues_from_its_stored_state_and_a_reply_may_be_repeated() -> None:
    first = play(LOOP)
    await first.reset()
    stored = json.loads(json.dumps(first.state))
    await first.step(said("41"))  # its answer is lost, as if the process had been killed
    second = play(LOOP)
    second.state = stored
    await second.step(said("41"))
    await second.step(said("42"))
    assert (await second.step(said("done"))).reward == 1.0


async def test_tools_streams_and_new_conversations_reach_the_model() -> None:
    playing = play(
        """
tools = [{"type": "function", "function": {"name": "save", "description": "", "parameters": {"type": "object"}}}]
call = ask([{"role": "user", "content": "first"}], tools=tools)["tool_calls"][0]
open("answer", "w").write(json.loads(call["function"]["arguments"])["text"])
status, text = post({"model": "m", "stream": True, "messages": [{"role": "user", "content": "second"}]})
events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
assert "".join(event["choices"][0]["delta"].get("content") or "" for event in events) == "streamed", text
assert text.rstrip().endswith("data: [DONE]") and events[-1]["choices"][0]["finish_reason"] == "stop"
"""
    )
    observation = await playing.reset()
    assert observation.tools[0]["function"]["name"] == "save"
    function = {"name": "save", "arguments": '{"text": "42"}'}
    message: Any = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    step = await playing.step(message)
    assert (step.info, step.observation.tools) == ({"new_conversation": True}, [])
    assert [item["content"] for item in playing.conversation] == ["second"]
    assert (len(playing.messages), playing.prompt_messages) == (3, 1)
    step = await playing.step(said("streamed"))
    assert (step.info["exit_code"], step.reward) == (0, 1.0), step.info


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "print('why'); raise SystemExit(3)",
            "agent/main.py ended with exit code 3 before its first valid request to the model: why",
        ),
        pytest.param(
            "import time; time.sleep(60)",
            "agent/main.py made no valid request to the model before the limit tool_seconds was reached.",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
async def test_program_without_a_request_is_an_error_of_the_environment(program: str, message: str) -> None:
    with pytest.raises(HarnessError) as raised:
        await play(program, tool_seconds=2 if "sleep" in program else 60).reset()
    assert str(raised.value) == message


async def test_program_is_ended_by_the_time_of_the_episode() -> None:
    playing = play("ask([{'role': 'user', 'content': 'x'}])\nwhile True: pass")
    await playing.reset()
    playing.state["harness"]["world"]["ends_at"] = 0
    step = await playing.step(said("a"))
    assert (step.truncated, step.info) == (True, {"limit": "episode_s"})


@pytest.mark.exhaustive
async def test_limits_end_the_episode() -> None:
    step = await end_of(play("while True: ask([{'role': 'user', 'content': 'again'}])", max_turns=2), "a", "b")
    assert (step.truncated, step.info) == (True, {"limit": "max_turns"})
    waiting = "import time\nask([{'role': 'user', 'content': 'x'}])\ntime.sleep(600)"
    step = await end_of(play(waiting, tool_seconds=3), "a")
    assert (step.truncated, step.info) == (True, {"limit": "tool_seconds"})


# ---- hostile programs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempt", "status"),
    [
        pytest.param("post({'messages': [{'role': 'user', 'content': 'x'}]}, key='another-episode')", 401, id="token"),
        pytest.param("post(b'{' * 100)", 400, id="not-json", marks=pytest.mark.exhaustive),
        pytest.param("post(b'[]')", 400, id="not-an-object", marks=pytest.mark.exhaustive),
        pytest.param("post({'messages': []})", 400, id="no-messages", marks=pytest.mark.exhaustive),
        pytest.param(
            "post({'messages': [{'role': 'root', 'content': 1}]})", 400, id="role", marks=pytest.mark.exhaustive
        ),
        pytest.param(
            "post({'messages': [{'role': 'user', 'content': 'x'}], 'n': 500})",
            400,
            id="many-choices",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param("post(b'x' * 5_000_000)", 413, id="huge-body", marks=pytest.mark.exhaustive),
        pytest.param("post({}, path='/../../files')", 404, id="path", marks=pytest.mark.exhaustive),
    ],
)
async def test_invalid_requests_are_answered_and_never_reach_the_model(attempt: str, status: int) -> None:
    playing = play(
        f"""
try:
    status, text = {attempt}
except OSError:
    status = 413  # the relay closed the connection while the body was sent
reply = ask([{{"role": "user", "content": str(status)}}])
open("answer", "w").write("42")
"""
    )
    observation = await playing.reset()
    assert [message["content"] for message in observation.messages] == [str(status)]
    assert (await playing.step(said("ok"))).reward == 1.0


async def test_flood_of_requests_is_served_one_at_a_time_and_limited() -> None:
    program = """
import threading
statuses = []
def flood():
    statuses.append(post({"messages": [{"role": "user", "content": "flood"}]})[0])
threads = [threading.Thread(target=flood, daemon=True) for _ in range(20)]  # the box allows 64 processes and threads
for thread in threads: thread.start()
import time
time.sleep(600)
"""
    playing = play(program, max_turns=3)
    await playing.reset()
    for _ in range(2):
        assert not (await playing.step(said("x"))).done
    step = await playing.step(said("x"))
    assert (step.done, step.info, step.reward) == (True, {"limit": "max_turns"}, 0.0)


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param("os.kill(-1, 9)", id="kill-everything"),
        pytest.param("os.kill(os.getppid(), 9)", id="kill-the-relay"),
        pytest.param(
            "import shutil; shutil.rmtree('/tmp/.relay')", id="remove-the-folder", marks=pytest.mark.exhaustive
        ),
        pytest.param(
            "os.rename('/tmp/.relay/requests', '/tmp/r'); os.symlink('/proc', '/tmp/.relay/requests')",
            id="link",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param("open('/tmp/.relay/ended', 'w').write('[]')", id="forged-end"),
        pytest.param(
            "open('/tmp/.relay/ended', 'w').write('{\"code\": {}}')", id="forged-code", marks=pytest.mark.exhaustive
        ),
        pytest.param(
            "open('/tmp/.relay/requests/' + '9' * 30, 'w').write('{}')",
            id="forged-request",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param("open('/tmp/.relay/requests/' + '9' * 5000, 'w')", id="long-name", marks=pytest.mark.exhaustive),
        pytest.param(
            "[open('/tmp/.relay/requests/%d' % i, 'w') for i in range(10, 500)]",
            id="many-requests",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
async def test_attacks_on_the_relay_end_the_episode_and_do_not_score(attack: str) -> None:
    playing = play(f"ask([{{'role': 'user', 'content': 'x'}}])\n{attack}\nwhile True: pass", tool_seconds=6)
    step = await end_of(playing, "x")
    assert step.reward == 0.0


@pytest.mark.exhaustive
async def test_requests_after_the_end_reach_nobody() -> None:
    program = """
import subprocess, sys
ask([{"role": "user", "content": "x"}])
code = "import urllib.request as r\\nwhile 1:\\n try: r.urlopen('http://localhost:8080/x', b'')\\n except OSError: pass"
subprocess.Popen([sys.executable, "-c", code])
"""
    playing = play(program)
    step = await end_of(playing, "x")
    assert step.info["exit_code"] == 0
    with pytest.raises(Exception, match="over"):
        await playing.step(said("y"))


# ---- manifests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "program"}, "harness.policy: `program`, a file of the bundle, and `policy: program` belong"),
        ({"program": "tests/test.sh"}, "harness.program: `program`, a file of the bundle, and `policy: program`"),
        ({"policy": "program", "program": "none.py"}, "the bundle has no file 'none.py'"),
    ],
)
def test_program_and_policy_belong_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CompileError) as failure:
        environment({"type": "workspace", "image": "x", **options}, files={"tests/test.sh": ""}, rules=[RULE])
    assert message in str(failure.value)
