"""What a preference stores about its two answers, so that exports compare answers without reading transcripts."""

import hashlib
import json
from collections.abc import Sequence
from typing import TypedDict

from hub.protocols.messages import (
    JSON,
    Message,
    get_comparable_content,
    text_of,
)
from runs.models import Response


class ComparedAnswers(TypedDict):
    """Fields of Preference that compare the answers of `first` and `second`."""

    first_digest: str
    second_digest: str
    same_answer: bool
    longer: int


def compare_answers(first: Response, second: Response) -> ComparedAnswers:
    """Return what a preference stores about the answers of two responses.

    Answers are compared by roles, texts without reasoning, and tool calls without ids (`get_comparable_content`). If
    that changes, a migration has to compute the stored values of all preferences again.
    """
    prompts = [_comparable(response.prompt) for response in (first, second)]
    answers = [_comparable(response.answer) for response in (first, second)]
    first_digest, second_digest = map(_digest, prompts, answers)
    return {
        "first_digest": first_digest,
        "second_digest": second_digest,
        "same_answer": answers[0] == answers[1],
        "longer": _last_length(first) - _last_length(second),
    }


def _comparable(messages: Sequence[Message]) -> list[list[JSON]]:
    return [get_comparable_content(message) for message in messages]


def _digest(prompt: list[list[JSON]], answer: list[list[JSON]]) -> str:
    return hashlib.sha256(json.dumps([prompt, answer], sort_keys=True).encode()).hexdigest()


def _last_length(response: Response) -> int:
    """Return the number of characters in the last answer."""
    answers = (message for message in reversed(response.messages) if message.get("role") == "assistant")
    return len(text_of(next(answers, {})))
