"""The `code_repair` harness: a small project as files in the episode's state, and tools to read, change and test it."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, cast

from pydantic import Field

from hub.harnesses.base import EpisodeContext, HarnessError
from hub.harnesses.steps.bundle_code import require_pool
from hub.harnesses.steps.tool_calls import ParsedCall, call_problem
from hub.harnesses.steps.tool_loop import CallOutcome, ToolLoop, ToolLoopOptions
from hub.protocols.cases import file_bytes
from hub.protocols.messages import JSON, Tool
from sandbox.errors import SandboxUnavailable
from sandbox.limits import Limits
from sandbox.verdicts.jobs import ProgramJob
from sandbox.verdicts.results import Status

MAX_FILES = 200
MAX_PROJECT_BYTES = 768 * 1024  # of all files; the state, with all of them, is stored after each step
Files = dict[str, JSON]  # path -> text, or {"b64": ...}


class CodeRepairOptions(ToolLoopOptions):
    """Options of `code_repair`.

    `files`: the project. `tests`: patterns of its visible tests, which the model can read and run but not write.

    `memory_mb` and `call_seconds` bound one run of the visible tests.
    """

    files: dict[str, object] = cast(dict[str, object], "{{ files }}")  # rendered before it is validated
    tests: list[str] = ["test_*.py", "tests/test_*.py"]
    memory_mb: Annotated[int, Field(ge=64, le=4096)] = 512


class CodeRepair(ToolLoop[CodeRepairOptions]):
    type = "code_repair"
    summary = "A small project to repair: read, write and test its files; hidden tests score the result."
    Options = CodeRepairOptions
    needs_sandbox = True

    def list_tools(self, context: EpisodeContext[CodeRepairOptions]) -> list[Tool]:
        return TOOLS

    async def initial_state(self, context: EpisodeContext[CodeRepairOptions]) -> JSON:
        options = context.options
        if not options.files:
            raise HarnessError("The case has no files. Add `files`, the project to repair.")
        if problem := _size_problem(options.files):
            raise HarnessError(f"The case's project is too large: {problem}.")
        return {"files": dict(options.files)}

    async def execute_call(
        self, context: EpisodeContext[CodeRepairOptions], world: JSON, call: ParsedCall
    ) -> CallOutcome:
        problem = call_problem(call, _PARAMETERS)
        if problem:
            return CallOutcome(f"error: {problem}", world)
        files = _files(world)
        if call.name == "run_tests":
            return await self._run_tests(context, world)
        try:
            if call.name in _READING:
                return CallOutcome(_READING[call.name](files, **call.arguments), world)
            changed, text = _WRITING[call.name](files, **call.arguments)
        except _ToolError as mistake:
            return CallOutcome(f"error: {mistake}", world)
        path = str(call.arguments["path"])
        if is_visible_test(context.options, path):
            return CallOutcome(f"error: {path} is a test; it can be read and run, not changed", world)
        if problem := _size_problem(changed):
            return CallOutcome(f"error: {problem}", world)
        return CallOutcome(text, {"files": changed})

    async def _run_tests(self, context: EpisodeContext[CodeRepairOptions], world: JSON) -> CallOutcome:
        options = context.options
        files = _files(world)
        paths = sorted(path for path in files if is_visible_test(options, path))
        if not paths:
            return CallOutcome("error: the project has no visible tests", world)
        try:
            job = ProgramJob(
                code=_runner(),
                files={path: file_bytes(content) for path, content in files.items()},
                argv=tuple(paths),
                limits=Limits(cpu_s=options.call_seconds, wall_s=options.call_seconds, memory_mb=options.memory_mb),
            )
        except ValueError as error:
            raise HarnessError(f"The visible tests cannot be run: {error}") from None
        outcome = await require_pool(context).arun(job)
        context.services.record_call_ms(outcome.wall_ms)
        if outcome.status is Status.INFRA_ERROR:
            raise SandboxUnavailable(f"The visible tests could not be run: {outcome.message}")
        text = outcome.stdout.rstrip() + ("\n[output cut]" if outcome.output_cut else "")
        if outcome.status not in (Status.COMPLETED, Status.EXITED):
            text = f"{text}\nThe run was stopped: {outcome.message}".lstrip()
        return CallOutcome(text or f"The tests printed nothing. {outcome.message}", world, outcome.wall_ms)


def _files(world: JSON) -> Files:
    """Return the project's files in the state of an episode."""
    return cast(dict[str, Files], world)["files"]


