"""Agent programs in a box: their requests become the observations of an episode, and the model's messages the replies.

The host asks the relay in the box for the next request. So a program needs no network, every request goes the way of
all requests to models, and a trainer over REST can be the model.
"""

import hashlib
import hmac
import json
import posixpath
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict, cast

from hub.protocols.messages import JSON, Message, Tool, text_of
from sandbox.workspaces import relay
from sandbox.workspaces.base import Handle, WorkspaceEngine, WorkspaceError

FOLDER = "/tmp/agent"  # noqa: S108
PORT = 8080
REFERENCE_CALL = "reference_script"  # id of the call that carries the script of a reference answer
MAX_INVALID = 20  # requests that are answered with an error, before the episode ends
MAX_TRANSCRIPT_BYTES = 16 * 1024 * 1024
_WAIT_S = 10.0
_ROLES = ("system", "developer", "user", "assistant", "tool")


class ProgramState(TypedDict):
    """What is kept of a program between two steps. `said`: digests of the messages of the conversation so far."""

    token: str
    request: int
    said: list[str]
    tools: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """A request of the program. With `new`, its messages do not continue the conversation of the one before."""

    state: ProgramState
    messages: list[Message]
    tools: list[Tool]
    new: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a program. `limit` if it was a limit, and otherwise the exit code and the end of its output."""

    limit: str = ""
    exit_code: int | None = None
    output: str = ""

    def info(self) -> dict[str, JSON]:
        if self.limit:
            return {"limit": self.limit}
        return {"exit_code": self.exit_code, "output": self.output[-4000:]}


def start_program(
    engine: WorkspaceEngine, handle: Handle, path: str, files: Mapping[str, bytes], instruction: str, token: str
) -> None:
    """Copy the program's folder into the box and start it with the relay. Raises WorkspaceError."""
    folder = posixpath.dirname(path)
    below = f"{folder}/" if folder else ""
    copied = {name: data for name, data in files.items() if name.startswith(below)} if below else {}
    copied[path] = files[path]
    for mode, wanted in ((0o755, True), (0o644, False)):
        chosen = {
            f"{FOLDER}/{name.removeprefix(below)}": data
            for name, data in copied.items()
            if data.startswith(b"#!") == wanted
        }
        engine.write(handle, chosen, mode=mode)
    engine.write(handle, {f"{FOLDER}/instruction.md": instruction.encode("utf-8", "surrogatepass")})
    program = f"{FOLDER}/{path.removeprefix(below)}"
    command = [program] if files[path].startswith(b"#!") else ["python3" if path.endswith(".py") else "sh", program]
    arguments = shlex.join(["serve", str(PORT), json.dumps([*command, f"{FOLDER}/instruction.md"])])
    environment = {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{PORT}/v1",
        "OPENAI_API_KEY": token,
        "INSTRUCTION": f"{FOLDER}/instruction.md",
    }
    # The folders exist before the first `next` looks for requests.
    start = (
        f"mkdir -p {relay.FOLDER}/requests {relay.FOLDER}/replies && "
        f"{{ setsid {_relay()} {arguments} >/dev/null 2>&1 & }}; "
        f"for i in $(seq 500); do [ -e {relay.FOLDER}/alive ] && exit 0; sleep 0.02; done; exit 1"
    )
    if engine.execute(handle, start, 20.0, environment=environment).exit_code:
        raise WorkspaceError("the relay of the program did not start")


def next_request(
    engine: WorkspaceEngine, handle: Handle, state: ProgramState, deadline: float, limit: str
) -> ProgramRequest | Ended:
    """Wait for the program's next valid request or its end, until *deadline*, at which *limit* ends the episode.

    Requests that are not valid are answered with the reason. Nothing that the box says is trusted.
    """
    number, invalid = state["request"], 0
    while True:
        left = deadline - time.time()
        if left <= 0:
            return Ended(limit=limit)
        found = _ask(engine, handle, number, min(left, _WAIT_S))
        if isinstance(found, Ended):
            return found
        if found is None:
            continue
        if found <= number:
            return Ended(output="The program's requests are out of order.")
        number = found
        problem, request = _read(engine, handle, {**state, "request": number})
        if request is not None:
            too_large = request.state["bytes"] > MAX_TRANSCRIPT_BYTES
            return Ended(limit="transcript") if too_large else request
        _reply(engine, handle, number, {"status": problem[0], "error": problem[1]})
        invalid += 1
        if invalid >= MAX_INVALID:
            return Ended(limit="invalid_requests")


