"""The `custom` harness: the bundle's own `reset` and `step`, called in the sandbox."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hub.harnesses.base import Harness, HarnessError, HarnessOptions, Play, Turn
from hub.harnesses.bundle_code import call_function
from hub.harnesses.tools import undeclared_imports
from hub.manifest.code_check import code_problems
from hub.protocols.calls import JSON, Message, Tool


class CustomOptions(HarnessOptions):
    """`path`: the file with `reset(case, seed)` and `step(state, message)`. `reads`: files of the bundle that it needs.

    Limits: `max_turns` assistant messages, `call_seconds` for one call of `reset` or `step`.
    """

    path: str = "harness.py"
    reads: list[str] = []
    max_turns: Annotated[int, Field(ge=1, le=1000)] = 50
    call_seconds: Annotated[float, Field(ge=0.1, le=600)] = 10.0


class _Message(BaseModel):
    model_config = ConfigDict(extra="allow")
    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None


class CustomAnswer(BaseModel):
    """What `reset` and `step` return. Unknown keys are refused: a misspelt `done` would never end."""

    model_config = ConfigDict(extra="forbid")
    state: Any = None
    messages: list[_Message] = []
    tools: list[dict[str, Any]] = []
    done: bool = False
    reward: Annotated[float, Field(allow_inf_nan=False)] | None = None
    truncated: bool = False
    info: dict[str, Any] = {}


class Custom(Harness):
    type = "custom"
    summary = "The bundle's own harness.py, run in the sandbox."
    Options = CustomOptions
    needs_sandbox = True
    offers_tools = True

    async def reset(self, play: Play) -> Turn:
        answer = await self._call(play, "reset", [play.case.to_json(), play.seed])
        return self._turn(answer, 0, play.options)

    async def step(self, play: Play, state: JSON, message: Message) -> Turn:
        answer = await self._call(play, "step", [state["world"], message])
        return self._turn(answer, state["turns"] + 1, play.options)

    async def _call(self, play: Play, function: str, args: list[JSON]) -> CustomAnswer:
        options: CustomOptions = play.options
        files = {path: play.files[path] for path in [options.path, *options.reads] if path in play.files}
        if options.path not in files:
            raise HarnessError(f"The bundle has no file {options.path!r}.")
        value = await call_function(play, options.path, function, args, files=files, seconds=options.call_seconds)
        try:
            return CustomAnswer.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the whole"
            raise HarnessError(
                f"{options.path}: {function} must return {{state, messages, tools, done, reward, truncated, info}}; "
                f"{place}: {first['msg']}."
            ) from None

    def _turn(self, answer: CustomAnswer, turns: int, options: CustomOptions) -> Turn:
        limited = not answer.done and turns >= options.max_turns
        return Turn(
            state={"world": answer.state, "turns": turns},
            messages=[message.model_dump(exclude_unset=True) for message in answer.messages],
            tools=answer.tools,
            done=answer.done or limited,
            reward=answer.reward,
            truncated=answer.truncated or limited,
            info={**answer.info, "limit": "max_turns"} if limited else answer.info,
        )

    def static_tools(self, play: Play) -> list[Tool] | None:
        return None

    def world(self, state: JSON) -> JSON:
        return state["world"]

    def code_paths(self, options: Mapping[str, Any]) -> list[str]:
        path, reads = options.get("path", "harness.py"), options.get("reads", [])
        return [p for p in [path, *(reads if isinstance(reads, list) else [])] if isinstance(p, str)]

    def problems(self, options: Mapping[str, Any], files: Mapping[str, bytes]) -> list[tuple[str, str]]:
        path = str(options.get("path", "harness.py"))
        calls = {"reset": ("case", "seed"), "step": ("state", "message")}
        wrong = [("path", text) for text in code_problems(path, files[path], calls)]
        return wrong or [("reads", text) for text in undeclared_imports(self.code_paths(options), files)]
