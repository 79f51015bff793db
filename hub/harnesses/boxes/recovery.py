"""Snapshots of an episode's box, and a new box after it was lost.

The new box has the files of the latest snapshot, or is prepared like the first one. The calls since then are repeated,
and a call whose result differs is marked in the transcript.
"""

import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import cast

from hub.harnesses.base import EpisodeContext
from hub.harnesses.boxes.options import WorkspaceOptions
from hub.harnesses.boxes.preparation import box_spec, built_image, open_prepared
from hub.harnesses.boxes.state import Box, Divergence, Restoration, SnapshotState, WorkspaceState, handle_of
from hub.harnesses.steps.tool_calls import CallResult, ParsedCall, native_calls, result_messages, text_calls
from hub.harnesses.steps.tool_loop import CallOutcome, ToolLoopState
from hub.protocols.messages import JSON, Message, text_of
from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import BoxSpec, Handle, ServiceFailed, WorkspaceError, WorkspaceLost
from sandbox.workspaces.shared import get_workspaces, in_thread, open_in_thread
from sandbox.workspaces.snapshots import SnapshotMissing, open_saved, remove_snapshots, save_snapshot

logger = logging.getLogger(__name__)

MAX_RESTORATIONS = 10  # of one episode; a model could otherwise make its box end at each turn
_SHOWN = 20  # divergences that are described
_SHOWN_CHARS = 300
_NOTE = re.compile(r"\n\[The box was lost and opened again[^\]]*\]")
_TIMES = re.compile(r"\[(exit code \d+, |timed out and was killed after )\d+\.\d+ s\]")

ExecuteCall = Callable[[EpisodeContext[WorkspaceOptions], JSON, ParsedCall], Awaitable[CallOutcome]]
Context = EpisodeContext[WorkspaceOptions]


# ---- snapshots -------------------------------------------------------------------------------------------------------


def wants_snapshot(context: Context, state: ToolLoopState) -> bool:
    """Return whether the box of *state* is stored after this turn."""
    turns = context.options.snapshot_turns
    return bool(turns and context.services.snapshots) and state["turns"] % turns == 0


async def take_snapshot(context: Context, state: ToolLoopState) -> ToolLoopState:
    """Return *state* with a snapshot of its box. If none can be taken, log why, and return *state* as it is."""
    world, folder = cast(WorkspaceState, state["world"]), context.services.snapshots
    earlier = world.get("snapshot")
    if not folder or (earlier is not None and earlier["turns"] == state["turns"]):
        return state
    limit = context.options.limits.snapshot_mb
    try:
        facts = await in_thread(save_snapshot, get_workspaces(), handle_of(world), world["workdir"], folder, limit)
        if earlier is not None and earlier["before"] not in ("", earlier["digest"], facts.digest):
            await in_thread(remove_snapshots, folder, earlier["before"])
    except WorkspaceLost:
        return state  # the next call opens another box
    except Exception as error:  # of the box (limits) or the storage; the episode continues without this snapshot
        logger.warning("no snapshot of %s after turn %d: %s", folder, state["turns"], error)
        return state
    snapshot: SnapshotState = {
        "digest": facts.digest,
        "before": earlier["digest"] if earlier is not None else "",
        "turns": state["turns"],
        "calls": state["calls"],
        "processes": facts.processes,
    }
    return {**state, "world": cast(JSON, {**world, "snapshot": snapshot})}


# ---- a new box -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _NewBox:
    """A new box, and the snapshot that it has; None if it was prepared like the first one."""

    handle: Handle
    snapshot: SnapshotState | None


async def restore(context: Context, state: ToolLoopState, execute_call: ExecuteCall) -> ToolLoopState:
    """Return the state with a new box in place of one that is lost. Raises HarnessError, SandboxUnavailable."""
    world = cast(WorkspaceState, state["world"])
    restored = world.get("restored", [])
    if len(restored) >= MAX_RESTORATIONS:
        raise WorkspaceLost(f"The workspace was lost more than {MAX_RESTORATIONS} times.")
    engine = get_workspaces()
    await in_thread(engine.close, handle_of(world))
    left_s = max(world["ends_at"] - world.get("seen_at", time.time()), 0.0)
    opened = await _open_new_box(context, world)
    after: WorkspaceState = {**world, "box": cast(Box, asdict(opened.handle))}
    if "refusals" in world:
        after["refusals"] = 0
    try:
        calls, diverged, after = await _repeat(context, state, after, opened.snapshot, execute_call)
    except BaseException:
        await in_thread(engine.close, opened.handle)
        raise
    restoration: Restoration = {
        "turn": state["turns"],
        "from_turn": opened.snapshot["turns"] if opened.snapshot else 0,
        "repeated": calls,
        "ended": opened.snapshot["processes"] if opened.snapshot else 0,
        "diverged": diverged[:_SHOWN],
    }
    if opened.snapshot is None:
        after.pop("snapshot", None)
    now = time.time()
    after = {
        **after,
        "ends_at": now + left_s,
        "seen_at": now,
        "restored": [*restored, restoration],
        "note": _note(restoration, len(diverged)),
    }
    logger.warning(
        "the box of an episode was lost after turn %d; opened again from turn %d, %d calls repeated, %d diverged",
        restoration["turn"],
        restoration["from_turn"],
        calls,
        len(diverged),
    )
    return {**state, "world": cast(JSON, after)}


