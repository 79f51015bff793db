"""Client side of an episode: its transcript, next turn and result, without any input or output."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from llmeval_client.requests import Request, get, post, post_turn
from llmeval_client.types import Case, Message, ScoredConversation, StepResult, Tokens, Tool, Usage

FinishReason = Literal["tokens", "time", "other"]


class EpisodeState:
    """Episode as far as it has been executed. `messages` is the whole transcript, the prompt included."""

    def __init__(self, answer: Mapping[str, Any], *, case: str = "", group: str | None = None) -> None:
        self.id = str(answer["id"])
        self.case = str(answer.get("case", case))
        self.attempt: int | None = answer.get("attempt")
        self.group = group
        self.messages: list[Message] = list(answer["observation"]["messages"])
        self.tools: list[Tool] = list(answer["observation"]["tools"])
        self.turn = int(answer["turn"])
        self.done = bool(answer["done"])
        self.result: StepResult | None = None

    @property
    def reward(self) -> float:
        return self.result.reward if self.result else 0.0

    def step_request(self, message: Message, usage: Usage | None, tokens: Tokens | None) -> Request:
        path = f"episodes/{self.id}/step"
        return post_turn(path, message=message, turn=self.turn, usage=usage, tokens=tokens)

    def finish_request(self, reason: FinishReason) -> Request:
        return post_turn(f"episodes/{self.id}/finish", reason=reason, turn=self.turn)

    def apply(self, answer: Mapping[str, Any], said: Message | None) -> StepResult:
        """Add the answer to a step with the message *said*, or to the end of the episode."""
        new = answer["observation"]
        self.messages += [*([said] if said else []), *new["messages"]]
        self.tools, self.done = list(new["tools"]), bool(answer["done"])
        self.turn = int(answer["turn"]) + 1
        self.result = StepResult(
            messages=list(new["messages"]),
            tools=self.tools,
            reward=float(answer["reward"]),
            terminated=bool(answer["terminated"]),
            truncated=bool(answer["truncated"]),
            stop=answer["stop"],
            info=dict(answer["info"]),
            step_reward=answer.get("step_reward"),
        )
        return self.result


def assistant(message: Message | str) -> Message:
    """Return *message* as an assistant message; text becomes its content. Raises TypeError."""
    if isinstance(message, str):
        return {"role": "assistant", "content": message}
    if not isinstance(message, Mapping):
        raise TypeError(f"message: must be an assistant message or its text, not {type(message).__name__}.")
    return {"role": "assistant", **message}


def start_request(environment: str, given: Mapping[str, object]) -> Request:
    return post("episodes/", environment=environment, **given)


def batch_request(environment: str, given: Mapping[str, object]) -> Request:
    return post("episodes/batch", environment=environment, **given)


def started_ids(answer: Mapping[str, Any]) -> list[str]:
    """Return the ids of the episodes in an answer of `episodes/` or `episodes/batch`."""
    groups = answer.get("groups", [{"episodes": [answer]}])
    return [str(item["id"]) for group in groups for item in group["episodes"]]


def delete_request(episode: str) -> Request:
    return Request("DELETE", f"episodes/{episode}/")


def cases_request(environment: str, offset: int, given: Mapping[str, object]) -> Request:
    return post_turn("episodes/cases", environment=environment, offset=offset, **given)  # nothing is stored


def listed_cases(answer: Mapping[str, Any]) -> list[Case]:
    """Return the cases of an answer of `episodes/cases`."""
    return [
        Case(
            id=item["case"],
            split=item["split"],
            messages=list(item["observation"]["messages"]) if item["observation"] else [],
            tools=list(item["observation"]["tools"]) if item["observation"] else [],
        )
        for item in answer["cases"]
    ]


def score_request(
    environment: str, items: Sequence[tuple[str, Sequence[Message]]], given: Mapping[str, object]
) -> Request:
    sent = [{"case": case, "messages": list(messages)} for case, messages in items]
    return post_turn("score", environment=environment, items=sent, **given)  # nothing is stored, so no key is needed


def scored(answer: Mapping[str, Any]) -> list[ScoredConversation]:
    """Return the items of an answer of `score`."""
    return [
        ScoredConversation(
            case=item["case"],
            reward=item["reward"],
            status=item.get("status", ""),
            truncated=item.get("truncated", False),
            error=item["error"]["message"] if item["error"] else "",
        )
        for item in answer["items"]
    ]


def list_request(done: bool | None, group: str | None) -> Request:
    return get("episodes/", done=None if done is None else str(done).lower(), group=group, page_size=500)
