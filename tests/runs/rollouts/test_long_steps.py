"""Steps in the background over HTTP: 202, requests for the answer, failures, killed processes, deletion."""

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.conf import settings
from django.contrib.auth.models import User

from hub.environments.episodes import Episode, EpisodeError, Step
from hub.harnesses.base import HarnessError
from hub.models import Environment
from hub.protocols.messages import Message
from hub.services import import_bundle
from llmeval_client import Client as TrainerClient
from llmeval_client.requests import get, next_request, pause_before_retry, post_turn
from llmeval_site.accounts.tokens import create_token
from runs.models import EpisodeSession
from runs.rollouts import claims, steps
from runs.web.api import prefer_header
from sandbox.errors import SandboxUnavailable
from tests.processes import database_environment, wait_until
from tests.runs.rollouts.test_turns import Client, begin, say
from tests.site.server.web_server import answers, free_port

pytestmark = pytest.mark.django_db(transaction=True)
_ASYNC = {"Prefer": "respond-async, wait=0"}

_SLOW_STEP = """
import asyncio, django
django.setup()
from runs.models import EpisodeSession
from runs.rollouts import steps
from runs.rollouts.errors import StepRunning
async def sleep(episode, message):
    await asyncio.sleep(120)
steps._step = sleep
message = {"role": "assistant", "content": "Lima"}
try:
    steps.step_rollout(session=EpisodeSession.objects.get(), message=message, turn=0, wait_s=0)
except StepRunning:
    print("running", flush=True)
"""


@pytest.fixture
def token(folder: Path) -> str:
    import_bundle(bundle=folder / "capitals")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return create_token(user=User.objects.create_user("trainer"), scopes=["train"])[1]


@pytest.fixture
def http(live_server: Any, token: str) -> Client:
    return Client(f"{live_server.url}/api/v1/episodes/", {"Authorization": f"Token {token}"})


