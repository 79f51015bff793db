"""Workspaces over REST and on workers: the life of their boxes, and processes that are killed."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from hub.models import Environment
from hub.services import import_bundle, set_certificate
from llmeval_site.accounts.tokens import create_token
from llmeval_site.tasks import close_workspaces
from runs.exports.rollouts import response_record
from runs.models import EpisodeSession, Response, Run
from runs.results.aggregate import aggregate_run
from runs.results.warnings import warnings
from runs.rollouts.errors import TooManyEpisodes
from runs.services import create_run
from sandbox.workspaces.base import BoxSpec, Handle
from sandbox.workspaces.docker_api import LABEL, OWNER_LABEL
from sandbox.workspaces.docker_engine import DockerWorkspaces
from sandbox.workspaces.shared import get_workspaces
from tests.endpoint import Answer, completion, endpoint
from tests.hub.bundle_files import lines
from tests.hub.bundle_files import write_bundle as write_environment
from tests.processes import send_task, start_command, wait_until, worker
from tests.runs.capitals import config_text, load, start
from tests.runs.config.resolution import find_environments
from tests.runs.workspaces import import_workspace
from tests.sandbox import containers
from tests.services import empty_redis_url
from tests.site.server.web_server import answers, free_port

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.docker,
]
CHECK = 'test "$(cat answer 2>/dev/null)" = 42\n'
_DONE = {"role": "assistant", "content": "Done."}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the ids of the boxes that this process has opened. Other tests share the Docker engine."""
    ids: list[str] = []
    original = DockerWorkspaces.open

    def open_box(engine: DockerWorkspaces, spec: BoxSpec) -> Handle:
        handle = original(engine, spec)
        ids.append(handle.id)
        return handle

    monkeypatch.setattr(DockerWorkspaces, "open", open_box)
    return ids


@pytest.fixture
def slug(tmp_path: Path, opened: list[str]) -> Iterator[str]:
    """Return an environment of workspaces; at the end none of its boxes may be left."""
    import_workspace(tmp_path, "answer", {"a": "Write 42 to answer."}, CHECK)
    yield "answer"
    sessions = {box_of(str(session.pk)) for session in EpisodeSession.objects.all()}
    left = boxes() & (sessions | set(opened))
    for box in left:
        get_workspaces().close(Handle(host="", id=box, generation="", image=""))
    assert not left, "a box is left"


def boxes(pid: int | None = None) -> set[str]:
    """Return the ids of all boxes, or of those that the process *pid* owns."""
    client = containers.daemon()
    found = client.api.containers(all=True, filters={"label": f"{LABEL}=box"})
    client.close()
    return {item["Id"] for item in found if pid is None or f"/{pid}/" in item["Labels"].get(OWNER_LABEL, "")}


def call(command: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}


@pytest.fixture
def token() -> str:
    return create_token(user=User.objects.create_user("trainer"), scopes=["train"])[1]


