"""The OpenEnv server, with OpenEnv's own client."""

import asyncio
import dataclasses
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import uvicorn
from conftest import Answer, Server
from openenv import GenericEnvClient
from openenv.core.env_client import StepResult as OpenEnvResult

from llmeval_client import Client, Episode, StepResult
from llmeval_client.openenv import create_app


@contextmanager
def serving(server: Server, environment: str, max_sessions: int = 8) -> Iterator[str]:
    """Serve *environment* in a thread until the block ends, and return the address."""
    app = create_app(environment, url=server.url, token=server.token, max_sessions=max_sessions)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # connections wait until the server accepts them
        running = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join()


async def play(env: GenericEnvClient, answer: Answer) -> OpenEnvResult:
    result = await env.reset(case=answer.case, attempt=answer.attempt)
    assert result.observation["messages"] == answer.transcript[: len(result.observation["messages"])]
    assert not result.done
    for message in answer.messages:
        result = await env.step({"message": message})
    return result


def test_rollouts_have_the_rewards_of_the_evaluation(server: Server, environment: str, answers: list[Answer]) -> None:
    async def run(address: str) -> None:
        async with GenericEnvClient(base_url=address) as env:
            for answer in answers:
                result = await play(env, answer)
                assert (result.reward, result.done) == (answer.score, True), answer.case
                assert result.observation["info"]["status"] == answer.status
                state = await env.state()
                assert (state["case"], state["done"], state["reward"]) == (answer.case, True, answer.score)
                assert state["step_count"] == len(answer.messages)
                assert [(m["role"], m.get("content")) for m in state["messages"]] == [
                    (m["role"], m.get("content")) for m in answer.transcript
                ]

    with serving(server, environment) as address:
        asyncio.run(run(address))


@pytest.mark.parametrize("environment", ["order-desk"])
def test_connections_play_at_the_same_time(server: Server, environment: str, answers: list[Answer]) -> None:
    async def run(address: str, answer: Answer) -> float:
        async with GenericEnvClient(base_url=address) as env:
            return float((await play(env, answer)).reward)

    async def run_all(address: str) -> list[float]:
        return list(await asyncio.gather(*(run(address, answer) for answer in answers)))

    with serving(server, environment) as address:
        assert asyncio.run(run_all(address)) == [answer.score for answer in answers]


def test_invalid_message_is_reported_and_the_episode_continues(server: Server, client: Client) -> None:
    async def run(address: str) -> None:
        async with GenericEnvClient(base_url=address) as env:
            with pytest.raises(RuntimeError, match="reset before step"):
                await env.step({"message": {"content": "?"}})
            first = await env.reset(index=1)
            assert first.observation["info"]["case"] == client.cases("word-problems")[1].id
            with pytest.raises(RuntimeError, match="invalid"):
                await env.step({"message": {"content": 7}})
            with pytest.raises(RuntimeError, match="Invalid message"):
                await env.step({"text": "?"})
            assert (await env.step({"message": {"content": "?"}})).done
            with pytest.raises(RuntimeError, match="atlantis"):
                await env.reset(case="atlantis")
            drawn = [(await env.reset(seed=5)).observation["info"]["case"] for _ in range(2)]
            assert drawn[0] == drawn[1]

    with serving(server, "word-problems") as address:
        asyncio.run(run(address))
    assert client.list_episodes(done=False) == []  # the episode of an ended connection is deleted


def test_observation_has_the_reward_of_the_step(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Episode.step

    def step(episode: Episode, message: dict[str, object]) -> StepResult:
        return dataclasses.replace(answer(episode, message), step_reward=0.25)  # as for a custom harness

    monkeypatch.setattr(Episode, "step", step)

    async def run(address: str) -> None:
        async with GenericEnvClient(base_url=address) as env:
            assert (await env.reset(index=0)).observation["step_reward"] is None
            assert (await env.step({"message": {"content": "?"}})).observation["step_reward"] == 0.25

    with serving(server, "word-problems") as address:
        asyncio.run(run(address))


def test_tasks_are_listed(server: Server, client: Client) -> None:
    cases = client.cases("changing-plans")
    with serving(server, "changing-plans") as address, httpx.Client(base_url=address) as http:
        assert http.get("/changing-plans/splits").json() == []
        assert http.post("/changing-plans/num_tasks", json={"split": ""}).json() == {"num_tasks": len(cases)}
        task = http.post("/changing-plans/task", json={"split": "", "index": 2}).json()["task"]
        assert task == {"id": cases[2].id, "index": 2, "split": ""}
        for outside in (-1, len(cases)):
            assert http.post("/changing-plans/task", json={"split": "", "index": outside}).status_code == 400
        schema = http.get("/schema").json()
        assert schema["action"]["required"] == ["message"]


def test_command_serves_an_environment(server: Server) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llmeval_client.openenv", "word-problems", "--url", server.url]
    variables = {**os.environ, "LLMEVAL_TOKEN": server.token}
    with subprocess.Popen([*command, "--port", str(port)], env=variables, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            assert any("Application startup complete" in line for line in lines)
            assert any("running on" in line for line in lines)
            answer = httpx.get(f"http://127.0.0.1:{port}/list_environments")
            assert answer.json() == ["word-problems"]
        finally:
            process.terminate()
    variables["LLMEVAL_TOKEN"] = ""
    refused = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "LLMEVAL_TOKEN" in refused.stderr
