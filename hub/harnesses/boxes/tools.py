"""The tools of a workspace: their descriptions, and what a call of one does in the box."""

from typing import cast

from hub.harnesses.boxes.options import WorkspaceOptions
from hub.harnesses.steps.tool_calls import ParsedCall, result_text
from hub.protocols.messages import Tool
from sandbox.workspaces.base import CommandResult, Handle, WorkspaceEngine, WorkspaceError

MAX_COMMAND_BYTES = 100_000
MAX_READ_BYTES = 40_000
MAX_EDIT_BYTES = 4 * 1024 * 1024


def workspace_tools(options: WorkspaceOptions) -> list[Tool]:
    """Return the tools that the model gets."""
    path = {"type": "string", "description": f"absolute, or relative to {options.workdir}"}
    text = {"type": "string"}
    run = (
        f"Run a command with bash in {options.workdir}, in a new shell for each call, for at most "
        f"{options.call_seconds:g} seconds. Returns stdout and stderr, the exit code and the time. Background "
        "processes go on after the call; redirect their output to a file."
    )
    every = [
        _tool("bash", run, {"command": text}),
        _tool("read", "Return the content of a text file.", {"path": path}),
        _tool("write", "Write a text file, and the folders that it needs.", {"path": path, "content": text}),
        _tool(
            "edit",
            "Replace a text that occurs exactly once in a file.",
            {"path": path, "old": text, "new": text},
        ),
    ]
    return [tool for tool in every if tool["function"]["name"] in options.tools]


def run_bash(engine: WorkspaceEngine, handle: Handle, command: str, seconds: float) -> tuple[str, float]:
    """Run *command* and return the text for the model and the command's milliseconds. Raises WorkspaceError."""
    if len(command.encode("utf-8", "surrogatepass")) > MAX_COMMAND_BYTES:
        raise WorkspaceError(f"a command has at most {MAX_COMMAND_BYTES:,} bytes; write a script first")
    result = engine.execute(handle, command, seconds)
    return result_text(describe_result(result)), result.wall_ms


def use_file(engine: WorkspaceEngine, handle: Handle, call: ParsedCall) -> str:
    """Carry out a call of `read`, `write` or `edit` and return the text for the model. Raises WorkspaceError."""
    arguments = call.arguments
    path = str(arguments["path"])
    if call.name == "read":
        text = _read(engine, handle, path)
    elif call.name == "write":
        content = str(arguments["content"]).encode("utf-8", "surrogatepass")
        engine.write(handle, {path: content})
        text = f"wrote {path} ({len(content):,} bytes)"
    else:
        text = _edit(engine, handle, path, str(arguments["old"]), str(arguments["new"]))
    return result_text(text)


def describe_result(result: CommandResult) -> str:
    """Return a command's output with its exit code and time, as the model and the transcript have it."""
    ended = (
        f"timed out and was killed after {result.wall_ms / 1000:.1f} s"
        if result.timed_out
        else (f"exit code {result.exit_code}, {result.wall_ms / 1000:.2f} s")
    )
    return f"{result.output.rstrip()}\n[{ended}]".lstrip("\n")


def _read(engine: WorkspaceEngine, handle: Handle, path: str) -> str:
    data = engine.read(handle, path, MAX_READ_BYTES + 1)
    text = data[:MAX_READ_BYTES].decode("utf-8", "replace")
    note = f"\n[cut after {MAX_READ_BYTES:,} bytes; use bash to read the rest]" if len(data) > MAX_READ_BYTES else ""
    return text + note


def _edit(engine: WorkspaceEngine, handle: Handle, path: str, old: str, new: str) -> str:
    data = engine.read(handle, path, MAX_EDIT_BYTES + 1)
    if len(data) > MAX_EDIT_BYTES:
        raise WorkspaceError(f"{path} is larger than {MAX_EDIT_BYTES:,} bytes; use bash to change it")
    before, after = (text.encode("utf-8", "surrogatepass") for text in (old, new))
    times = data.count(before) if before else 0
    if times != 1:
        found = "does not occur" if times == 0 else f"occurs {times} times"
        raise WorkspaceError(f"the old text {found} in {path}; it must occur exactly once, white space included")
    engine.write(handle, {path: data.replace(before, after)})
    return f"replaced 1 place in {path}"


def _tool(name: str, description: str, properties: dict[str, dict[str, str]]) -> Tool:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return cast(
        Tool,
        {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}},
    )
