"""Taskset, harness and environment for verifiers 0.4, with the cases of an LLM-Eval environment.

Needs the package `verifiers`. Its programs load these classes as the plugin `llmeval-verifiers`, which is
llmeval_verifiers.py.
"""

import os
from collections.abc import Iterator, Mapping

import httpx2
import verifiers.v1 as vf
from pydantic import Field

from llmeval_client.asynchronous import AsyncClient
from llmeval_client.requests import Request, missing_ignored, post_turn
from llmeval_client.state import FinishReason
from llmeval_client.synchronous import Client
from llmeval_client.types import Message, StepResult, Usage

PLUGIN = "llmeval-verifiers"
_MESSAGE_KEYS = ("role", "content", "tool_calls", "reasoning_content")
# Stop conditions of verifiers that are limits of tokens; any other limit is reported as `other`.
_TOKEN_LIMITS = {"max_input_tokens", "max_output_tokens", "max_total_tokens", "context_length"}


class EpisodeServer(vf.BaseConfig):
    """Address of the LLM-Eval server. The token is read from the environment variable *token_var*."""

    url: str = "http://127.0.0.1:8000"
    token_var: str = "LLMEVAL_TOKEN"  # noqa: S105 - the name of a variable
    timeout: float = Field(600.0, gt=0)
    """Seconds per request."""

    def token(self) -> str:
        token = os.environ.get(self.token_var, "")
        if not token:
            raise ValueError(f"Set {self.token_var} to an API token with the scope `train`.")
        return token

    def client(self) -> AsyncClient:
        return AsyncClient(self.url, self.token(), timeout=self.timeout)


class EpisodeTaskData(vf.TaskData):
    """A case. `prompt` has its opening messages; the harness receives them again with each episode."""

    server: EpisodeServer
    environment: str
    split: str = ""
    seed: int = 0
    attempt: int = 1
    roles: dict[str, list[str]] = Field(default_factory=dict)


class EpisodeState(vf.State):
    """Episode of a rollout. `reward` is None until it is over."""

    episode: str = ""
    reward: float | None = None
    status: str = ""
    stop: str | None = None
    rules: dict[str, float] = Field(default_factory=dict)

    def record(self, result: StepResult) -> None:
        """Store the score of a finished episode."""
        self.reward, self.status, self.stop = result.reward, result.status, result.stop
        self.rules = rule_values(result.info)


def rule_values(info: Mapping[str, object]) -> dict[str, float]:
    """Return the value of each rule that could decide."""
    rules = info.get("rules")
    verdicts = rules.items() if isinstance(rules, dict) else ()
    return {f"rule_{name}": float(verdict["value"]) for name, verdict in verdicts if verdict["value"] is not None}


class EpisodeTask(vf.Task[EpisodeTaskData, EpisodeState]):
    """Scoring of a case, by the server."""

    @property
    def key(self) -> str:
        return f"{self.data.environment}/{self.data.id}"

    async def finalize(self, trace: vf.Trace) -> None:
        """End the episode if a limit of verifiers ended the rollout; it is scored as truncated."""
        state = trace.state
        if state.reward is None and state.episode:
            async with self.data.server.client() as client:
                answer = await client.send(post_turn(f"episodes/{state.episode}/finish", reason=_finish_reason(trace)))
            state.reward, state.status = float(str(answer["reward"])), str(_object(answer["info"]).get("status", ""))
            state.stop, state.rules = str(answer["stop"]), rule_values(_object(answer["info"]))
        trace.info["llmeval"] = {"episode": state.episode, "status": state.status, "stop": state.stop}

    @vf.reward
    async def episode_reward(self, trace: vf.Trace) -> float:
        """Return the reward of the episode. An episode that could not be scored has none, and the rollout fails."""
        if trace.state.reward is None or trace.state.status == "unscored":
            raise RuntimeError(f"The episode {trace.state.episode} could not be scored.")
        return float(trace.state.reward)

    @vf.metric
    async def rules(self, trace: vf.Trace) -> dict[str, float]:
        return dict(trace.state.rules)


def _finish_reason(trace: vf.Trace) -> FinishReason:
    if trace.is_timeout:
        return "time"
    return "tokens" if trace.stop_condition in _TOKEN_LIMITS else "other"