async def _open_new_box(context: Context, world: WorkspaceState) -> _NewBox:
    spec, snapshot, folder = await _spec(context, world), world.get("snapshot"), context.services.snapshots
    if snapshot is not None and folder:
        limit = context.options.limits.snapshot_mb
        try:
            engine = get_workspaces()
            handle = await open_in_thread(engine, open_saved, engine, spec, folder, snapshot["digest"], limit)
        except (WorkspaceLost, ServiceFailed):
            raise
        except (SnapshotMissing, WorkspaceError) as error:
            logger.warning("the snapshot %s of %s cannot be used: %s", snapshot["digest"], folder, error)
        else:
            return _NewBox(handle, snapshot)
    return _NewBox(await open_prepared(context, spec), None)


async def _spec(context: Context, world: WorkspaceState) -> BoxSpec:
    """Return the box to open, of the same image as the lost one. Another host may have to build the image first."""
    image = world["box"]["image"]
    if context.options.build:
        try:
            await in_thread(get_workspaces().check, image)
        except SandboxUnavailable:
            image = await in_thread(built_image, context.options, context.files)
    return box_spec(context, image, world.get("packages", ""))


async def _repeat(
    context: Context,
    state: ToolLoopState,
    world: WorkspaceState,
    snapshot: SnapshotState | None,
    execute_call: ExecuteCall,
) -> tuple[int, list[Divergence], WorkspaceState]:
    """Repeat the calls after *snapshot*.

    Return their number, those that diverged, and the environment's state after them.
    """
    # Repetitions do not use up the time of the episode.
    context = replace(context, services=replace(context.services, record_call_ms=lambda milliseconds: None))
    done_turns, done_calls = (snapshot["turns"], snapshot["calls"]) if snapshot else (0, 0)
    left, repeated = state["calls"] - done_calls, 0
    diverged: list[Divergence] = []
    for number, (message, recorded) in enumerate(_turns(context.messages, state["turns"]), start=1):
        if number <= done_turns:
            continue
        calls = native_calls(message) if context.options.protocol == "native" else text_calls(text_of(message))[0]
        results = []
        for call in calls[:left]:  # calls beyond a limit were not made
            outcome = await execute_call(context, cast(JSON, world), call)
            world = cast(WorkspaceState, outcome.world)
            results.append(CallResult(call, outcome.content))
        left -= len(results)
        repeated += len(results)
        diverged += _diverged(context, number, results, recorded)
    return repeated, diverged, world


def _turns(messages: Sequence[Message], turns: int) -> list[tuple[Message, list[Message]]]:
    """Return the last *turns* messages of the model, each with those that follow it."""
    starts = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    starts = starts[len(starts) - turns :]
    return [(messages[start], list(messages[start + 1 : end])) for start, end in pairwise([*starts, len(messages)])]


def _diverged(
    context: Context, turn: int, results: Sequence[CallResult], recorded: Sequence[Message]
) -> list[Divergence]:
    if context.options.protocol == "native":
        pairs = list(zip(results, recorded, strict=False))
    else:  # One message may have several results. Each is compared as the message that it would be on its own.
        pairs = _text_pairs(results, recorded)
    found: list[Divergence] = []
    for number, (result, message) in enumerate(pairs, start=1):
        before = comparable(text_of(message))
        after = comparable(text_of(result_messages([result], context.options.protocol)[0]))
        if before != after:
            shown = {"before": before[:_SHOWN_CHARS], "after": after[:_SHOWN_CHARS]}
            found.append({"turn": turn, "call": number, "tool": result.call.name, **shown})  # type: ignore[typeddict-item]
    return found


def _text_pairs(results: Sequence[CallResult], recorded: Sequence[Message]) -> list[tuple[CallResult, Message]]:
    blocks = text_of(recorded[0]).split("\n\n") if recorded else []
    return [
        (result, cast(Message, {"role": "user", "content": block}))
        for result, block in zip(results, blocks, strict=False)
    ]


def comparable(text: str) -> str:
    """Return a result of a call without what differs each time: its duration, and notes about lost boxes."""
    return _TIMES.sub(r"[\1... s]", _NOTE.sub("", text))


# ---- the note in the transcript --------------------------------------------------------------------------------------


def _note(restoration: Restoration, diverged: int) -> str:
    """Return the note for the transcript: what the new box contains, and what differs from the lost one."""
    parts = ["The box was lost and opened again"]
    if restoration["from_turn"]:
        parts[0] += f" with its files after turn {restoration['from_turn']}"
    repeated, ended = restoration["repeated"], restoration["ended"]
    if repeated:
        parts.append(f"{repeated} later call{'s' if repeated != 1 else ''} repeated")
    if ended:
        parts.append(f"{ended} background process{'es' if ended != 1 else ''} ended")
    if diverged:
        named = ", ".join(
            f"{item['tool']} (turn {item['turn']}, call {item['call']})" for item in restoration["diverged"]
        )
        more = f" and {diverged - _SHOWN} more" if diverged > _SHOWN else ""
        parts.append(f"results that differ from those above: {named}{more}")
    return f"[{'; '.join(parts)}]"


def with_note(state: ToolLoopState, messages: list[Message]) -> tuple[ToolLoopState, list[Message]]:
    """Return the state and the messages of a turn, with the note about a lost box at the end of the last message."""
    world = cast(WorkspaceState, state["world"])
    note, last = world.get("note"), messages[-1] if messages else None
    if not note or last is None or not isinstance(last["content"], str):
        return state, messages
    rest = cast(JSON, {key: value for key, value in world.items() if key != "note"})
    noted = cast(Message, {**last, "content": f"{last['content']}\n{note}"})
    return {**state, "world": rest}, [*messages[:-1], noted]
