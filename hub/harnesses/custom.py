"""The `custom` harness: the bundle's own `reset` and `step`, called in the sandbox."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypedDict, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hub.common.documents.validation import describe_error
from hub.common.problems import Problem
from hub.common.wording import end_sentence
from hub.harnesses.base import EpisodeContext, Harness, HarnessError, HarnessOptions, Turn
from hub.harnesses.steps.bundle_code import BundleCode
from hub.manifest.code_check import code_problems, undeclared_imports
from hub.protocols.messages import JSON, Message, Tool


class CustomHarnessOptions(HarnessOptions):
    """Options of `custom`.

    `path`: the file with `reset(case, seed)` and `step(state, message)`. `reads`: other files of the bundle it needs.

    Limits: `max_turns` assistant messages, `call_seconds` for one call of `reset` or `step`.
    """

    path: str = "harness.py"
    reads: list[str] = []
    max_turns: Annotated[int, Field(ge=1, le=1000)] = 50
    call_seconds: Annotated[float, Field(ge=0.1, le=600)] = 10.0


class ReturnedMessage(BaseModel):
    model_config = ConfigDict(extra="allow")
    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[dict[str, object]] | None = None


class ReturnedFunction(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: Annotated[str, Field(min_length=1)]
    parameters: dict[str, object] | None = None


class ReturnedTool(BaseModel):
    """Tool as endpoints accept it. Without this check, each of them would refuse every request of the episode."""

    model_config = ConfigDict(extra="allow")
    type: Literal["function"]
    function: ReturnedFunction


class CustomHarnessResult(BaseModel):
    """Return value of the bundle's `reset` and `step`. Unknown keys are errors: a misspelt `done` would never end."""

    model_config = ConfigDict(extra="forbid")
    state: object = None
    messages: list[ReturnedMessage] = []
    tools: list[ReturnedTool] | None = None
    done: bool = False
    reward: Annotated[float, Field(allow_inf_nan=False)] | None = None
    truncated: bool = False
    info: dict[str, object] = {}


class CustomState(TypedDict):
    """State of the harness between two steps. `world` is the state that the bundle's code returned."""

    world: JSON
    turns: int


class CustomHarness(Harness[CustomHarnessOptions]):
    type = "custom"
    summary = "The bundle's own harness.py, run in the sandbox."
    Options = CustomHarnessOptions
    needs_sandbox = True
    offers_tools = True

    async def reset(self, context: EpisodeContext[CustomHarnessOptions]) -> Turn:
        answer = await self._call(context, "reset", [context.case.to_json(), context.seed])
        if answer.done or answer.truncated:
            raise HarnessError(
                f"{context.options.path}: reset returned that the episode is over, before the model's first message. "
                "Return `done` and `truncated` in step only."
            )
        return self._turn(answer, 0, context.options)

    async def step(self, context: EpisodeContext[CustomHarnessOptions], state: JSON, message: Message) -> Turn:
        before = cast(CustomState, state)
        answer = await self._call(context, "step", [before["world"], message])
        return self._turn(answer, before["turns"] + 1, context.options)

    async def _call(
        self, context: EpisodeContext[CustomHarnessOptions], function: str, args: list[JSON]
    ) -> CustomHarnessResult:
        options = context.options
        files = {path: context.files[path] for path in [options.path, *options.reads] if path in context.files}
        if options.path not in files:
            raise HarnessError(f"The bundle has no file {options.path!r}.")
        code = BundleCode(context=context, path=options.path, files=files, seconds=options.call_seconds)
        value = await code.call_function(function, args)
        try:
            return CustomHarnessResult.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the whole"
            raise HarnessError(
                f"{options.path}: {function} must return {{state, messages, tools, done, reward, truncated, info}}; "
                f"{place}: {end_sentence(describe_error(first, CustomHarnessResult))}"
            ) from None

    def _turn(self, answer: CustomHarnessResult, turns: int, options: CustomHarnessOptions) -> Turn:
        limited = not answer.done and turns >= options.max_turns
        tools = None if answer.tools is None else [tool.model_dump(exclude_unset=True) for tool in answer.tools]
        return Turn(
            state={"world": answer.state, "turns": turns},
            messages=[cast(Message, message.model_dump(exclude_unset=True)) for message in answer.messages],
            tools=cast("list[Tool] | None", tools),
            done=answer.done or limited,
            reward=answer.reward,
            truncated=answer.truncated or limited,
            limit="max_turns" if limited else None,
            info=answer.info,
        )

    def static_tools(self, context: EpisodeContext[CustomHarnessOptions]) -> list[Tool] | None:
        return None

    def scored_state(self, state: JSON) -> JSON:
        return cast(CustomState, state)["world"]

    def code_paths(self, options: Mapping[str, object]) -> list[str]:
        path, reads = options.get("path", "harness.py"), options.get("reads", [])
        return [p for p in [path, *(reads if isinstance(reads, list) else [])] if isinstance(p, str)]

    def problems(
        self, options: Mapping[str, object], files: Mapping[str, bytes], packages: Sequence[str] = ()
    ) -> list[Problem]:
        path = str(options.get("path", "harness.py"))
        calls = {"reset": ("case", "seed"), "step": ("state", "message")}
        wrong = [Problem(text, "path") for text in code_problems(path, files[path], calls)]
        return wrong or [Problem(text, "reads") for text in undeclared_imports(self.code_paths(options), files)]
