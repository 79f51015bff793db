"""Base class of the formats of preferences, and the prompt and completions that training formats share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hub.protocols.messages import (
    Message,
    Tool,
    count_common_messages,
    get_comparable_content,
    is_empty_answer,
    parts_without_text,
    plain_message,
    remove_reasoning,
    text_of,
    up_to_last_answer,
)
from hub.selectors import get_offered_tools
from preferences.exporters.linter import IDENTICAL
from preferences.models import Preference
from runs.exports.protocol import ExportFormat, LeftOut
from runs.models import Response

_CONVERSATION = "a conversation or tool calls, which plain text cannot represent: use trl-conversational"
_OTHER_PARTS = "a message with images or other parts, which plain text cannot represent: use trl-conversational"


class PreferenceFormat(ExportFormat[Preference]):
    """Format of preferences.

    needs_tools: whether the case and the manifest of each preference are loaded, for the tools on offer. decisive_only:
    whether it has no place for ties and both-bad verdicts, which then go to a file of their own.
    """

    needs_tools: ClassVar[bool] = False
    decisive_only: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class TrainingSides:
    """Shared prompt of a decisive preference, and the completions of both sides."""

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]


def training_sides(preference: Preference) -> TrainingSides:
    """Return the sides of a decisive preference.

    Raises LeftOut if they do not answer the same prompt, if the better answer is empty, or if the sides differ only in
    what the environment said after the last answer.

    The prompt reaches to the first difference, so that what two conversations have in common is not compared. Trainers
    give both sides the same prompt and then expect the assistant, so it ends with a user's message or a tool's result.
    Both sides end with an answer, because trainers take all of their text for the model's.
    """
    chosen, rejected = preference.chosen, preference.rejected
    assert chosen is not None and rejected is not None
    messages, others = chosen.messages, rejected.messages
    require_same_prompt(chosen, rejected)
    length = count_common_messages(messages, others)
    require_answerable(messages[:length])
    better, worse = (up_to_last_answer(side)[length:] for side in (messages, others))
    if [*map(get_comparable_content, better)] == [*map(get_comparable_content, worse)]:
        raise LeftOut(IDENTICAL)
    sides = TrainingSides(trainable(messages[:length]), trainable(better), trainable(worse))
    require_content(sides.chosen)
    return sides


def require_content(chosen: Sequence[Message]) -> None:
    """Raise LeftOut if a message of the model in a good answer is empty: a model would learn to say nothing."""
    if any(is_empty_answer(message) for message in chosen):
        raise LeftOut("an empty answer that was chosen")


def require_same_prompt(first: Response, second: Response) -> None:
    """Raise LeftOut if two conversations begin with different prompts."""
    prompts = [[get_comparable_content(message) for message in side.prompt] for side in (first, second)]
    if prompts[0] != prompts[1]:
        raise LeftOut("sides with different prompts")


def require_answerable(prompt: Sequence[Message]) -> None:
    """Raise LeftOut if a model does not answer next: trainers expect the assistant after the prompt."""
    if not prompt or prompt[-1].get("role") not in ("user", "tool"):
        raise LeftOut("a prompt that does not end with a user's message or a tool's result")


def prompt_text(messages: Sequence[Message]) -> str:
    """Return a prompt as one text, with empty lines between messages. Raises LeftOut for conversations and images."""
    if any(message.get("role") in ("assistant", "tool") for message in messages):
        raise LeftOut(_CONVERSATION)
    return "\n\n".join(map(_plain_text, messages))


def completion_text(messages: Sequence[Message]) -> str:
    """Return the single answer without reasoning. Raises LeftOut for conversations and tool calls."""
    if len(messages) != 1 or messages[0].get("tool_calls"):
        raise LeftOut(_CONVERSATION)
    return _plain_text(trainable(messages)[0])


def _plain_text(message: Message) -> str:
    """Return the text of a message. Raises LeftOut if it has other parts."""
    if parts_without_text(message):
        raise LeftOut(_OTHER_PARTS)
    return text_of(message)


def trainable(messages: Sequence[Message]) -> list[Message]:
    """Return messages as models are trained on them: without reasoning and without keys of providers.

    Raises LeftOut if an answer contains only reasoning.
    """
    found = []
    for message in messages:
        plain = remove_reasoning(plain_message(message))
        if text_of(message) and not text_of(plain) and not plain.get("tool_calls"):
            raise LeftOut("an answer that contains only reasoning")
        found.append(plain)
    return found


def tools_of(preference: Preference) -> list[Tool]:
    """Return the tools offered to both sides; empty if only the code of the environment defines them."""
    return get_offered_tools(preference.version, preference.case) or []
