"""OpenEnv server over an environment: `/ws` with reset, step and state, one episode per connection at a time.

Needs the package `openenv`. From the command line: `python -m llmeval_client.openenv ENVIRONMENT --url URL`.
"""

import argparse
import os
from collections.abc import Mapping
from functools import partial

import uvicorn
from fastapi import FastAPI
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import Field

from llmeval_client.requests import LLMEvalError
from llmeval_client.state import cases_request, listed_cases
from llmeval_client.synchronous import Client, Episode
from llmeval_client.types import Case


class MessageAction(Action):
    """Message of the policy, in the format of chat completions. `role` may be left out."""

    message: dict[str, object] = Field(description='For example {"content": "..."}, or {"tool_calls": [...]}.')


class MessagesObservation(Observation):
    """New messages and the tools that the policy may call from now on. `info` has the score of a finished episode.

    step_reward: the reward that a custom harness returned with this step; `reward` is 0.0 until the episode is over.
    """

    messages: list[dict[str, object]] = Field(default_factory=list)
    tools: list[dict[str, object]] = Field(default_factory=list)
    stop: str | None = None
    step_reward: float | None = None
    info: dict[str, object] = Field(default_factory=dict)


class EpisodeSessionState(State):
    """State of a connection: the current episode, without hidden state of the environment."""

    environment: str = ""
    case: str = ""
    done: bool = False
    reward: float = 0.0
    messages: list[dict[str, object]] = Field(default_factory=list)


class EpisodeSession(Environment):
    """Environment of one OpenEnv connection, with episodes of *environment* on the server of *client*.

    *which*: keys of every new episode, such as model or roles. `close` deletes an open episode, and closes *client*.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, client: Client, environment: str, which: Mapping[str, object]) -> None:
        super().__init__()
        self._client = client
        self._environment = environment
        self._which = dict(which)
        self._episode: Episode | None = None

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        split: str | None = None,
        index: int | None = None,
        **which: object,
    ) -> MessagesObservation:
        """Start an episode of the case that *which* names, of the case number *index*, or of one that *seed* draws.

        *split* belongs to *index*. *which* has the keys of a new episode, such as case and attempt. The server chooses
        the id of the episode, so *episode_id* is ignored.
        """
        self._delete_open()
        given = {**self._which, **which}
        if index is not None:
            given["case"] = self.get_task(split or "", index)["id"]
        elif split is not None and "case" not in given:
            raise ValueError("split: send `index` as well.")
        if seed is not None:
            given["seed"] = seed
        self._episode = self._client.start(self._environment, **given)
        return MessagesObservation(
            messages=self._episode.messages, tools=self._episode.tools, info={"case": self._episode.case}
        )

    def step(self, action: MessageAction, timeout_s: float | None = None, **kwargs: object) -> MessagesObservation:
        """Send the message of the policy. Raises ServerError if it is invalid; the episode is then unchanged."""
        if self._episode is None:
            raise RuntimeError("Send reset before step.")
        result = self._episode.step(action.message)
        return MessagesObservation(
            messages=result.messages,
            tools=result.tools,
            reward=result.reward,
            done=result.done,
            stop=result.stop,
            step_reward=result.step_reward,
            info=result.info,
        )

    @property
    def state(self) -> EpisodeSessionState:
        """Return the transcript and result so far."""
        episode = self._episode
        if episode is None:
            return EpisodeSessionState(environment=self._environment)
        return EpisodeSessionState(
            episode_id=episode.id,
            step_count=episode.turn,
            environment=self._environment,
            case=episode.case,
            done=episode.done,
            reward=episode.reward,
            messages=episode.messages,
        )

    def get_metadata(self) -> EnvironmentMetadata:
        return EnvironmentMetadata(name=self._environment, description=f"LLM-Eval environment {self._environment}.")

    def close(self) -> None:
        """Delete the episode if it is open. The server deletes it later if it cannot be reached now."""
        try:
            self._delete_open()
        except LLMEvalError:
            """An idle episode expires."""
        self._client.close()

    def list_splits(self) -> list[str]:
        return sorted({case.split for case in self._cases("")} - {""})

    def list_tasks(self, split: str) -> list[dict[str, object]]:
        return [_task(index, case) for index, case in enumerate(self._cases(split))]

    def num_tasks(self, split: str) -> int:
        return self._page(split, 0, 1)[1]

    def get_task(self, split: str, index: int) -> dict[str, object]:
        """Return a case of *split*; an empty one selects all. Raises IndexError."""
        found, total = self._page(split, max(index, 0), 1)
        if index < 0 or not found:
            raise IndexError(f"index: there are {total} cases.")
        return _task(index, found[0])

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, object]]:
        return self.list_tasks(split)[start:stop]

    def _cases(self, split: str) -> list[Case]:
        return self._client.cases(self._environment, split=split or None, opened=False)

    def _page(self, split: str, offset: int, limit: int) -> tuple[list[Case], int]:
        """Return at most *limit* cases of *split* from *offset* on, and how many it has."""
        which = {"split": split or None, "opened": False, "limit": limit}
        answer = self._client.send(cases_request(self._environment, offset, which))
        return listed_cases(answer), int(answer["total"])

    def _delete_open(self) -> None:
        episode, self._episode = self._episode, None
        if episode is not None and not episode.done:
            episode.delete()


def _task(index: int, case: Case) -> dict[str, object]:
    return {"id": case.id, "index": index, "split": case.split}


def create_app(
    environment: str,
    *,
    url: str,
    token: str,
    max_sessions: int = 64,
    which: Mapping[str, object] | None = None,
) -> FastAPI:
    """Return an ASGI application that serves *environment* of the LLM-Eval server at *url*.

    *max_sessions*: connections at a time. *which*: keys of every new episode, such as model or roles.
    """
    app: FastAPI = create_fastapi_app(
        partial(_open_session, url, token, environment, dict(which or {})),
        MessageAction,
        MessagesObservation,
        max_concurrent_envs=max_sessions,
        env_name=environment.partition("@")[0],
        state_cls=EpisodeSessionState,
    )
    return app


def _open_session(url: str, token: str, environment: str, which: Mapping[str, object]) -> EpisodeSession:
    return EpisodeSession(Client(url, token), environment, which)


def main() -> None:
    """Serve an environment. The token is read from the environment variable LLMEVAL_TOKEN."""
    parser = argparse.ArgumentParser(prog="python -m llmeval_client.openenv", description=main.__doc__)
    parser.add_argument("environment", help="slug or slug@version")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="address of the LLM-Eval server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8010)
    parser.add_argument("--max-sessions", type=int, default=64, help="connections at a time")
    given = parser.parse_args()
    token = os.environ.get("LLMEVAL_TOKEN", "")
    if not token:
        parser.error("set LLMEVAL_TOKEN to an API token with the scope `train`")
    app = create_app(given.environment, url=given.url, token=token, max_sessions=given.max_sessions)
    uvicorn.run(app, host=given.host, port=given.port)


if __name__ == "__main__":
    main()
