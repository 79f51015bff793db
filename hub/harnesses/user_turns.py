"""Who speaks for the user after the opening: a script, or a model that plays a person."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

from pydantic import model_validator

from hub import extraction
from hub.harnesses.base import HarnessError, HarnessOptions, Play
from hub.harnesses.single_turn import opening
from hub.protocols.calls import JSON, Message

# Endpoints want a conversation to begin with a user message, and for a simulated user the roles are turned round.
_BEGIN = "The conversation begins. Write your messages only, one at a time."


class UserOptions(HarnessOptions):
    """Scripted: `turns`, a list of texts. Simulated: `role` names a model of the run, `prompt` tells it whom to play,
    and a message that contains `stop` ends the conversation."""

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


def user_roles(options: Mapping[str, Any]) -> list[str]:
    """The role that the raw harness *options* give to a simulated user."""
    user = options.get("user")
    role = user.get("role") if isinstance(user, dict) else None
    return [role] if isinstance(role, str) else []


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """What the user does next: `message` to add, if any; `over` where nothing more is to be answered."""

    message: Message | None
    over: bool
    dialogue: dict[str, JSON]


async def open_conversation(
    play: Play, user: UserOptions | None, system: str | None, prompt: str | list[Message]
) -> tuple[list[Message], dict[str, JSON]]:
    """The first messages, and the JSON that the user's side keeps. With an empty prompt it is the user who opens.

    That JSON counts the turns spoken and holds what a simulated user has heard. Raises HarnessError, ModelError.
    """
    messages = opening(system, prompt or [])
    dialogue: dict[str, JSON] = {"turn": 0}
    if user is not None and not user.scripted:
        dialogue["said"] = [spoken for message in messages for spoken in _spoken(message)]
    if prompt:
        return messages, dialogue
    said = await user_turn(play, user, dialogue, None)
    if said.message is None:
        raise HarnessError("Nobody opens the conversation: the prompt is empty, and so is the user's first turn.")
    return [*messages, said.message], said.dialogue


def exhausted(options: UserOptions | None, dialogue: dict[str, JSON]) -> bool:
    """Whether it is certain, without asking anybody, that the user has nothing more to say."""
    return options is None or (options.turns is not None and dialogue["turn"] >= len(options.turns))


async def user_turn(play: Play, options: UserOptions | None, dialogue: dict[str, JSON], heard: Message | None) -> Said:
    """The user's answer to the assistant's message *heard* (None: to open). Raises HarnessError, ModelError."""
    if options is None or exhausted(options, dialogue):
        return Said(None, True, dialogue)
    turn = dialogue["turn"]
    if options.turns is not None:
        return Said({"role": "user", "content": options.turns[turn]}, False, {"turn": turn + 1})
    said = [*dialogue["said"], *(_spoken(heard) if heard else [])]
    text = await _simulate(play, options, said, turn)
    words, stop, _ = text.partition(options.stop)
    words = words.strip()
    message: Message | None = {"role": "user", "content": words} if words else None
    spoken = [["user", words]] if words else []
    return Said(message, bool(stop), {"turn": turn + 1, "said": said + spoken})


async def _simulate(play: Play, options: UserOptions, said: list[list[str]], turn: int) -> str:
    if play.services.ask is None:
        raise HarnessError("This environment's user is played by a model, and no model was given to its episode.")
    key = dataclasses.replace(play.key, purpose="user", role=options.role or "", turn=turn)
    reply = await play.services.ask(key, _turned_round(options.prompt or "", said))
    text = extraction.without_reasoning(_text(reply.message)).strip()
    if not text:
        raise HarnessError(f"The model of role {options.role!r}, who plays the user, said nothing at turn {turn}.")
    return text


def _turned_round(prompt: str, said: list[list[str]]) -> list[Message]:
    """The conversation as the simulated user's model sees it: its own words are the assistant's."""
    turned: list[Message] = [{"role": "system", "content": prompt}, {"role": "user", "content": _BEGIN}]
    for role, text in said:
        turned.append({"role": "assistant" if role == "user" else "user", "content": text})
    return turned


def _spoken(message: Message) -> list[list[str]]:
    """What a message adds to the conversation as the user hears it: nothing for system and tool messages."""
    text = _text(message)
    return [[message["role"], text]] if message["role"] in ("user", "assistant") and text else []


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""
