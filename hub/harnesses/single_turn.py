"""The `single_turn` harness: one prompt, one answer."""

from typing import Any

from hub.harnesses.base import Harness, HarnessOptions, Play, Turn
from hub.protocols.calls import JSON, Message


class SingleTurnOptions(HarnessOptions):
    """`system`: an optional system message. `prompt`: the user's message, or chat messages; default the input."""

    system: str | None = None
    prompt: str | list[dict[str, Any]] = "{{ input }}"


def opening(system: str | None, prompt: str | list[Message]) -> list[Message]:
    """The messages that open a conversation: the system's, where there is one, then the prompt's."""
    first: list[Message] = [{"role": "system", "content": system}] if system else []
    return first + ([{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt))


class SingleTurn(Harness):
    type = "single_turn"
    summary = "One prompt, one answer."
    Options = SingleTurnOptions

    async def reset(self, play: Play) -> Turn:
        options: SingleTurnOptions = play.options
        return Turn(messages=opening(options.system, options.prompt))

    async def step(self, play: Play, state: JSON, message: Message) -> Turn:
        return Turn(done=True)
