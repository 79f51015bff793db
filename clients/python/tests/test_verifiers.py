"""The taskset and harness for verifiers, with verifiers' own rollouts and a scripted endpoint as the model."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import verifiers.v1 as vf
from conftest import Answer, Server
from verifiers.v1.utils.loaders import load_environment

from llmeval_client import Client, ServerError
from llmeval_client.verifiers import EpisodeEnvConfig, EpisodeServer, EpisodeTasksetConfig
from tests.endpoint import Answer as Response
from tests.endpoint import Endpoint, completion, endpoint


@pytest.fixture(autouse=True)
def _variables(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LLMEVAL_TOKEN", server.token)
    yield


def create_env(server: Server, environment: str, agent: vf.AgentConfig | None = None, **which: Any) -> vf.Env:
    taskset = EpisodeTasksetConfig(environment=environment, server=EpisodeServer(url=server.url), **which)
    agent = agent or vf.AgentConfig(runtime=vf.SubprocessConfig())
    return load_environment(EpisodeEnvConfig(taskset=taskset, agent=agent))


def scripted(answer: Answer) -> Callable[[dict[str, Any], int], Response]:
    """Reply with the messages of *answer*, the n-th to a request with n earlier assistant messages."""

    def reply(request: dict[str, Any], number: int) -> Response:
        said = sum(message["role"] == "assistant" for message in request["messages"])
        message = dict(answer.messages[said])
        calls = {"tool_calls": message["tool_calls"]} if message.get("tool_calls") else {}
        return completion(message.get("content"), finish="tool_calls" if calls else "stop", **calls)  # type: ignore[arg-type]

    return reply


def rollouts(env: vf.Env, case: str, model: Endpoint, size: int = 1) -> list[vf.Episode]:
    """Run a group of *size* rollouts of a case."""
    context = vf.ModelContext(
        model="scripted", client=vf.EvalClientConfig(base_url=model.url, api_key_var="NO_KEY"), sampling=vf.Sampling()
    )

    async def run() -> list[vf.Episode]:
        (task,) = env.taskset.include(ids=[case])
        async with env.serving():
            return list(await asyncio.gather(*(env.run_slot(slot, context) for slot in env.slots(task, size))))

    return asyncio.run(run())


def test_rollouts_have_the_rewards_of_the_evaluation(server: Server, environment: str, answers: list[Answer]) -> None:
    for attempt in {answer.attempt for answer in answers}:
        env = create_env(server, environment, attempt=attempt)
        for answer in (answer for answer in answers if answer.attempt == attempt):
            with endpoint(scripted(answer)) as model:
                (episode,) = rollouts(env, answer.case, model)
            (trace,) = episode.traces
            assert (episode.ok, trace.reward, trace.stop_condition) == (True, answer.score, "agent_completed")
            assert trace.info["llmeval"]["status"] == answer.status
            assert trace.num_turns == len(answer.messages)
            assert any(name.startswith("rule_") for name in trace.metrics)
            assert [message.role for message in trace.messages] == [m["role"] for m in answer.transcript]
            tools = {tool.name for tool in trace.tools}
            assert bool(tools) == (environment == "order-desk")


def test_tasks_have_the_cases_of_the_server_in_order(server: Server, environment: str, client: Client) -> None:
    tasks = list(create_env(server, environment).taskset)
    cases = client.cases(environment)
    assert [(task.data.idx, task.data.id) for task in tasks] == [(i, case.id) for i, case in enumerate(cases)]
    opening = [(message.role, message.content) for message in tasks[0].data.prompt]
    assert opening == [(message["role"], message["content"]) for message in cases[0].messages]
    assert tasks[0].key == f"{environment}/{cases[0].id}"
    with pytest.raises(ServerError, match="no split for training 'nowhere'"):
        list(create_env(server, environment, split="nowhere").taskset)


@pytest.mark.parametrize("environment", ["order-desk"])
def test_group_is_executed_concurrently(server: Server, environment: str, answers: list[Answer]) -> None:
    with endpoint(scripted(answers[0])) as model:
        episodes = rollouts(create_env(server, environment), answers[0].case, model, size=4)
    assert [episode.traces[0].reward for episode in episodes] == [answers[0].score] * 4
    assert len({episode.traces[0].info["llmeval"]["episode"] for episode in episodes}) == 4


@pytest.mark.parametrize("environment", ["changing-plans"])
def test_limit_of_verifiers_ends_and_scores_the_episode(
    server: Server, environment: str, answers: list[Answer], client: Client
) -> None:
    agent = vf.AgentConfig(runtime=vf.SubprocessConfig(), max_turns=1)
    with endpoint(scripted(answers[0])) as model:
        (episode,) = rollouts(create_env(server, environment, agent), answers[0].case, model)
    (trace,) = episode.traces
    assert (episode.ok, trace.stop_condition, trace.reward) == (True, "max_turns", 0.0)
    assert trace.info["llmeval"]["stop"] == "other"
    assert client.list_episodes(done=False) == []


@pytest.mark.parametrize("environment", ["word-problems"])
def test_failure_of_the_model_is_no_reward(
    server: Server, environment: str, answers: list[Answer], client: Client
) -> None:
    with endpoint(lambda request, number: Response({"error": {"message": "overloaded"}}, status=400)) as model:
        (episode,) = rollouts(create_env(server, environment), answers[0].case, model)
    (trace,) = episode.traces
    assert not episode.ok and not any(trace.rewards.values())
    assert "overloaded" in str(trace.errors[-1].message)
    assert client.list_episodes(done=False) == []


@pytest.mark.parametrize("environment", ["order-desk"])
def test_command_of_verifiers_loads_the_plugin(
    server: Server, environment: str, answers: list[Answer], tmp_path: Path
) -> None:
    with endpoint(scripted(answers[0])) as model:
        command = [str(Path(sys.executable).with_name("vf-eval")), "llmeval-verifiers", "--no-push", "--no-rich"]
        command += ["--env.taskset.environment", environment, "--env.taskset.server.url", server.url]
        command += ["--select.include.ids", answers[0].case, "--num-rollouts", "2", "--model", "scripted"]
        command += ["--client.base-url", model.url, "--client.api-key-var", "NO_KEY", "--output-dir", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (path,) = tmp_path.rglob("traces.jsonl")
    episodes = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rewards = [trace["rewards"]["episode_reward"]["score"] for episode in episodes for trace in episode["traces"]]
    assert rewards == [answers[0].score] * 2
