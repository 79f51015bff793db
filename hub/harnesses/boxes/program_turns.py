"""`policy: program`: turns of an episode in which a program in the box requests the model."""

import json
import secrets
import time
from collections.abc import Mapping
from typing import cast

from hub.common.digests import digest
from hub.harnesses.base import EpisodeContext, HarnessError, Limit, Turn
from hub.harnesses.boxes.options import WorkspaceOptions
from hub.harnesses.boxes.state import WorkspaceState, handle_of, take_refusals
from hub.harnesses.boxes.tools import describe_result
from hub.harnesses.steps.program import Ended, ProgramState, next_request, reference_script, send_reply, start_program
from hub.harnesses.steps.tool_loop import ToolLoopState
from hub.protocols.messages import JSON, Message, text_of
from sandbox.workspaces.base import WorkspaceError, WorkspaceLost
from sandbox.workspaces.shared import get_workspaces, in_thread

_MAX_SHOWN = 2000  # characters of a parameter that is recorded; of longer ones, the digest is
_MAX_CHANGES = 100  # of the parameters in an episode that are recorded


async def begin_program(
    context: EpisodeContext[WorkspaceOptions], state: ToolLoopState, messages: list[Message]
) -> Turn:
    """Start the program and return its first request. Raises HarnessError."""
    path = context.options.program
    if path not in context.files:
        raise HarnessError(f"The bundle has no program {path!r}.")
    engine, handle = get_workspaces(), handle_of(cast(WorkspaceState, state["world"]))
    program: ProgramState = {
        "token": secrets.token_urlsafe(24),
        "request": 0,
        "said": [],
        "tools": False,
        "bytes": 0,
    }
    instruction = "\n\n".join(text_of(message) for message in messages)
    try:
        await in_thread(start_program, engine, handle, path, context.files, instruction, program["token"])
        turn = await _program_turn(context, state, program)
    except WorkspaceLost:
        raise
    except WorkspaceError as error:
        raise HarnessError(f"The program could not be started: {error}.", temporary=True) from None
    if turn.done:
        raise HarnessError(_without_request(path, turn), temporary=turn.truncated)
    return turn


def _without_request(path: str, turn: Turn) -> str:
    """Return the message about a program that has made no valid request before *turn*, its end."""
    info = turn.info
    refused = "".join(
        f"\n[connection refused: {reason}]" for reason in cast(list[str], info.get("connections_refused", []))
    )
    if turn.limit:
        return f"{path} made no valid request to the model before the limit {turn.limit} was reached.{refused}"
    code, output = info["exit_code"], str(info["output"]).strip() or "It wrote no output."
    ended = "ended" if code is None else f"ended with exit code {code}"
    return f"{path} {ended} before its first valid request to the model: {output}{refused}"


async def continue_program(context: EpisodeContext[WorkspaceOptions], state: ToolLoopState, message: Message) -> Turn:
    """Pass the model's *message* to the program and return its next request, or the end of the episode."""
    engine, handle = get_workspaces(), handle_of(cast(WorkspaceState, state["world"]))
    current: ToolLoopState = {**state, "turns": state["turns"] + 1}
    script = reference_script(message)
    if script:
        result = await in_thread(engine.execute, handle, script, context.options.call_seconds)
        return Turn(state=current, done=True, info={"reference_answer": describe_result(result)[-2000:]})
    if current["turns"] >= context.options.max_turns:
        return Turn(state=current, done=True, truncated=True, limit="max_turns")
    try:
        program = await in_thread(send_reply, engine, handle, _program_of(state), message, context.reply)
        return await _program_turn(context, current, program)
    except WorkspaceLost:
        raise
    except WorkspaceError as error:  # what the program did to its box decides whether it can be continued
        return Turn(state=current, done=True, info={"error": str(error)})


async def _program_turn(context: EpisodeContext[WorkspaceOptions], state: ToolLoopState, program: ProgramState) -> Turn:
    started, spent = time.monotonic(), state["tool_ms"]
    ends: dict[Limit, float] = {
        "tool_seconds": time.time() + context.options.tool_seconds - spent / 1000,
        "episode_s": cast(WorkspaceState, state["world"])["ends_at"],
    }
    limit = min(ends, key=lambda name: ends[name])
    engine, handle = get_workspaces(), handle_of(cast(WorkspaceState, state["world"]))
    found = await in_thread(next_request, engine, handle, program, ends[limit], limit)
    took = (time.monotonic() - started) * 1000
    context.services.record_call_ms(took)
    world, refused = await in_thread(take_refusals, engine, cast(WorkspaceState, state["world"]))
    after: dict[str, JSON] = {**state, "world": cast(JSON, world), "tool_ms": spent + round(took)}
    info: dict[str, JSON] = {"connections_refused": cast(JSON, refused)} if refused else {}
    if isinstance(found, Ended):
        return Turn(
            state=after, done=True, truncated=bool(found.limit), limit=found.limit, info={**info, **found.info()}
        )
    if found.new:
        info["new_conversation"] = True
    after["program"] = found.state
    after["world"] = cast(JSON, _with_parameters(world, state["turns"] + 1, found.parameters))
    return Turn(
        state=after,
        messages=found.messages,
        tools=found.tools,
        parameters=found.parameters,
        new_conversation=found.new,
        info=info,
    )


def _with_parameters(world: WorkspaceState, turn: int, parameters: dict[str, JSON]) -> WorkspaceState:
    """Return *world* with the parameters of a request, if they differ from those before. Large ones are digests."""
    short = {name: _shortened(value) for name, value in parameters.items()}
    before = world.get("parameters", [])
    if short == (before[-1]["parameters"] if before else {}) or len(before) >= _MAX_CHANGES:
        return world
    return {**world, "parameters": [*before, {"turn": turn, "parameters": short}]}


def _shortened(value: JSON) -> JSON:
    return value if len(json.dumps(value)) <= _MAX_SHOWN else f"sha256:{digest(value)}"


def _program_of(state: ToolLoopState) -> ProgramState:
    return cast(ProgramState, cast(Mapping[str, JSON], state)["program"])
