"""Calls of a bundle's code, always in the sandbox: JSON arguments and state in, JSON result and state out."""

from collections.abc import Mapping
from dataclasses import dataclass

from hub.harnesses.base import MAX_STATE_BYTES, EpisodeContext, HarnessError, HarnessOptions
from hub.protocols.messages import JSON
from sandbox.client.pool import Pool
from sandbox.errors import SandboxUnavailable
from sandbox.limits import Limits
from sandbox.verdicts.jobs import CallJob
from sandbox.verdicts.results import Outcome, Status

# Result and state together; less than the state of an episode, so that both always fit into it.
MAX_RESULT_BYTES = MAX_STATE_BYTES - 64 * 1024
WRAPPER = "llmeval_tool_call.py"
# Runs in the sandbox with the tools. An exception of a tool is a reply for the model, so it is returned as a
# value; this distinguishes it from a call that crashed.
_WRAPPER_SOURCE = b"""
import importlib


def call(path, name, parameter, state, arguments):
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    function = getattr(module, name)
    try:
        result = function(**{parameter: state}, **arguments) if parameter else function(**arguments)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:2000]}
    return {"result": result, "state": state}


# Lines in messages about exceptions are those of the bundle's files.
call.__code__ = call.__code__.replace(co_filename="<call>")
"""


class BundleCodeFailed(Exception):
    """A call that crashed, timed out, produced too much output or did not return JSON; the message is a sentence."""

    def __init__(self, message: str, wall_ms: float) -> None:
        super().__init__(message)
        self.wall_ms = wall_ms


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Result of a tool call and the state after it, or the exception's text in `error`."""

    result: JSON
    state: JSON
    error: str
    wall_ms: float


def require_pool(context: EpisodeContext[HarnessOptions]) -> Pool:
    """Return the episode's sandbox pool. Raises HarnessError if there is none."""
    if context.services.pool is None:
        raise HarnessError("This environment runs code, but its episode has no sandbox. Start it with a sandbox pool.")
    return context.services.pool


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleCode:
    """Python file of a bundle, whose functions an episode calls in the sandbox.

    `files` are those that the code may import or read, `path` included. `seconds` is the time limit of a call.
    """

    context: EpisodeContext[HarnessOptions]
    path: str
    files: Mapping[str, bytes]
    seconds: float

    async def call_function(self, function: str, args: list[JSON]) -> JSON:
        """Call *function* with *args* and return its result. Raises HarnessError for every kind of failure."""
        outcome = await self._run(self.files, self.path, function, args)
        if outcome.status is not Status.COMPLETED:
            temporary = outcome.status in (Status.INFRA_ERROR, Status.TIMEOUT)
            raise HarnessError(f"{self.path}: {function} failed: {_failure_text(outcome)}", temporary=temporary)
        return outcome.value

    async def call_tool(
        self, function: str, arguments: Mapping[str, JSON], *, state: JSON, state_parameter: str
    ) -> ToolResult:
        """Call a tool, with the state in *state_parameter*, or without it if that is empty.

        Raises BundleCodeFailed if it gave no result, SandboxUnavailable if the sandbox itself failed.
        """
        args = [self.path, function, state_parameter, state, dict(arguments)]
        outcome = await self._run({**self.files, WRAPPER: _WRAPPER_SOURCE}, WRAPPER, "call", args)
        if outcome.status is Status.INFRA_ERROR:
            raise SandboxUnavailable(f"{self.path}: {function} could not be run: {_failure_text(outcome)}")
        value = outcome.value
        if outcome.status is not Status.COMPLETED or not isinstance(value, dict):
            raise BundleCodeFailed(_failure_text(outcome), outcome.wall_ms)
        return ToolResult(value.get("result"), value.get("state"), value.get("error", ""), outcome.wall_ms)

    async def _run(self, files: Mapping[str, bytes], module: str, function: str, args: list[JSON]) -> Outcome:
        try:
            job = CallJob(
                files=files,
                module=module,
                function=function,
                args=args,
                limits=Limits(cpu_s=self.seconds, wall_s=self.seconds),
                max_result_bytes=MAX_RESULT_BYTES,
            )
        except ValueError as error:
            raise HarnessError(f"The bundle's code cannot be called: {error}") from None
        outcome = await require_pool(self.context).arun(job)
        self.context.services.record_call_ms(outcome.wall_ms)
        return outcome


def _failure_text(outcome: Outcome) -> str:
    return outcome.message or f"it ended with status {outcome.status}."
