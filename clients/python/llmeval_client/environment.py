"""Environment with `reset` and `step` as in Gymnasium, without that package."""

from typing import Any

from llmeval_client.synchronous import Client, Episode
from llmeval_client.types import Message

Observation = dict[str, Any]


class EpisodeEnvironment:
    """Episodes of one environment, one at a time.

    An observation is `{"messages", "tools"}` with the new messages. An action is an assistant message, or its text.
    *which*: case, model, roles and other keys of a new episode.
    """

    def __init__(self, client: Client, environment: str, **which: object) -> None:
        self.episode: Episode | None = None
        self._client = client
        self._environment = environment
        self._which = which

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode, of the case that *seed* draws unless one is given; *options* override the keys of it."""
        self.close()
        seeded = {} if seed is None else {"seed": seed}
        self.episode = self._client.start(self._environment, **{**self._which, **seeded, **(options or {})})
        observation = {"messages": list(self.episode.messages), "tools": list(self.episode.tools)}
        return observation, {"id": self.episode.id, "case": self.episode.case}

    def step(self, action: Message | str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Return (observation, reward, terminated, truncated, info).

        The reward is 0.0 until the episode is over, and then its score. `info` has `step_reward`, if the harness
        returned a reward with this step.
        """
        if self.episode is None:
            raise RuntimeError("Call reset before step.")
        result = self.episode.step(action)
        observation = {"messages": result.messages, "tools": result.tools}
        info = dict(result.info)
        if result.step_reward is not None:
            info["step_reward"] = result.step_reward
        return observation, result.reward, result.terminated, result.truncated, info

    def close(self) -> None:
        """Delete the episode if it is not over."""
        if self.episode is not None and not self.episode.done:
            self.episode.delete()
        self.episode = None