def _object(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value


class EpisodeTasksetConfig(vf.TasksetConfig):
    """Which cases are loaded. `environment`: slug or slug@version."""

    id: str = PLUGIN
    server: EpisodeServer = EpisodeServer()
    environment: str = ""
    split: str = ""
    """Only cases whose column `split` has this value."""
    seed: int = 0
    """Seed of the episodes, as in an evaluation."""
    attempt: int = Field(1, ge=1)
    """Attempt of the episodes, from which their seeds are derived too. All rollouts of a group have the same."""
    roles: dict[str, list[str]] = Field(default_factory=dict)
    """Registered models for roles such as a simulated user."""


class EpisodeTaskset(vf.Taskset[EpisodeTask, EpisodeTasksetConfig]):
    """The cases of an environment, in the order of its dataset."""

    def load(self) -> Iterator[EpisodeTask]:
        """Yield a task for each case. Raises ServerError, Unreachable."""
        config = self.config
        if not config.environment:
            raise ValueError("environment: name an environment of the server.")
        server = config.server
        with Client(server.url, server.token(), timeout=server.timeout) as client:
            cases = client.cases(
                config.environment, split=config.split or None, seed=config.seed, roles=config.roles or None
            )
        for case in cases:
            data = EpisodeTaskData(
                id=case.id,
                name=case.id,
                prompt=[
                    {"role": message["role"], "content": message.get("content") or ""} for message in case.messages
                ],
                server=server,
                environment=config.environment,
                split=case.split,
                seed=config.seed,
                attempt=config.attempt,
                roles=config.roles,
            )
            yield EpisodeTask(data, config.task)


class EpisodeHarnessConfig(vf.HarnessConfig):
    """Settings of the harness."""

    id: str = PLUGIN


class EpisodeHarness(vf.Harness[EpisodeHarnessConfig]):
    """Loop between the model and an episode: the environment answers each message, with its own tools and users.

    It runs in the process of verifiers, and no code of the model is executed there.
    """

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: EpisodeTaskData,
    ) -> vf.ProgramResult:
        """Execute one episode. If a limit of verifiers ends the rollout, `EpisodeTask.finalize` ends the episode."""
        which = {"case": data.id, "seed": data.seed, "attempt": data.attempt, "roles": data.roles or None}
        model = httpx2.AsyncClient(
            base_url=f"{endpoint}/", headers={"Authorization": f"Bearer {secret}"}, timeout=None, trust_env=False
        )
        async with model, data.server.client() as client:
            episode = await client.start(data.environment, model=ctx.model[:120], **which)
            trace.state.episode = episode.id
            while not episode.done:
                answer = await _complete(model, ctx.model, episode.messages, episode.tools)
                if answer is None:
                    break
                message, usage = answer
                await episode.step(message, usage=usage)
            if episode.result is not None and episode.done:
                trace.state.record(episode.result)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def cleanup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Delete the episode of a rollout that failed; an open episode counts against the limit of the server."""
        if trace.state.episode and trace.state.reward is None:
            async with trace.task.data.server.client() as client:
                with missing_ignored():
                    await client.send(Request("DELETE", f"episodes/{trace.state.episode}/"))


async def _complete(
    model: httpx2.AsyncClient, name: str, messages: list[Message], tools: list[dict[str, object]]
) -> tuple[Message, Usage | None] | None:
    """Return the message of the model, or None if a limit of verifiers ended the rollout."""
    body: dict[str, object] = {"model": name, "messages": messages}
    if tools:
        body["tools"] = tools
    response = await model.post("chat/completions", json=body)
    if response.status_code == 400 and "rollout stopped" in response.text:
        return None
    if response.status_code >= 400:
        raise RuntimeError(f"The model returned {response.status_code}: {response.text[:500]}")
    answer = response.json()
    said = answer["choices"][0]["message"]
    usage = answer.get("usage") or {}
    counted: Usage | None = None
    if {"prompt_tokens", "completion_tokens"} <= usage.keys():
        counted = {"prompt_tokens": usage["prompt_tokens"], "completion_tokens": usage["completion_tokens"]}
    return {key: said[key] for key in _MESSAGE_KEYS if said.get(key) is not None}, counted


class EpisodeEnvConfig(vf.EnvConfig):
    """One agent, which plays with the harness of this module in the process of verifiers."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class EpisodeEnv(vf.Env[EpisodeEnvConfig]):
    """Rollouts of cases, one agent each."""

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        await agents.agent.run(task)
