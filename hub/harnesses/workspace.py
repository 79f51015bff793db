"""The `workspace` harness: a Linux box in which the model runs commands and changes files."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from hub.common.problems import Problem
from hub.harnesses.base import EpisodeContext, HarnessError, Turn
from hub.harnesses.boxes.options import (
    WorkspaceOptions,
    case_problems,
    code_paths,
    option_problems,
    package_problems,
    service_images,
)
from hub.harnesses.boxes.preparation import built_image, open_workspace
from hub.harnesses.boxes.program_turns import begin_program, continue_program
from hub.harnesses.boxes.recovery import restore, take_snapshot, wants_snapshot, with_note
from hub.harnesses.boxes.state import WorkspaceState, handle_of, take_refusals
from hub.harnesses.boxes.tools import run_bash, use_file, workspace_tools
from hub.harnesses.steps.tool_calls import ParsedCall, call_problem
from hub.harnesses.steps.tool_loop import CallOutcome, ToolLoop, ToolLoopState, refuse_calls
from hub.protocols.messages import JSON, Message, Tool
from sandbox.workspaces.base import WorkspaceError, WorkspaceLost
from sandbox.workspaces.packages import check_image
from sandbox.workspaces.shared import get_workspaces, in_thread


class Workspace(ToolLoop[WorkspaceOptions]):
    type = "workspace"
    summary = "A Linux box: the model runs commands and changes files, and a fresh box checks them."
    Options = WorkspaceOptions

    def list_tools(self, context: EpisodeContext[WorkspaceOptions]) -> list[Tool]:
        return [] if context.options.policy == "program" else workspace_tools(context.options)

    async def initial_state(self, context: EpisodeContext[WorkspaceOptions]) -> JSON:
        return cast(JSON, await open_workspace(context))

    async def execute_call(
        self, context: EpisodeContext[WorkspaceOptions], world: JSON, call: ParsedCall
    ) -> CallOutcome:
        offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in self.list_tools(context)}
        if problem := call_problem(call, offered):
            return CallOutcome(f"error: {problem}", world)
        engine, handle = get_workspaces(), handle_of(cast(WorkspaceState, world))
        try:
            if call.name != "bash":
                return CallOutcome(await in_thread(use_file, engine, handle, call), world)
            command, seconds = str(call.arguments["command"]), context.options.call_seconds
            text, wall_ms = await in_thread(run_bash, engine, handle, command, seconds)
        except WorkspaceError as error:
            return CallOutcome(f"error: {error}", world)
        context.services.record_call_ms(wall_ms)
        after, refused = await in_thread(take_refusals, engine, cast(WorkspaceState, world))
        text += "".join(f"\n[connection refused: {reason}]" for reason in refused)
        return CallOutcome(text, cast(JSON, after), wall_ms)

    def static_tools(self, context: EpisodeContext[WorkspaceOptions]) -> list[Tool] | None:
        return None if context.options.policy == "program" else super().static_tools(context)

    async def reset(self, context: EpisodeContext[WorkspaceOptions]) -> Turn:
        turn = await super().reset(context)
        if context.options.policy == "model":
            return turn
        try:
            return await begin_program(context, cast(ToolLoopState, turn.state), turn.messages)
        except BaseException:
            await self.close(turn.state)
            raise

    async def step(self, context: EpisodeContext[WorkspaceOptions], state: JSON, message: Message) -> Turn:
        before = cast(ToolLoopState, state)
        if context.options.policy == "program":
            return await continue_program(context, before, message)
        if time.time() >= cast(WorkspaceState, before["world"])["ends_at"]:
            after = cast(JSON, {**before, "turns": before["turns"] + 1})
            refused = refuse_calls(message, context.options.protocol, "episode_s")
            return Turn(state=after, messages=refused, done=True, truncated=True, limit="episode_s")
        try:
            turn = await super().step(context, state, message)
        except WorkspaceLost:
            turn = await self._step_in_new_box(context, before, message)
        current, messages = with_note(cast(ToolLoopState, turn.state), turn.messages)
        current = {**current, "world": cast(JSON, {**cast(WorkspaceState, current["world"]), "seen_at": time.time()})}
        if not turn.done and wants_snapshot(context, current):
            current = await take_snapshot(context, current)
        return replace(turn, state=cast(JSON, current), messages=messages)

    async def _step_in_new_box(
        self, context: EpisodeContext[WorkspaceOptions], before: ToolLoopState, message: Message
    ) -> Turn:
        restored = await restore(context, before, self.execute_call)
        try:
            return await super().step(context, cast(JSON, restored), message)
        except BaseException:  # the stored state does not know the new box
            await self.close(cast(JSON, restored))
            raise

    async def settle(self, context: EpisodeContext[WorkspaceOptions], state: JSON) -> JSON:
        before = cast(ToolLoopState, state)
        if context.options.policy == "program":
            return state
        try:
            await in_thread(get_workspaces().ping, handle_of(cast(WorkspaceState, before["world"])))
        except WorkspaceLost:
            return cast(JSON, await restore(context, before, self.execute_call))
        return state

    async def save(self, context: EpisodeContext[WorkspaceOptions], state: JSON) -> JSON:
        if not context.options.snapshot_turns:
            return state
        return cast(JSON, await take_snapshot(context, cast(ToolLoopState, state)))

    async def reopen(self, context: EpisodeContext[WorkspaceOptions], state: JSON) -> JSON:
        return cast(JSON, await restore(context, cast(ToolLoopState, state), self.execute_call))

    def can_reopen(self, options: WorkspaceOptions) -> bool:
        return options.policy == "model"

    async def close(self, state: JSON) -> None:
        world = cast(ToolLoopState, state)["world"] if isinstance(state, dict) and "world" in state else None
        if world is not None:
            await in_thread(get_workspaces().close, handle_of(cast(WorkspaceState, world)))

    def check_available(
        self, options: Mapping[str, object], files: Mapping[str, bytes], packages: Sequence[str] = ()
    ) -> None:
        image, build = options.get("image"), options.get("build")
        for named in [image, *service_images(options)]:
            get_workspaces().check(named if isinstance(named, str) and "{{" not in named else "")
        if options.get("network") not in (None, "none"):
            get_workspaces().check_outside()
        if isinstance(build, str) and build and "{{" not in build:
            # A build that fails is an error of the environment, which the reset of each episode reports.
            with contextlib.suppress(HarnessError, ValueError):
                known = {key: options[key] for key in ("build", "workdir", "limits") if key in options}
                image = built_image(WorkspaceOptions.model_validate(known), files)
        if packages:
            engine = get_workspaces()
            engine.find_packages()
            if isinstance(image, str) and image and "{{" not in image:  # others are checked by each reset
                check_image(engine, image, packages)

    def code_paths(self, options: Mapping[str, object]) -> list[str]:
        return code_paths(options)

    def problems(
        self, options: Mapping[str, object], files: Mapping[str, bytes], packages: Sequence[str] = ()
    ) -> list[Problem]:
        return option_problems(options, files) + (package_problems(options) if packages else [])

    def case_problems(self, options: WorkspaceOptions, files: Mapping[str, bytes]) -> list[Problem]:
        return case_problems(options, files)
