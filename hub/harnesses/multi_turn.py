"""The `multi_turn` harness: a conversation with a user that is scripted or simulated by a model."""

from collections.abc import Mapping
from typing import Annotated, TypedDict, cast

from pydantic import Field

from hub.harnesses.base import EpisodeContext, Harness, HarnessOptions, Turn
from hub.harnesses.steps.user_turns import Dialogue, UserOptions, open_conversation, user_is_done, user_roles, user_turn
from hub.protocols.messages import JSON, Message


class MultiTurnOptions(HarnessOptions):
    """Options of `multi_turn`.

    `system` and `prompt` are those of single_turn; with an empty prompt the user begins. `max_turns` is the limit of
    assistant messages.
    """

    system: str | None = None
    prompt: str | list[dict[str, JSON]] = "{{ input }}"
    user: UserOptions
    max_turns: Annotated[int, Field(ge=1, le=1000)] = 20


class MultiTurnState(TypedDict):
    """State of the harness between two steps."""

    turns: int
    dialogue: Dialogue


class MultiTurn(Harness[MultiTurnOptions]):
    type = "multi_turn"
    summary = "A conversation with a user that is scripted or simulated by a model."
    Options = MultiTurnOptions

    async def reset(self, context: EpisodeContext[MultiTurnOptions]) -> Turn:
        options = context.options
        messages, dialogue = await open_conversation(context, options.user, options.system, options.prompt)
        return Turn(state={"turns": 0, "dialogue": dialogue}, messages=messages)

    async def step(self, context: EpisodeContext[MultiTurnOptions], state: JSON, message: Message) -> Turn:
        options = context.options
        before = cast(MultiTurnState, state)
        turns, dialogue = before["turns"] + 1, before["dialogue"]
        if user_is_done(options.user, dialogue):
            return Turn(state={**before, "turns": turns}, done=True)
        if turns >= options.max_turns:
            return Turn(state={**before, "turns": turns}, done=True, truncated=True, limit="max_turns")
        said = await user_turn(context, options.user, dialogue, message)
        return Turn(
            state={"turns": turns, "dialogue": said.dialogue},
            messages=[said.message] if said.message else [],
            done=said.over,
        )

    def scored_state(self, state: JSON) -> JSON:
        return None

    def roles(self, options: Mapping[str, object]) -> list[str]:
        return user_roles(options)
