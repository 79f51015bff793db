"""The `multi_turn` harness: a conversation with a user who follows a script or is played by a model."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from hub.harnesses.base import Harness, HarnessOptions, Play, Turn
from hub.harnesses.user_turns import UserOptions, exhausted, open_conversation, user_roles, user_turn
from hub.protocols.calls import JSON, Message


class MultiTurnOptions(HarnessOptions):
    """`system` and `prompt` open as in single_turn; an empty prompt lets the user. `max_turns`: assistant messages."""

    system: str | None = None
    prompt: str | list[dict[str, Any]] = "{{ input }}"
    user: UserOptions
    max_turns: Annotated[int, Field(ge=1, le=1000)] = 20


class MultiTurn(Harness):
    type = "multi_turn"
    summary = "A conversation; the user follows a script or is played by a model."
    Options = MultiTurnOptions

    async def reset(self, play: Play) -> Turn:
        options: MultiTurnOptions = play.options
        messages, dialogue = await open_conversation(play, options.user, options.system, options.prompt)
        return Turn(state={"turns": 0, "dialogue": dialogue}, messages=messages)

    async def step(self, play: Play, state: JSON, message: Message) -> Turn:
        options: MultiTurnOptions = play.options
        turns = state["turns"] + 1
        if exhausted(options.user, state["dialogue"]):
            return Turn(state={**state, "turns": turns}, done=True)
        if turns >= options.max_turns:
            return Turn(state={**state, "turns": turns}, done=True, truncated=True, info={"limit": "max_turns"})
        said = await user_turn(play, options.user, state["dialogue"], message)
        return Turn(
            state={"turns": turns, "dialogue": said.dialogue},
            messages=[said.message] if said.message else [],
            done=said.over,
        )

    def world(self, state: JSON) -> JSON:
        return None

    def roles(self, options: Mapping[str, Any]) -> list[str]:
        return user_roles(options)
