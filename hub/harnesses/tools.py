"""The `tools` harness: functions of the bundle that the model may call and that change the episode's JSON state."""

from collections.abc import Mapping, Sequence
from typing import Annotated, cast

from pydantic import Field

from hub.common.problems import Problem
from hub.harnesses.base import EpisodeContext, HarnessError, Turn
from hub.harnesses.steps.bundle_code import BundleCode, BundleCodeFailed
from hub.harnesses.steps.declared_tools import declared_tools
from hub.harnesses.steps.tool_calls import ParsedCall, call_problem, native_calls, result_text, text_calls, wire_call
from hub.harnesses.steps.tool_loop import CallOutcome, ToolLoop, ToolLoopOptions, ToolLoopState
from hub.harnesses.steps.tool_schemas import STATE, ToolModule, ToolSourceError, read_tools
from hub.harnesses.steps.user_turns import UserOptions, user_roles
from hub.manifest.code_check import undeclared_imports
from hub.protocols.messages import JSON, Message, Tool, text_of


class ToolsOptions(ToolLoopOptions):
    """Options of `tools`.

    `tools`: a .py file of the bundle, or a list of function schemas; with schemas a call ends the episode and runs no
    code. `reads`: other files of the bundle that the tools import or open. `user`: the user, as in multi_turn; without
    one the episode ends when the model answers without a call. `offer`: names of the tools that the model may call in a
    case; all of them without it. `state_parameter`: the parameter in which a tool receives the state.
    """

    tools: str | list[dict[str, object]]
    reads: list[str] = []
    user: UserOptions | None = None
    # Left out of digests if they are not given, so that digests of existing cases do not change.
    offer: Annotated[list[str] | None, Field(exclude_if=lambda offer: offer is None)] = None
    state_parameter: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$", exclude_if=lambda name: name == STATE)] = STATE


class Tools(ToolLoop[ToolsOptions]):
    type = "tools"
    summary = "Functions of the bundle as tools on a JSON state, or function schemas only."
    Options = ToolsOptions
    needs_sandbox = True

    def list_tools(self, context: EpisodeContext[ToolsOptions]) -> list[Tool]:
        options = context.options
        try:
            tools, declared = _known_tools(options, context.files)
        except ValueError as error:
            raise HarnessError(f"The case's tools are not function schemas: {error}.") from None
        if unknown := _unknown_offers(options, tools, declared):
            raise HarnessError(f"harness.offer: {unknown}.")
        return [tool for tool in tools if _is_offered(tool["function"]["name"], options, declared)]

    async def initial_state(self, context: EpisodeContext[ToolsOptions]) -> JSON:
        options = context.options
        if not isinstance(options.tools, str) or not _module(options, context.files).has_reset:
            return {}
        return await _code(context, options.tools).call_function("reset", [context.case.to_json(), context.seed])

    async def step(self, context: EpisodeContext[ToolsOptions], state: JSON, message: Message) -> Turn:
        options = context.options
        if isinstance(options.tools, list) and _called(options, message):
            before = cast(ToolLoopState, state)
            return Turn(state={**before, "turns": before["turns"] + 1}, done=True)
        return await super().step(context, state, message)

    async def execute_call(self, context: EpisodeContext[ToolsOptions], world: JSON, call: ParsedCall) -> CallOutcome:
        options = context.options
        assert isinstance(options.tools, str)
        functions = _module(options, context.files).functions
        offered = {name: known.parameters for name, known in functions.items() if _is_offered(name, options, {})}
        problem = call_problem(call, offered)
        if problem:
            return CallOutcome(f"error: {problem}", world)
        try:
            result = await _code(context, options.tools).call_tool(
                call.name,
                call.arguments,
                state=world,
                state_parameter=options.state_parameter if functions[call.name].takes_state else "",
            )
        except BundleCodeFailed as error:
            return CallOutcome(f"error: the tool {call.name} failed and changed nothing: {error}", world, error.wall_ms)
        if result.error:
            return CallOutcome(f"error: {result.error}", world, result.wall_ms)
        return CallOutcome(result_text(result.result), result.state, result.wall_ms)

    def user(self, options: ToolsOptions) -> UserOptions | None:
        return options.user

    def transcript(self, options: ToolsOptions, messages: list[Message]) -> list[Message]:
        messages = super().transcript(options, messages)
        declared = declared_tools(options.tools)[1] if isinstance(options.tools, list) else {}
        return [_renamed(message, declared) for message in messages] if declared else messages

    def code_paths(self, options: Mapping[str, object]) -> list[str]:
        tools, reads = options.get("tools"), options.get("reads")
        named = [tools] if isinstance(tools, str) and "{{" not in tools else []
        return named + [path for path in reads if isinstance(path, str)] if isinstance(reads, list) else named

    def uses_sandbox(self, options: Mapping[str, object]) -> bool:
        return bool(self.code_paths(options))

    def problems(
        self, options: Mapping[str, object], files: Mapping[str, bytes], packages: Sequence[str] = ()
    ) -> list[Problem]:
        tools = options.get("tools")
        if not isinstance(tools, str) or "{{" in tools:
            return []
        if not tools.endswith(".py"):
            return [
                Problem(
                    f"{tools!r} must be a .py file of the bundle, or a template that gives function schemas", "tools"
                )
            ]
        parameter = options.get("state_parameter", STATE)
        if not isinstance(parameter, str) or not parameter.isidentifier():
            text = f"{parameter!r} is not the name of a parameter; write a name such as `world`, not a template"
            return [Problem(text, "state_parameter")]
        try:
            read_tools(files[tools], tools, parameter)
        except ToolSourceError as error:
            return [Problem(text, "tools") for text in error.problems]
        return [Problem(text, "reads") for text in undeclared_imports(self.code_paths(options), files)]

    def case_problems(self, options: ToolsOptions, files: Mapping[str, bytes]) -> list[Problem]:
        if options.offer is None:
            return []
        try:
            unknown = _unknown_offers(options, *_known_tools(options, files))
        except (ValueError, HarnessError) as error:
            return [Problem(str(error), "tools")]
        return [Problem(unknown, "offer")] if unknown else []

    def roles(self, options: Mapping[str, object]) -> list[str]:
        return user_roles(options)


