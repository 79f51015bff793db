"""Rollouts as the formats read them, and the base class of the formats."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, TypedDict

from hub.protocols.messages import (
    JSON,
    Message,
    calls_of,
    exported_arguments,
    for_chat_template,
    text_of,
    up_to_last_answer,
)
from runs.exports.protocol import ExportFormat, JSONObject, LeftOut
from runs.exports.provenance import UsageCounts
from runs.rollouts.sessions import StepReward
from runs.rollouts.tokens import StepTokens


class RolloutRecord(TypedDict):
    """All data of a rollout, with the keys of the format `jsonl` in their order."""

    rollout: str
    source: str
    environment: str
    digest: str
    case: str
    attempt: int
    seed: int
    model: str
    reward: float
    status: str
    stop: str
    messages: list[Message]
    tools: str | None
    usage: UsageCounts | None
    step_usage: list[UsageCounts | None] | None
    group: str | None
    tokens: list[StepTokens | None] | None
    rules: list[JSON]
    recordings: list[JSON] | None
    user: str | None
    created_at: str
    steps: list[StepReward] | None


class FlatTokens(TypedDict):
    """Tokens of a rollout in one sequence. `completion_mask` is 1 for tokens of the policy and 0 for others."""

    prompt_ids: list[int] | None
    completion_ids: list[int] | None
    completion_mask: list[int] | None
    logprobs: list[float] | None


class RolloutItem(ABC):
    """Episode or response that is exported."""

    @abstractmethod
    def record(self) -> RolloutRecord:
        """Return the data of the rollout. Raises LeftOut."""

    @abstractmethod
    def first_answer(self) -> int:
        """Return the index of the policy's first message; the number of messages if there is none.

        Assistant messages before it are examples in the prompt.
        """

    @abstractmethod
    def group(self) -> str | None:
        """Return an id that the rollouts share whose rewards are compared with each other; None without a group."""

    @abstractmethod
    def category(self) -> str:
        """Return the category of the environment."""


class RolloutFormat(ExportFormat[RolloutItem]):
    """Format of rollouts.

    argument_objects: whether arguments of tool calls are objects instead of JSON text. Only formats whose rows are made
    from `split_messages` read it.
    """

    argument_objects: ClassVar[bool] = False

    def rows(self, item: RolloutItem) -> Iterable[JSONObject]:
        return self.convert(item.record(), item)

    @abstractmethod
    def convert(self, record: RolloutRecord, item: RolloutItem) -> Iterable[JSONObject]:
        """Return the rows of a rollout. Raises LeftOut."""


def split_messages(
    record: RolloutRecord, item: RolloutItem, *, argument_objects: bool = False
) -> tuple[list[Message], list[Message]]:
    """Return the prompt, and the completion up to the policy's last message, with contents as text. Raises LeftOut.

    With *argument_objects*, arguments of tool calls are objects.
    """
    messages, start = record["messages"], item.first_answer()
    prompt, completion = messages[:start], up_to_last_answer(messages)[start:]
    if not prompt or not completion:
        raise LeftOut("the transcript has no prompt or no answer")
    convert = _with_argument_objects if argument_objects else _with_text
    return [convert(message) for message in prompt], [convert(message) for message in completion]


def _with_text(message: Message) -> Message:
    """Return *message* with text as content, because a column has one type. Raises LeftOut for other parts."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    if any(part["type"] != "text" for part in content):
        raise LeftOut("a message has parts other than text; the format jsonl has them")
    return {**message, "content": text_of(message)}


def _with_argument_objects(message: Message) -> Message:
    """Return *message* as `_with_text` does, with objects as arguments. Raises LeftOut if some are no JSON object."""
    if not all(isinstance(exported_arguments(call), dict) for call in calls_of(message)):
        raise LeftOut("a tool call whose arguments are no JSON object; the formats with JSON text have it")
    return for_chat_template(_with_text(message))


def get_training_tools(record: RolloutRecord) -> str | None:
    """Return the offered tools as JSON text, None without tools.

    With an empty list, the chat template of Llama 3.1 asks the model to respond with a call.
    """
    return record["tools"] if json.loads(record["tools"] or "[]") else None


def flatten_tokens(steps: Sequence[StepTokens | None] | None) -> FlatTokens:
    """Return the tokens of all steps as one sequence, as trainers take them.

    All values are None if a step has no tokens, or if the prompt of a step does not begin with all tokens before it:
    then the steps are no single sequence. `logprobs` are 0 for tokens that are not the policy's, and None if a step
    has none.
    """
    nothing: FlatTokens = {"prompt_ids": None, "completion_ids": None, "completion_mask": None, "logprobs": None}
    known = [step for step in steps or [] if step is not None]
    if not known or len(known) < len(steps or []):
        return nothing
    prompt = known[0]["prompt_ids"]
    sequence, mask, logprobs = list(prompt), [], []
    for step in known:
        if step["prompt_ids"][: len(sequence)] != sequence:
            return nothing
        between = step["prompt_ids"][len(sequence) :]
        mask += [0] * len(between) + [1] * len(step["completion_ids"])
        logprobs += [0.0] * len(between) + (step["logprobs"] or [])
        sequence += between + step["completion_ids"]
    return {
        "prompt_ids": prompt,
        "completion_ids": sequence[len(prompt) :],
        "completion_mask": mask,
        "logprobs": logprobs if all(step["logprobs"] is not None for step in known) else None,
    }


def replay_fields(record: RolloutRecord) -> JSONObject:
    """Return what a new episode needs in order to repeat this one, except for replies of role models."""
    return {
        "rollout": record["rollout"],
        "environment": record["environment"],
        "digest": record["digest"],
        "case": record["case"],
        "attempt": record["attempt"],
        "seed": record["seed"],
        "model": record["model"],
    }