@pytest.fixture
def api(token: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    return client


def box_of(episode: str) -> str:
    return str(EpisodeSession.objects.get(pk=episode).state["harness"]["world"]["box"]["id"])


def test_episode_over_rest_has_a_box_until_it_is_finished(api: APIClient, slug: str) -> None:
    episode = api.post("/api/v1/episodes/", {"environment": slug}, format="json").json()
    assert [tool["function"]["name"] for tool in episode["observation"]["tools"]] == ["bash", "read", "write", "edit"]
    box = box_of(episode["id"])
    url = f"/api/v1/episodes/{episode['id']}"
    step = api.post(f"{url}/step", {"message": call("echo 4 > answer"), "turn": 0}, format="json").json()
    assert "[exit code 0" in step["observation"]["messages"][0]["content"]
    api.post(f"{url}/step", {"message": call("echo 42 > answer"), "turn": 1}, format="json")
    assert box in boxes()
    end = api.post(f"{url}/finish", {"reason": "tokens", "turn": 2}, format="json").json()
    assert (end["reward"], end["truncated"]) == (1.0, True)
    assert box not in boxes()


def test_expired_and_deleted_episodes_close_their_boxes(api: APIClient, slug: str) -> None:
    first, second = (api.post("/api/v1/episodes/", {"environment": slug}, format="json").json()["id"] for _ in range(2))
    close_workspaces()
    assert {box_of(first), box_of(second)} <= boxes()
    EpisodeSession.objects.filter(pk=first).update(expires_at=timezone.now() - timedelta(seconds=1))
    expired, deleted = box_of(first), box_of(second)
    assert api.post(f"/api/v1/episodes/{first}/step", {"message": _DONE}, format="json").status_code == 410
    close_workspaces()
    assert expired not in boxes()
    assert api.delete(f"/api/v1/episodes/{second}/").status_code == 204
    assert deleted not in boxes()


def test_box_stays_during_a_step_and_is_closed_when_the_episode_is_deleted_after_it(
    api: APIClient, slug: str, live_server: Any, token: str
) -> None:
    episode = api.post("/api/v1/episodes/", {"environment": slug}, format="json").json()["id"]
    box, url = box_of(episode), f"{live_server.url}/api/v1/episodes/{episode}"
    headers = {"Authorization": f"Token {token}", "Prefer": "respond-async, wait=0"}
    step = {"message": call("sleep 2; echo 42 > answer"), "turn": 0}
    assert requests.post(f"{url}/step", json=step, headers=headers, timeout=60).status_code == 202
    EpisodeSession.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    close_workspaces()
    assert box in boxes()
    deleted = requests.delete(f"{url}/", headers=headers, timeout=60)
    assert (deleted.status_code, EpisodeSession.objects.count()) == (204, 0)
    assert box not in boxes()


def test_reset_beyond_the_limit_of_episodes_leaves_no_box(
    api: APIClient, slug: str, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.rollouts.creation.check_limit", checks := _LimitAtSecondCall())
    assert api.post("/api/v1/episodes/", {"environment": slug}, format="json").status_code == 429
    assert (checks.calls, len(opened)) == (2, 1)
    assert opened[0] not in boxes()


class _LimitAtSecondCall:
    """Check of the limit that a concurrent request has reached in the meantime."""

    calls = 0

    def __call__(self, user: User) -> None:
        self.calls += 1
        if self.calls == 2:
            raise TooManyEpisodes("The limit is reached.", retry_after=1)


@contextmanager
def server() -> Iterator[tuple[subprocess.Popen[str], str]]:
    port = free_port()
    process = start_command("runserver", "--noreload", f"127.0.0.1:{port}", extra={"LLMEVAL_DEBUG": "0"})

    def is_ready() -> bool:
        assert process.poll() is None, process.communicate()
        return answers(f"http://127.0.0.1:{port}/healthz")

    try:
        wait_until(is_ready)
        yield process, f"http://127.0.0.1:{port}/api/v1/episodes/"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.exhaustive
def test_killed_web_process_loses_no_stored_turn_and_the_next_finds_the_box(slug: str, token: str) -> None:
    headers = {"Authorization": f"Token {token}"}
    with server() as (process, url):
        episode = requests.post(url, json={"environment": slug}, headers=headers, timeout=60).json()["id"]
        step = {"message": call("echo 4 > answer"), "turn": 0}
        assert requests.post(f"{url}{episode}/step", json=step, headers=headers, timeout=60).ok
        second = {"message": call("test -e begun && printf 2 > last; : > begun; sleep 3; true"), "turn": 1}

        def take() -> None:
            with pytest.raises(requests.ConnectionError):
                requests.post(f"{url}{episode}/step", json=second, headers=headers, timeout=60)

        taking = threading.Thread(target=take)
        taking.start()
        started = threading.Event()
        started.wait(1.5)  # the command runs by now
        process.kill()
        process.wait()
        taking.join()
    assert EpisodeSession.objects.get(pk=episode).revision == 1
    with server() as (_, url):
        again = requests.post(f"{url}{episode}/step", json=second, headers=headers, timeout=60).json()
        assert (again["turn"], again["done"]) == (1, False)
        last = {"message": call("printf '%s%s' $(cat answer) $(cat last) > both; mv both answer"), "turn": 2}
        assert requests.post(f"{url}{episode}/step", json=last, headers=headers, timeout=60).ok
        end = requests.post(f"{url}{episode}/step", json={"message": _DONE, "turn": 3}, headers=headers, timeout=60)
    assert end.json()["reward"] == 1.0


@pytest.mark.exhaustive
def test_box_of_a_killed_worker_is_swept_and_another_worker_completes_the_run(slug: str, tmp_path: Path) -> None:
    answers = [call("sleep 6"), call("echo 42 > answer"), _DONE]

    def script(request: dict[str, Any], number: int) -> Answer:
        message = answers[min(number, 2)]
        return completion(
            message["content"], **{"tool_calls": message["tool_calls"]} if "tool_calls" in message else {}
        )

    with endpoint(script) as model:
        text = f"""
name: boxes
environments: [answer]
models: [{{name: a, provider: openai, model: m, base_url: "{model.url}"}}]
tracking: {{mlflow: false}}
"""
        config = load(tmp_path, text)
        create_run(config=config, environments=find_environments(config))
        broker = empty_redis_url()
        with worker(broker) as process:
            send_task(broker)
            wait_until(lambda: len(model.requests) == 1 and len(boxes(process.pid)) == 1)
            (left,) = boxes(process.pid)
            process.kill()
            process.wait()
        assert left in boxes()
        Run.objects.update(lease_until=timezone.now())  # the test does not wait until it lapses
        with worker(broker):
            send_task(broker, "site.close_workspaces")
            wait_until(lambda: left not in boxes())
            wait_until(Response.objects.exists, each_second=lambda: send_task(broker))
    response = Response.objects.get()
    assert (response.status, response.score) == ("passed", 1.0)


PROGRAM = """
import json, os, urllib.request

def ask(text):
    body = json.dumps({"model": "any", "messages": [{"role": "user", "content": text}]}).encode()
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]

open("answer", "w").write(ask("first") + ask("second"))
"""


RESPONSES_AGENT = """
import json, os, subprocess, urllib.request

def respond(**more):
    body = json.dumps({"model": "any", "stream": True, "tools": [TOOL], **more}).encode()
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/responses", body, headers)
    events = [json.loads(line[6:]) for line in urllib.request.urlopen(request) if line.startswith(b"data: ")]
    assert events[-1]["type"] == "response.completed"
    return events[-1]["response"]

TOOL = {"type": "function", "name": "bash", "parameters": {"type": "object"}}
response = respond(instructions="Use bash.", input=open(os.environ["INSTRUCTION"]).read())
while calls := [item for item in response["output"] if item["type"] == "function_call"]:
    outputs = []
    for call in calls:
        done = subprocess.run(["sh", "-c", json.loads(call["arguments"])["command"]], capture_output=True, text=True)
        outputs.append({"type": "function_call_output", "call_id": call["call_id"], "output": done.stdout})
    response = respond(instructions="Use bash.", input=outputs, previous_response_id=response["id"])
assert response["usage"]["total_tokens"] > 0
print(response["output"][0]["content"][0]["text"])
"""


def write_program(folder: Path, program: str) -> None:
    write_environment(
        folder,
        files={
            "cases.jsonl": lines([{"id": "a", "input": "Write 42 to answer."}]),
            "tests/test.sh": CHECK,
            "agent/main.py": program,
        },
        slug="answer",
        category="tool-use",
        dataset={"path": "cases.jsonl"},
        harness={"type": "workspace", "image": containers.image(), "policy": "program", "program": "agent/main.py"},
        scoring={"rules": [{"name": "tests", "type": "workspace_script", "path": "tests/test.sh"}]},
        gold=None,
        wrong=None,
    )


def test_requests_of_a_program_are_recorded_and_priced_in_a_run(tmp_path: Path, opened: list[str]) -> None:
    write_program(tmp_path / "answer", PROGRAM)

    def script(request: dict[str, Any], number: int) -> Answer:
        return completion("4" if request["messages"] == [{"role": "user", "content": "first"}] else "2")

    with endpoint(script) as model:
        run, _ = start(tmp_path, config_text(model.url, environments=[{"path": "answer"}]))
    response = Response.objects.get(run_environment__run=run)
    assert (response.status, response.turns, response.input_tokens) == ("passed", 2, 20), response.reason
    assert [message["content"] for message in response.messages] == ["first", "4", "second", "2"]
    assert [item["messages"] for item in model.requests] == [
        [{"role": "user", "content": "first"}],
        [{"role": "user", "content": "second"}],
    ]
    assert (response.cost_usd or 0) > 0
    assert not boxes() & set(opened)


def program_with_parameters(first: dict[str, Any]) -> str:
    """Return a program that sends *first* with its first request, and nothing with the second."""
    given = PROGRAM.replace("def ask(text):", "def ask(text, **more):").replace(
        '"content": text}]}', '"content": text}], **more}'
    )
    assert given.count("more}") == 1
    return given.replace('ask("first")', f'ask("first", **{first!r})')


@pytest.mark.exhaustive
def test_parameters_of_a_program_reach_the_model_below_those_of_the_config(tmp_path: Path, opened: list[str]) -> None:
    wanted = {"temperature": 0.5, "max_completion_tokens": 9, "seed": 3, "response_format": {"type": "json_object"}}
    write_program(tmp_path / "answer", program_with_parameters(wanted))
    config: dict[str, Any] = json.loads(config_text("", environments=[{"path": "answer"}]))
    (given,) = config["models"]

    def play(url: str, **parameters: Any) -> Response:
        changed = {**config, "models": [{**given, "base_url": url, "parameters": parameters}]}
        run, _ = start(tmp_path, json.dumps(changed))
        return Response.objects.get(run_environment__run=run)

    def sent(request: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in request.items() if name not in ("model", "messages")}

    def script(request: dict[str, Any], number: int) -> Answer:
        return completion("4" if request["messages"][-1]["content"] == "first" else "2")

    with endpoint(script) as model:
        response = play(model.url)
        assert [sent(request) for request in model.requests] == [wanted, {}]
        assert response.scores.get().detail["parameters"] == [
            {"turn": 1, "parameters": wanted},
            {"turn": 2, "parameters": {}},
        ]
        play(model.url)
        assert len(model.requests) == 2  # both replies were in the cache
        play(model.url, temperature=0, max_tokens=50)
        kept = {"seed": 3, "response_format": {"type": "json_object"}}
        set_by_config = {"temperature": 0, "max_tokens": 50}
        assert [sent(request) for request in model.requests[2:]] == [{**kept, **set_by_config}, set_by_config]
        write_program(tmp_path / "answer", program_with_parameters({**wanted, "temperature": 0.6}))
        text = (tmp_path / "answer" / "environment.yaml").read_text().replace("version: 1.0.0", "version: 1.0.1")
        (tmp_path / "answer" / "environment.yaml").write_text(text)
        play(model.url)
        # The cache has the second request, which has no parameters, but not the first.
        assert [sent(request) for request in model.requests[4:]] == [{**wanted, "temperature": 0.6}]
    assert not boxes() & set(opened)


def test_trainer_reads_the_parameters_of_a_program(api: APIClient, tmp_path: Path, opened: list[str]) -> None:
    write_program(tmp_path / "answer", program_with_parameters({"temperature": 0.5}))
    import_bundle(bundle=tmp_path / "answer")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    episode = api.post("/api/v1/episodes/", {"environment": "answer"}, format="json").json()
    assert episode["observation"]["parameters"] == {"temperature": 0.5}
    assert api.get(f"/api/v1/episodes/{episode['id']}/").json()["parameters"] == {"temperature": 0.5}
    address = f"/api/v1/episodes/{episode['id']}/step"
    step = api.post(address, {"message": {"role": "assistant", "content": "4"}}, format="json").json()
    assert (step["done"], "parameters" in step["observation"]) == (False, False)
    step = api.post(address, {"message": {"role": "assistant", "content": "2"}}, format="json").json()
    assert (step["done"], step["reward"]) == (True, 1.0)
    assert not boxes() & set(opened)


def test_agent_with_streamed_responses_is_recorded_priced_and_replayed_from_the_cache(
    tmp_path: Path, opened: list[str]
) -> None:
    write_program(tmp_path / "answer", RESPONSES_AGENT)

    def script(request: dict[str, Any], number: int) -> Answer:
        if request["messages"][-1]["role"] == "tool":
            return completion("It is written.")
        return completion(None, tool_calls=call("echo 42 > answer; echo ok")["tool_calls"])

    costs = []
    with endpoint(script) as model:
        for _ in range(2):
            run, _ = start(tmp_path, config_text(model.url, environments=[{"path": "answer"}]))
            response = Response.objects.get(run_environment__run=run)
            assert (response.status, response.turns, response.input_tokens) == ("passed", 2, 20), response.reason
            costs.append(response.cost_usd or 0)
    assert len(model.requests) == 2  # the second run read both replies from the cache
    assert costs[0] > 0 == costs[1]
    assert [message["role"] for message in response.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [message["content"] for message in response.messages] == [
        "Use bash.",
        "Write 42 to answer.",
        "",
        "ok\n",
        "It is written.",
    ]
    assert model.requests[1]["messages"][-1] == {"role": "tool", "tool_call_id": "1", "content": "ok\n"}
    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]] == ["bash"]
    assert not boxes() & set(opened)


def test_scores_that_a_model_can_forge_are_labelled_over_rest_in_runs_and_on_the_page(
    api: APIClient, slug: str, tmp_path: Path
) -> None:
    forged = "printf 'import os\\nos._exit(0)\\n' > answer.py"
    check = "#!/usr/bin/env python3\nimport os, sys\nsys.path.insert(0, os.environ['WORKDIR'])\nimport answer\n"
    folder = tmp_path / "answer"
    text = (folder / "environment.yaml").read_text().replace("version: 1.0.0", "version: 1.0.1")
    (folder / "environment.yaml").write_text(text)
    (folder / "tests" / "test.sh").write_text(check)
    newer = import_bundle(bundle=folder)
    set_certificate(version=newer, certificate={"digest": newer.digest, "gates": []})
    reader = Client()
    reader.force_login(User.objects.create_superuser("root"))
    version = reader.get("/api/v1/environments/answer/versions/latest/").json()
    assert (version["version"], version["forgeable_rules"]) == ("1.0.1", ["tests"])
    page = reader.get("/hub/answer/").content.decode()
    assert "trust: in_process" in page
    assert "trust: in_process" not in reader.get("/hub/answer/1.0.0/").content.decode()
    episode = api.post("/api/v1/episodes/", {"environment": "answer"}, format="json").json()["id"]
    url = f"/api/v1/episodes/{episode}/"
    api.post(f"{url}step", {"message": call(forged), "turn": 0}, format="json")
    end = api.post(f"{url}step", {"message": _DONE, "turn": 1}, format="json").json()
    assert (end["reward"], end["info"]["rules"]["tests"]["trust"]) == (1.0, "in_process")
    answers = [call(forged), _DONE]

    def script(request: dict[str, Any], number: int) -> Answer:
        message = answers[min(number, 1)]
        return completion(message["content"], **({"tool_calls": message["tool_calls"]} if number == 0 else {}))

    with endpoint(script) as model:
        run, _ = start(tmp_path, config_text(model.url, environments=[{"path": "answer"}]))
    response = Response.objects.get(run_environment__run=run)
    assert (response.status, response.execution_trust) == ("passed", "in_process")
    assert response.scores.get().detail["trust"] == "in_process"
    assert response_record(response, 1.0)["rules"][0]["trust"] == "in_process"
    assert any("1 of 1 executions shared a process" in text for text in warnings(run, aggregate_run(run)))
