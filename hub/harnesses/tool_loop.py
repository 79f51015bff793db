"""What `tools` and `code_repair` share: calls in, answers out, until the model just speaks or a limit is reached."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from hub.harnesses.base import Harness, HarnessOptions, Play, Turn
from hub.harnesses.tool_calls import (
    Answer,
    Call,
    Protocol,
    answer_messages,
    as_native,
    describe_tools,
    mend_message,
    native_calls,
    text_calls,
    without_answers,
)
from hub.harnesses.user_turns import UserOptions, exhausted, open_conversation, user_turn
from hub.protocols.calls import JSON, Message, Tool


class ToolLoopOptions(HarnessOptions):
    """`system` and `prompt` open as in single_turn. `protocol: text` is for models without native tool calling.

    Limits: `max_turns` assistant messages and `max_calls` calls in an episode, `call_seconds` for one call,
    `tool_seconds` for all calls together.
    """

    system: str | None = None
    prompt: str | list[dict[str, Any]] = "{{ input }}"
    protocol: Protocol = "native"
    max_turns: Annotated[int, Field(ge=1, le=1000)] = 30
    max_calls: Annotated[int, Field(ge=1, le=10_000)] = 100
    call_seconds: Annotated[float, Field(ge=0.1, le=600)] = 10.0
    tool_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 120.0


@dataclass(frozen=True, slots=True)
class Acted:
    """What one call came to: the text for the model, the world it left, and the time it took."""

    content: str
    world: JSON
    wall_ms: float = 0.0


class ToolLoop(Harness):
    """The loop. A subclass says which tools there are, how a world begins and what a call does to it."""

    offers_tools = True

    @abstractmethod
    def offered(self, play: Play) -> list[Tool]:
        """The tools of this case."""

    @abstractmethod
    async def begin(self, play: Play) -> JSON:
        """The world at the start. Raises HarnessError."""

    @abstractmethod
    async def act(self, play: Play, world: JSON, call: Call) -> Acted:
        """Do what *call* asks. A mistake of the model is an answer like any other. Raises HarnessError."""

    def user(self, options: Any) -> UserOptions | None:
        """Who speaks after the opening, where anybody does."""
        return None

    async def reset(self, play: Play) -> Turn:
        options: ToolLoopOptions = play.options
        tools = self.offered(play)
        messages, dialogue = await open_conversation(play, self.user(options), options.system, options.prompt)
        state = {"world": await self.begin(play), "turns": 0, "calls": 0, "tool_ms": 0, "dialogue": dialogue}
        if options.protocol == "text":
            return Turn(state=state, messages=_with_description(messages, tools))
        return Turn(state=state, messages=messages, tools=tools)

    async def step(self, play: Play, state: JSON, message: Message) -> Turn:
        options: ToolLoopOptions = play.options
        state = {**state, "turns": state["turns"] + 1}
        calls, problem = _calls(message, options.protocol)
        if problem:
            turn = Turn(state=state, messages=[mend_message(problem)], info={"unreadable": problem})
        elif calls:
            turn = await self._act_all(play, state, calls)
        else:
            return await self._spoken(play, state, message)
        limit = turn.info.get("limit") or ("max_turns" if state["turns"] >= options.max_turns else None)
        if limit is None:
            return turn
        return Turn(
            state=turn.state, messages=turn.messages, done=True, truncated=True, info={**turn.info, "limit": limit}
        )

    async def _act_all(self, play: Play, state: dict[str, JSON], calls: Sequence[Call]) -> Turn:
        """Make *calls* in order, each in the world that the one before it left; those beyond a limit are not made."""
        options: ToolLoopOptions = play.options
        answers, limit = [], None
        for call in calls:
            if limit is None and state["calls"] >= options.max_calls:
                limit = "max_calls"
            elif limit is None and state["tool_ms"] >= options.tool_seconds * 1000:
                limit = "tool_seconds"
            if limit is not None:
                answers.append(Answer(call, f"not called: the episode's limit {limit} is reached"))
                continue
            acted = await self.act(play, state["world"], call)
            state = {
                **state,
                "world": acted.world,
                "calls": state["calls"] + 1,
                "tool_ms": state["tool_ms"] + round(acted.wall_ms),
            }
            answers.append(Answer(call, acted.content))
        info: dict[str, JSON] = {"limit": limit} if limit else {}
        return Turn(state=state, messages=answer_messages(answers, options.protocol), info=info)

    async def _spoken(self, play: Play, state: dict[str, JSON], message: Message) -> Turn:
        """The model spoke to the user: the user's next turn, or the end."""
        options: ToolLoopOptions = play.options
        user = self.user(options)
        if exhausted(user, state["dialogue"]):
            return Turn(state=state, done=True)
        if state["turns"] >= options.max_turns:
            return Turn(state=state, done=True, truncated=True, info={"limit": "max_turns"})
        said = await user_turn(play, user, state["dialogue"], message)
        state = {**state, "dialogue": said.dialogue}
        return Turn(state=state, messages=[said.message] if said.message else [], done=said.over)

    def static_tools(self, play: Play) -> list[Tool] | None:
        return [] if play.options.protocol == "text" else self.offered(play)

    def world(self, state: JSON) -> JSON:
        return state["world"]

    def transcript(self, options: Any, messages: list[Message]) -> list[Message]:
        return as_native(messages) if options.protocol == "text" else messages

    def dialogue(self, options: Any, messages: list[Message]) -> list[Message]:
        return without_answers(messages) if options.protocol == "text" else messages


def _calls(message: Message, protocol: Protocol) -> tuple[list[Call], str]:
    if protocol == "native":
        return native_calls(message), ""
    content = message.get("content")
    return text_calls(content if isinstance(content, str) else "")


def _with_description(messages: list[Message], tools: Sequence[Tool]) -> list[Message]:
    """*messages* with the text protocol's description in their system message, which is added where there is none."""
    description = describe_tools(tools)
    if messages and messages[0]["role"] == "system" and isinstance(messages[0]["content"], str):
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{description}"}, *messages[1:]]
    return [{"role": "system", "content": description}, *messages]