def send_reply(engine: WorkspaceEngine, handle: Handle, state: ProgramState, message: Message) -> ProgramState:
    """Give the model's *message* to the program. May be repeated."""
    shown: dict[str, JSON] = {"role": "assistant", "content": message.get("content")}
    if message.get("tool_calls"):
        shown["tool_calls"] = message["tool_calls"]
    _reply(engine, handle, state["request"], {"message": shown})
    return {**state, "said": [*state["said"], _digest(message)]}


def reference_script(message: Message) -> str:
    """Return the script of a reference answer, which replaces the program; "" for a message of a model."""
    calls = message.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], dict) else None
    if call is None or call.get("id") != REFERENCE_CALL:
        return ""
    try:
        return str(json.loads(call["function"]["arguments"])["command"])
    except (ValueError, TypeError, KeyError):
        return ""


def _ask(engine: WorkspaceEngine, handle: Handle, after: int, seconds: float) -> int | Ended | None:
    """Return the number of the next request, the program's end, or None if neither happened in *seconds*."""
    result = engine.execute(handle, f"exec {_relay()} next {after} {seconds:.2f}", seconds + 10)
    try:
        found = json.loads(result.output)
    except ValueError:
        found = None
    if not isinstance(found, dict) or "lost" in found:
        return Ended(output="The program ended the relay.")
    if found.get("ended"):
        return _end(engine, handle)
    number = found.get("request")
    return number if isinstance(number, int) and number < 1_000_000 else None


def _end(engine: WorkspaceEngine, handle: Handle) -> Ended:
    try:
        ended = json.loads(engine.read(handle, f"{relay.FOLDER}/ended", 1_000_000))
        code, output = ended["code"], ended["output"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return Ended(output="The program ended the relay.")
    return Ended(exit_code=code if isinstance(code, int) else None, output=str(output))


def _read(
    engine: WorkspaceEngine, handle: Handle, state: ProgramState
) -> tuple[tuple[int, str], ProgramRequest | None]:
    path = f"{relay.FOLDER}/requests/{state['request']}"
    data = engine.read(handle, path, 2 * relay.MAX_BODY)
    try:
        sent = json.loads(data)
        key, body = sent["key"], sent["body"]
        messages, tools = body["messages"], body.get("tools") or []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return (400, "the request is not a chat completion"), None
    if not isinstance(key, str) or not hmac.compare_digest(key.encode(), state["token"].encode()):
        return (401, "the key is not the one of this episode"), None
    if body.get("n") not in (None, 1):
        return (400, "`n` must be 1"), None
    if problem := _problem(messages, tools):
        return (400, problem), None
    digests = [_digest(message) for message in messages]
    said = state["said"]
    new = bool(said) and (digests[: len(said)] != said or (state["tools"] and not tools))
    added = messages if new else messages[len(said) :]
    size = state["bytes"] + len(json.dumps(added))
    after: ProgramState = {**state, "said": digests, "tools": bool(tools), "bytes": size}
    return (0, ""), ProgramRequest(after, cast(list[Message], added), cast(list[Tool], tools), new)


def _problem(messages: object, tools: object) -> str:
    if not isinstance(messages, list) or not messages:
        return "`messages` must be a list with at least one message"
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            return f"{where} must have a role: {', '.join(_ROLES)}"
        if not isinstance(message.get("content"), str | list | None):
            return f"{where}.content must be text, a list of parts or null"
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list) or not all(_is_call(call) for call in calls):
            return f"{where}.tool_calls must be a list of calls of functions"
    if not isinstance(tools, list) or not all(
        isinstance(tool, dict) and isinstance(tool.get("function"), dict) and tool["function"].get("name")
        for tool in tools
    ):
        return "`tools` must be a list of functions"
    return ""


def _is_call(call: object) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return (
        isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), str)
    )


def _digest(message: Message) -> str:
    """Return a digest of what a model reads of a message. Clients drop and add other keys when they send it back."""
    calls: Sequence[Mapping[str, JSON]] = cast(Sequence[Mapping[str, JSON]], message.get("tool_calls") or [])
    content = message.get("content")
    plain = [
        message["role"],
        content if isinstance(content, list) else text_of(message),
        [[call.get("id"), call.get("function")] for call in calls],
        message.get("tool_call_id"),
    ]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:32]


def _reply(engine: WorkspaceEngine, handle: Handle, number: int, reply: Mapping[str, object]) -> None:
    part, path = f"{relay.FOLDER}/reply.part", f"{relay.FOLDER}/replies/{number}"
    engine.write(handle, {part: json.dumps(reply).encode()})
    engine.execute(handle, f"mv {part} {path} && rm -f {relay.FOLDER}/requests/{number}", 10.0)


def _relay() -> str:
    return f"python3 -I -S -c {shlex.quote(_relay_source())}"


@cache
def _relay_source() -> str:
    return Path(relay.__file__).read_text(encoding="utf-8")