def _module(options: ToolsOptions, files: Mapping[str, bytes]) -> ToolModule:
    assert isinstance(options.tools, str)
    if options.tools not in files:
        raise HarnessError(f"The bundle has no tools file {options.tools!r}.")
    try:
        return read_tools(files[options.tools], options.tools, options.state_parameter)
    except ToolSourceError as error:
        raise HarnessError(f"The tools cannot be offered: {error}.") from None


def _known_tools(options: ToolsOptions, files: Mapping[str, bytes]) -> tuple[list[Tool], dict[str, str]]:
    """Return all tools, and the declared name of each that had to be renamed. Raises HarnessError, ValueError."""
    if isinstance(options.tools, str):
        return _module(options, files).tools, {}
    return declared_tools(options.tools)


def _is_offered(name: str, options: ToolsOptions, declared: Mapping[str, str]) -> bool:
    return options.offer is None or declared.get(name, name) in options.offer


def _unknown_offers(options: ToolsOptions, tools: Sequence[Tool], declared: Mapping[str, str]) -> str:
    """Return what is wrong with the names in `offer`; "" if all are tools."""
    known = [declared.get(tool["function"]["name"], tool["function"]["name"]) for tool in tools]
    unknown = [repr(name) for name in options.offer or [] if name not in known]
    return f"there is no tool {', '.join(unknown)}; the tools are {', '.join(known)}" if unknown else ""


def _code(context: EpisodeContext[ToolsOptions], path: str) -> BundleCode:
    """Return the module of tools at *path*, with the files that it reads."""
    options = context.options
    files = {name: context.files[name] for name in [path, *options.reads]}
    return BundleCode(context=context, path=path, files=files, seconds=options.call_seconds)


def _called(options: ToolsOptions, message: Message) -> bool:
    if options.protocol == "native":
        return bool(native_calls(message))
    return bool(text_calls(text_of(message))[0])


def _renamed(message: Message, declared: Mapping[str, str]) -> Message:
    """Return *message* with its calls under the names that the bundle declared."""
    calls = native_calls(message)
    if not any(call.name in declared for call in calls):
        return message
    return {**message, "tool_calls": [wire_call(call, declared.get(call.name)) for call in calls]}
