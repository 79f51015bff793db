"""Types of messages and answers, as the server sends them."""

from dataclasses import dataclass
from typing import NotRequired, TypedDict

Message = dict[str, object]  # a message of chat completions
Tool = dict[str, object]  # a tool of chat completions


class Usage(TypedDict):
    """Tokens of one message, as chat completions report them."""

    prompt_tokens: int
    completion_tokens: int


class Tokens(TypedDict):
    """Token ids of the prompt and of the message, with the log-probability of each token of the message."""

    prompt_ids: list[int]
    completion_ids: list[int]
    logprobs: NotRequired[list[float] | None]


@dataclass(frozen=True, slots=True)
class StepResult:
    """Answer to a step. `messages` has the new messages only; `status` is passed, failed, unscored, or empty.

    step_reward: the reward of this step from a custom harness; None if it gave none.
    """

    messages: list[Message]
    tools: list[Tool]
    reward: float
    terminated: bool
    truncated: bool
    stop: str | None
    info: dict[str, object]
    step_reward: float | None = None

    @property
    def done(self) -> bool:
        return self.terminated or self.truncated

    @property
    def status(self) -> str:
        return str(self.info.get("status", ""))


@dataclass(frozen=True, slots=True)
class ScoredConversation:
    """Score of one conversation. `reward` is None if it could not be scored; `error` is the reason."""

    case: str
    reward: float | None
    status: str
    truncated: bool
    error: str


@dataclass(frozen=True, slots=True)
class Case:
    """A case with the opening messages and tools of its episodes. `split` is empty if the dataset has none."""

    id: str
    split: str
    messages: list[Message]
    tools: list[Tool]
