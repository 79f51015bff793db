"""Base of `tools` and `code_repair`: runs tool calls until the model answers without one or a limit is reached."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypedDict, TypeVar, cast

from pydantic import Field

from hub.harnesses.base import EpisodeContext, Harness, HarnessOptions, Limit, Turn
from hub.harnesses.steps.tool_calls import (
    CallResult,
    ParsedCall,
    Protocol,
    as_native,
    describe_tools,
    native_calls,
    result_messages,
    text_calls,
    unreadable_call_message,
    without_tool_results,
)
from hub.harnesses.steps.user_turns import Dialogue, UserOptions, open_conversation, user_is_done, user_turn
from hub.protocols.messages import JSON, Message, Tool, text_of


class ToolLoopOptions(HarnessOptions):
    """Options of `tools` and `code_repair`. `system` and `prompt` are those of single_turn.

    Limits: `max_turns` assistant messages and `max_calls` calls in an episode, `call_seconds` for one call,
    `tool_seconds` for all calls together.
    """

    system: str | None = None
    prompt: str | list[dict[str, JSON]] = "{{ input }}"
    protocol: Protocol = "native"
    max_turns: Annotated[int, Field(ge=1, le=1000)] = 30
    max_calls: Annotated[int, Field(ge=1, le=10_000)] = 100
    call_seconds: Annotated[float, Field(ge=0.1, le=600)] = 10.0
    tool_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 120.0


LoopOptionsT = TypeVar("LoopOptionsT", bound=ToolLoopOptions)


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """Result of one call: the text for the model, the environment's state after it, and the time it took."""

    content: str
    world: JSON
    wall_ms: float = 0.0


class ToolLoopState(TypedDict):
    """State of the harness between two steps. `world` is the environment's own state."""

    world: JSON
    turns: int
    calls: int
    tool_ms: int
    dialogue: Dialogue


class ToolLoop(Harness[LoopOptionsT]):
    """Tool loop. A subclass defines the tools, the initial state and the effect of a call on it."""

    offers_tools = True

    @abstractmethod
    def list_tools(self, context: EpisodeContext[LoopOptionsT]) -> list[Tool]:
        """Return the tools of this case."""

    @abstractmethod
    async def initial_state(self, context: EpisodeContext[LoopOptionsT]) -> JSON:
        """Return the environment's state at the start. Raises HarnessError."""

    @abstractmethod
    async def execute_call(self, context: EpisodeContext[LoopOptionsT], world: JSON, call: ParsedCall) -> CallOutcome:
        """Carry out *call*. A mistake of the model is reported to it as a result. Raises HarnessError."""

    def user(self, options: LoopOptionsT) -> UserOptions | None:
        """Return the options of the user that answers the model; None if there is none."""
        return None

    async def reset(self, context: EpisodeContext[LoopOptionsT]) -> Turn:
        options = context.options
        tools = self.list_tools(context)
        messages, dialogue = await open_conversation(context, self.user(options), options.system, options.prompt)
        state = {"world": await self.initial_state(context), "turns": 0, "calls": 0, "tool_ms": 0, "dialogue": dialogue}
        if options.protocol == "text":
            return Turn(state=state, messages=_with_description(messages, tools))
        return Turn(state=state, messages=messages, tools=tools)

    async def step(self, context: EpisodeContext[LoopOptionsT], state: JSON, message: Message) -> Turn:
        options = context.options
        before = cast(ToolLoopState, state)
        current: ToolLoopState = {**before, "turns": before["turns"] + 1}
        calls, problem = _calls(message, options.protocol)
        if problem:
            turn = Turn(state=current, messages=[unreadable_call_message(problem)], info={"unreadable": problem})
        elif calls:
            turn = await self._execute_calls(context, current, calls)
        else:
            return await self._continue_dialogue(context, current, message)
        limit: Limit | None = turn.limit or ("max_turns" if current["turns"] >= options.max_turns else None)
        if limit is None:
            return turn
        return replace(turn, done=True, truncated=True, limit=limit)

    async def _execute_calls(
        self, context: EpisodeContext[LoopOptionsT], state: ToolLoopState, calls: Sequence[ParsedCall]
    ) -> Turn:
        """Make *calls* in order.

        Each changes the state that the one before it left. Calls beyond a limit are not made.
        """
        options = context.options
        results: list[CallResult] = []
        limit: Limit | None = None
        for call in calls:
            if limit is None and state["calls"] >= options.max_calls:
                limit = "max_calls"
            elif limit is None and state["tool_ms"] >= options.tool_seconds * 1000:
                limit = "tool_seconds"
            if limit is not None:
                results.append(_not_called(call, limit))
                continue
            outcome = await self.execute_call(context, state["world"], call)
            state = {
                **state,
                "world": outcome.world,
                "calls": state["calls"] + 1,
                "tool_ms": state["tool_ms"] + round(outcome.wall_ms),
            }
            results.append(CallResult(call, outcome.content))
        return Turn(state=state, messages=result_messages(results, options.protocol), limit=limit)

    async def _continue_dialogue(
        self, context: EpisodeContext[LoopOptionsT], state: ToolLoopState, message: Message
    ) -> Turn:
        """Return the user's next message after one of the model without calls, or the end of the episode."""
        options = context.options
        user = self.user(options)
        if user_is_done(user, state["dialogue"]):
            return Turn(state=state, done=True)
        if state["turns"] >= options.max_turns:
            return Turn(state=state, done=True, truncated=True, limit="max_turns")
        said = await user_turn(context, user, state["dialogue"], message)
        state = {**state, "dialogue": said.dialogue}
        return Turn(state=state, messages=[said.message] if said.message else [], done=said.over)

    def static_tools(self, context: EpisodeContext[LoopOptionsT]) -> list[Tool] | None:
        return [] if context.options.protocol == "text" else self.list_tools(context)

    def scored_state(self, state: JSON) -> JSON:
        return cast(ToolLoopState, state)["world"]

    def transcript(self, options: LoopOptionsT, messages: list[Message]) -> list[Message]:
        return as_native(messages) if options.protocol == "text" else messages

    def dialogue(self, options: LoopOptionsT, messages: list[Message]) -> list[Message]:
        return without_tool_results(messages) if options.protocol == "text" else messages


def _calls(message: Message, protocol: Protocol) -> tuple[list[ParsedCall], str]:
    if protocol == "native":
        return native_calls(message), ""
    return text_calls(text_of(message))


def _not_called(call: ParsedCall, limit: Limit) -> CallResult:
    return CallResult(call, f"not called: the episode's limit {limit} is reached")


def refuse_calls(message: Message, protocol: Protocol, limit: Limit) -> list[Message]:
    """Return the results of the calls in *message*, none of which is made because *limit* is reached."""
    return result_messages([_not_called(call, limit) for call in _calls(message, protocol)[0]], protocol)


def _with_description(messages: list[Message], tools: Sequence[Tool]) -> list[Message]:
    """Return *messages* with the tools described in the system message, which is added if there is none."""
    description = describe_tools(tools)
    if messages and messages[0]["role"] == "system" and isinstance(messages[0]["content"], str):
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{description}"}, *messages[1:]]
    return [{"role": "system", "content": description}, *messages]