@pytest.fixture
def in_background(live_server: Any, token: str) -> Client:
    return Client(f"{live_server.url}/api/v1/episodes/", {"Authorization": f"Token {token}", **_ASYNC})


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make every step wait until this file exists. Each adds a line to the file `executed` beside it."""
    path = tmp_path / "gate"

    async def blocked(episode: Episode, message: Message) -> Step:
        with (tmp_path / "executed").open("a") as log:
            log.write(f"{message['content']}\n")
        while not path.exists():
            await asyncio.sleep(0.02)
        return await episode.step(message)

    monkeypatch.setattr(steps, "_step", blocked)
    return path


def test_long_step_is_answered_with_202_and_later_by_its_turn(in_background: Client, http: Client, gate: Path) -> None:
    episode = begin(http)
    running = in_background.post(f"{episode}/step", json=say("Lima", 0))
    url = f"/api/v1/episodes/{episode}/turns/0"
    assert (running.status_code, running.headers["Location"]) == (202, url)
    assert running.headers["Preference-Applied"] == "respond-async"
    assert running.json() == {"status": "running", "turn": 0, "url": url}
    assert http.get(f"{episode}/turns/0").status_code == 202
    gate.touch()
    answer = http.get(f"{episode}/turns/0?wait=30")
    assert (answer.status_code, answer.json()["reward"], answer.json()["done"]) == (200, 1.0, True)
    assert http.get(f"{episode}/turns/0").json() == answer.json()
    assert http.post(f"{episode}/step", json=say("Lima", 0)).json() == answer.json()
    session = EpisodeSession.objects.get()
    assert (session.revision, session.pending, session.lease_owner) == (1, None, "")


def test_request_that_is_repeated_while_the_step_is_executed_joins_it(
    in_background: Client, http: Client, gate: Path
) -> None:
    episode = begin(http)
    repeated = [in_background.post(f"{episode}/step", json=say("Lima", 0)) for _ in range(3)]
    other = in_background.post(f"{episode}/step", json=say("Cusco", 0))
    assert [answer.status_code for answer in repeated] == [202] * 3
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert other.json()["message"].startswith("Another request is executing turn 0 of this episode, with another ")
    wait_until(lambda: (gate.parent / "executed").exists())
    gate.touch()
    assert http.get(f"{episode}/turns/0?wait=30").json()["reward"] == 1.0
    assert (gate.parent / "executed").read_text() == "Lima\n"


def test_short_step_is_answered_at_once_and_finish_can_be_asynchronous(live_server: Any, token: str) -> None:
    headers = {"Authorization": f"Token {token}", "Prefer": "respond-async, wait=30"}
    patient = Client(f"{live_server.url}/api/v1/episodes/", headers)
    assert patient.post(f"{begin(patient)}/step", json=say("Lima", 0)).json()["reward"] == 1.0
    finished = patient.post(f"{begin(patient)}/finish?wait=30", json={"reason": "tokens", "turn": 0})
    assert (finished.status_code, finished.json()["stop"]) == (200, "tokens")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (SandboxUnavailable("The sandbox does not answer."), 503, "unavailable"),
        (HarnessError("harness.py: step failed.", temporary=True), 503, "unavailable"),
        (HarnessError("harness.py: step failed."), 422, "environment_failed"),
        (EpisodeError("The message is not allowed."), 400, "invalid"),
        (ZeroDivisionError(), 500, "server_error"),
    ],
)
def test_failed_step_is_reported_and_can_be_sent_again(
    error: Exception, status: int, code: str, in_background: Client, http: Client, gate: Path
) -> None:
    episode = begin(http)

    async def failing(episode: Episode, message: Message) -> Step:
        while not gate.exists():
            await asyncio.sleep(0.02)
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "_step", failing)
        assert in_background.post(f"{episode}/step", json=say("Lima", 0)).status_code == 202
        gate.touch()
        failed = http.get(f"{episode}/turns/0?wait=30")
    assert (failed.status_code, failed.json()["code"]) == (status, code)
    assert http.post(f"{episode}/step", json=say("Lima", 0)).json()["reward"] == 1.0
    assert http.get(f"{episode}/turns/0").status_code == 200


def test_turns_that_are_not_the_latest_have_no_answer(http: Client) -> None:
    episode = begin(http)
    unknown, invalid = http.get(f"{episode}/turns/0"), http.get(f"{episode}/turns/0?wait=soon")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert (invalid.status_code, invalid.json()["errors"][0]["path"]) == (400, "wait")
    http.post(f"{episode}/step", json=say("Lima", 0))
    EpisodeSession.objects.update(revision=2, last_answer={**EpisodeSession.objects.get().last_answer, "turn": 1})
    old = http.get(f"{episode}/turns/0")
    assert (old.status_code, old.json()["code"]) == (409, "wrong_turn")


def test_turns_of_other_users_do_not_exist(http: Client, live_server: Any) -> None:
    episode = begin(http)
    _, key = create_token(user=User.objects.create_user("other"), scopes=["train"])
    other = Client(f"{live_server.url}/api/v1/episodes/", {"Authorization": f"Token {key}"})
    assert other.get(f"{episode}/turns/0").status_code == 404


def test_background_step_of_killed_process_is_interrupted_and_counts_once(http: Client) -> None:
    episode = begin(http)
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW_STEP],
        env={**database_environment(), "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"]},
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        assert http.get(f"{episode}/turns/0").status_code == 202
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    interrupted = http.get(f"{episode}/turns/0?wait=30")
    assert (interrupted.status_code, interrupted.json()["code"]) == (409, "interrupted")
    assert http.post(f"{episode}/step", json=say("Lima", 0)).json()["reward"] == 1.0
    assert EpisodeSession.objects.get().revision == 1


def test_episode_is_not_deleted_during_a_step(
    in_background: Client, http: Client, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_WAIT_S", 0.1)
    episode = begin(http)
    assert in_background.post(f"{episode}/step", json=say("Lima", 0)).status_code == 202
    refused = http.delete(f"{episode}/")
    assert (refused.status_code, refused.json()["code"], refused.headers["Retry-After"]) == (409, "in_progress", "2")
    gate.touch()
    assert http.get(f"{episode}/turns/0?wait=30").json()["reward"] == 1.0
    assert http.delete(f"{episode}/").status_code == 204
    assert not EpisodeSession.objects.exists()


def test_deletion_waits_for_the_end_of_a_step(in_background: Client, http: Client, gate: Path) -> None:
    episode = begin(http)
    assert in_background.post(f"{episode}/step", json=say("Lima", 0)).status_code == 202
    with ThreadPoolExecutor(1) as threads:
        deleted = threads.submit(http.delete, f"{episode}/")
        gate.touch()
        assert deleted.result().status_code == 204
    assert not EpisodeSession.objects.exists()


@pytest.mark.exhaustive
def test_site_answers_other_requests_during_32_long_steps(token: str, tmp_path: Path) -> None:
    gate, port = tmp_path / "gate", free_port()
    command = [sys.executable, "-m", "gunicorn", "tests.runs.rollouts.blocked_site", "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        [*command, "--config", "gunicorn.conf.py", "--log-level", "warning"],
        env={**database_environment(), "LLMEVAL_TEST_GATE": str(gate)},
        cwd=settings.BASE_DIR,
    )
    try:
        site = f"http://127.0.0.1:{port}"
        wait_until(lambda: process.poll() is not None or answers(f"{site}/healthz"))
        http = Client(f"{site}/api/v1/episodes/", {"Authorization": f"Token {token}", **_ASYNC})
        episodes = [begin(http) for _ in range(32)]
        with ThreadPoolExecutor(32) as threads:
            running = list(threads.map(lambda episode: http.post(f"{episode}/step", json=say("Lima", 0)), episodes))
            assert {answer.status_code for answer in running} == {202}
            # Without a limit for requests that wait, these would hold every thread of the server, and none would be
            # asked to come back later.
            polls = [threads.submit(http.get, f"{episode}/turns/0?wait=30") for episode in episodes]
            wait_until(lambda: any(poll.done() and poll.result().headers["Retry-After"] == "1" for poll in polls))
            assert answers(f"{site}/healthz")
            assert not gate.exists()
            gate.touch()
            assert {poll.result().status_code for poll in polls} <= {200, 202}
        for episode in episodes:
            wait_until(lambda episode=episode: http.get(f"{episode}/turns/0?wait=5").status_code == 200)  # type: ignore[misc]
    finally:
        process.send_signal(signal.SIGINT)  # at once, without waiting for open connections
        process.wait(60)
    assert EpisodeSession.objects.filter(revision=1, reward=1.0).count() == 32


def test_client_follows_202_until_the_step_has_ended(
    live_server: Any, token: str, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefer_header, "_DEFAULT_WAIT_S", 0.0)
    sent: list[tuple[str, int]] = []
    send = httpx2.Client.request

    def record(http: httpx2.Client, *args: Any, **kwargs: Any) -> httpx2.Response:
        response = send(http, *args, **kwargs)
        sent.append((args[0], response.status_code))
        if response.status_code == 202:
            gate.touch()
        return response

    monkeypatch.setattr(httpx2.Client, "request", record)
    with TrainerClient(live_server.url, token) as client:
        assert client.start("capitals", case="peru").step("Lima").reward == 1.0
    assert sent[:2] == [("POST", 201), ("POST", 202)]
    assert sent[-1] == ("GET", 200)


def test_client_sends_a_step_again_whose_process_has_ended() -> None:
    step = post_turn("episodes/1/step", turn=3)
    assert step.headers["Prefer"] == "respond-async"
    posted, polled = (httpx2.Request(method, "http://site/") for method in ("POST", "GET"))
    running = httpx2.Response(202, json={"turn": 3}, request=posted)
    poll = next_request(step, running)
    assert poll == get("episodes/1/turns/3", wait=20)
    interrupted = httpx2.Response(409, json={"code": "interrupted"}, request=polled)
    unavailable = httpx2.Response(503, json={"code": "unavailable"}, request=polled)
    assert [pause_before_retry(poll, response, 0) for response in (interrupted, unavailable)] == [None, None]
    assert [next_request(step, response) for response in (interrupted, unavailable)] == [step, step]
    assert next_request(step, httpx2.Response(503, json={"code": "unavailable"}, request=posted)) is None
    broken = httpx2.Response(422, json={"code": "environment_failed"}, request=polled)
    assert (pause_before_retry(poll, broken, 0), next_request(step, broken)) == (None, None)
    assert next_request(step, httpx2.Response(200, json={}, request=polled)) is None