def is_visible_test(options: CodeRepairOptions, path: str) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in options.tests)


# ---- effects of the tools --------------------------------------------------------------------------------------------


class _ToolError(Exception):
    """A call with arguments that cannot be carried out; the message goes to the model."""


def _list_files(files: Files) -> str:
    return "\n".join(f"{path} ({len(file_bytes(content)):,} bytes)" for path, content in sorted(files.items()))


def _find_file(files: Files, path: str) -> JSON:
    if path not in files:
        raise _ToolError(f"there is no file {path!r}; the files are {', '.join(sorted(files))}")
    return files[path]


def _read_file(files: Files, path: str) -> str:
    content = _find_file(files, path)
    if not isinstance(content, str):
        raise _ToolError(f"{path} is a binary file")
    return content


def _write_file(files: Files, path: str, content: str) -> tuple[Files, str]:
    if not is_project_path(path):
        raise _ToolError(f"{path!r} must be a relative path inside the project, such as package/module.py")
    clash = next((other for other in files if other.startswith(f"{path}/") or path.startswith(f"{other}/")), None)
    if clash:
        raise _ToolError(f"{path} and {clash} cannot both be files: one of them would have to be a folder")
    return {**files, path: content}, f"wrote {path} ({len(content.encode('utf-8', 'surrogatepass')):,} bytes)"


def _replace_in_file(files: Files, path: str, old: str, new: str) -> tuple[Files, str]:
    content = _read_file(files, path)
    times = content.count(old) if old else 0
    if times != 1:
        found = "does not occur" if times == 0 else f"occurs {times} times"
        raise _ToolError(f"the old text {found} in {path}; it must occur exactly once, white space included")
    return {**files, path: content.replace(old, new)}, f"replaced 1 place in {path}"


def _delete_file(files: Files, path: str) -> tuple[Files, str]:
    _find_file(files, path)
    return {name: content for name, content in files.items() if name != path}, f"deleted {path}"


def is_project_path(path: str) -> bool:
    """Return whether *path* is relative, plain ASCII, without `..` and normalized as the sandbox requires."""
    parts = PurePosixPath(path).parts
    plain = path.isascii() and path.isprintable() and 0 < len(path) <= 200 and "\\" not in path
    return plain and not path.startswith("/") and ".." not in parts and path == "/".join(parts)


def _size_problem(files: Files) -> str:
    if len(files) > MAX_FILES:
        return f"a project may have {MAX_FILES} files, not {len(files)}"
    size = sum(len(file_bytes(content)) for content in files.values())
    return f"a project may have at most {MAX_PROJECT_BYTES:,} bytes, not {size:,}" if size > MAX_PROJECT_BYTES else ""


_READING: Mapping[str, Callable[..., str]] = {"list_files": _list_files, "read_file": _read_file}
_WRITING: Mapping[str, Callable[..., tuple[Files, str]]] = {
    "write_file": _write_file,
    "replace_in_file": _replace_in_file,
    "delete_file": _delete_file,
}


@cache
def _runner() -> str:
    return Path(__file__).parent.joinpath("steps/test_runner.py").read_text(encoding="utf-8")


# ---- schemas of the tools --------------------------------------------------------------------------------------------


def _tool(name: str, description: str, **parameters: str) -> Tool:
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in parameters.items()},
        "required": list(parameters),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


_PATH = "Path inside the project, such as package/module.py."
TOOLS: list[Tool] = [
    _tool("list_files", "List the project's files with their sizes."),
    _tool("read_file", "Read a file of the project.", path=_PATH),
    _tool(
        "write_file",
        "Write a file of the project, whole: an existing one is replaced.",
        path=_PATH,
        content="The file.",
    ),
    _tool(
        "replace_in_file",
        "Replace a piece of text in a file. The old text must occur exactly once.",
        path=_PATH,
        old="The text to replace, exactly as in the file, white space included.",
        new="The replacement.",
    ),
    _tool("delete_file", "Delete a file of the project.", path=_PATH),
    _tool("run_tests", "Run the project's visible tests and show what failed."),
]
_PARAMETERS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
