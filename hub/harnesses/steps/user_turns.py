"""The user's side of a conversation: a script, or a model that simulates a person."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Required, Self, TypedDict

from pydantic import model_validator

from hub import extraction
from hub.harnesses.base import EpisodeContext, HarnessError, HarnessOptions
from hub.harnesses.single_turn import opening_messages
from hub.protocols.messages import JSON, Message, text_of

# Endpoints require that a conversation begins with a user message. For a simulated user the two roles are exchanged.
_BEGIN = "The conversation begins. Write your messages only, one at a time."


class UserOptions(HarnessOptions):
    """Options of the user. Scripted: `turns`, a list of texts. Simulated: `role` names a model of the run, `prompt`
    is its system prompt, and a message that contains `stop` ends the conversation.
    """

    turns: list[str] | None = None
    role: str | None = None
    prompt: str | None = None
    stop: str = "###"

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        simulated = self.role is not None and self.prompt is not None
        if (self.turns is not None) == simulated or (not simulated and (self.role or self.prompt)):
            raise ValueError("give either `turns` (a script), or `role` and `prompt` (a model plays the user)")
        if not self.stop:
            raise ValueError("`stop` is empty; give the word with which the simulated user ends the conversation")
        return self

    @property
    def scripted(self) -> bool:
        return self.turns is not None


def user_roles(options: Mapping[str, object]) -> list[str]:
    """Return the role of the simulated user in the raw harness *options*, in a list."""
    user = options.get("user")
    role = user.get("role") if isinstance(user, dict) else None
    return [role] if isinstance(role, str) else []


class Dialogue(TypedDict, total=False):
    """State of the user: the number of turns, and the conversation as a simulated user sees it."""

    turn: Required[int]
    said: list[list[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class UserTurn:
    """Next turn of the user: the `message` to add, if any; `over` if the conversation ends."""

    message: Message | None
    over: bool
    dialogue: Dialogue


async def open_conversation(
    context: EpisodeContext[HarnessOptions],
    user: UserOptions | None,
    system: str | None,
    prompt: str | Sequence[Mapping[str, JSON]],
) -> tuple[list[Message], Dialogue]:
    """Return the first messages and the JSON state of the user. With an empty prompt the user begins.

    The state has the number of turns and the conversation as a simulated user sees it.

    Raises HarnessError, ModelError.
    """
    messages = opening_messages(system, prompt or [])
    dialogue: Dialogue = {"turn": 0}
    if user is not None and not user.scripted:
        dialogue["said"] = [spoken for message in messages for spoken in _dialogue_lines(message)]
    if prompt:
        return messages, dialogue
    said = await user_turn(context, user, dialogue, None)
    if said.message is None:
        if user is not None and not user.scripted:
            raise HarnessError(
                f"The model of role {user.role!r}, which simulates the user, ended the conversation with its first "
                f"message: it begins with {user.stop!r}.",
                temporary=True,
            )
        raise HarnessError(
            "The conversation has no first message: the prompt and the user's first turn are empty. Set `prompt`."
        )
    return [*messages, said.message], said.dialogue


def user_is_done(options: UserOptions | None, dialogue: Dialogue) -> bool:
    """Return whether the user has no further turn; for a simulated user only its model can decide that."""
    return options is None or (options.turns is not None and dialogue["turn"] >= len(options.turns))


async def user_turn(
    context: EpisodeContext[HarnessOptions], options: UserOptions | None, dialogue: Dialogue, heard: Message | None
) -> UserTurn:
    """Return the user's answer to the assistant's message *heard*; with None, the user begins.

    Raises HarnessError, ModelError.
    """
    if options is None or user_is_done(options, dialogue):
        return UserTurn(None, True, dialogue)
    turn = dialogue["turn"]
    if options.turns is not None:
        return UserTurn({"role": "user", "content": options.turns[turn]}, False, {"turn": turn + 1})
    said = [*dialogue["said"], *(_dialogue_lines(heard) if heard else [])]
    text = await _simulate(context, options, said, turn)
    words, stop, _ = text.partition(options.stop)
    words = words.strip()
    message: Message | None = {"role": "user", "content": words} if words else None
    spoken = [["user", words]] if words else []
    return UserTurn(message, bool(stop), {"turn": turn + 1, "said": said + spoken})


def simulated_text(message: Message) -> str:
    """Return what a model that simulates the user says: its text without reasoning. "" is an error of the model."""
    return extraction.without_reasoning(text_of(message)).strip()


async def _simulate(
    context: EpisodeContext[HarnessOptions], options: UserOptions, said: list[list[str]], turn: int
) -> str:
    if context.services.call_model is None:
        raise HarnessError(
            "This environment's user is simulated by a model, but its episode has none. Name one under `roles`."
        )
    key = dataclasses.replace(context.key, purpose="user", role=options.role or "", turn=turn)
    reply = await context.services.call_model(key, _swap_roles(options.prompt or "", said))
    text = simulated_text(reply.message)
    if not text:
        raise HarnessError(
            f"The model of role {options.role!r}, which simulates the user, gave an empty reply at turn {turn}.",
            temporary=True,
        )
    return text


def _swap_roles(prompt: str, said: list[list[str]]) -> list[Message]:
    """Return the conversation for the simulated user's model: its own messages have the role assistant."""
    turned: list[Message] = [{"role": "system", "content": prompt}, {"role": "user", "content": _BEGIN}]
    for role, text in said:
        turned.append({"role": "assistant" if role == "user" else "user", "content": text})
    return turned


def _dialogue_lines(message: Message) -> list[list[str]]:
    """Return the role and text that a message adds for the user, in a list; empty for system and tool messages.

    The reasoning of the model is left out, as a person would not see it.
    """
    text = text_of(message)
    if message["role"] == "assistant":
        text = extraction.without_reasoning(text)
    return [[message["role"], text]] if message["role"] in ("user", "assistant") and text else []
