"""The `single_turn` harness: one prompt, one answer."""

from collections.abc import Mapping, Sequence
from typing import cast

from hub.harnesses.base import EpisodeContext, Harness, HarnessOptions, Turn
from hub.protocols.messages import JSON, Message


class SingleTurnOptions(HarnessOptions):
    """Options of `single_turn`.

    `system`: an optional system message. `prompt`: the user's message or chat messages; by default the input.
    """

    system: str | None = None
    prompt: str | list[dict[str, JSON]] = "{{ input }}"


def opening_messages(system: str | None, prompt: str | Sequence[Mapping[str, JSON]]) -> list[Message]:
    """Return the first messages of a conversation: the system message, if there is one, then the prompt."""
    first: list[Message] = [{"role": "system", "content": system}] if system else []
    if isinstance(prompt, str):
        return [*first, {"role": "user", "content": prompt}]
    return first + [cast(Message, dict(message)) for message in prompt]


class SingleTurn(Harness[SingleTurnOptions]):
    type = "single_turn"
    summary = "One prompt, one answer."
    Options = SingleTurnOptions

    async def reset(self, context: EpisodeContext[SingleTurnOptions]) -> Turn:
        options = context.options
        return Turn(messages=opening_messages(options.system, options.prompt))

    async def step(self, context: EpisodeContext[SingleTurnOptions], state: JSON, message: Message) -> Turn:
        return Turn(done=True)
