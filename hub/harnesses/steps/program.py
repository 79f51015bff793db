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
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict, cast

from hub.harnesses.base import Limit
from hub.harnesses.endpoint.chat import ChatCompletions
from hub.harnesses.endpoint.responses import Responses
from hub.harnesses.endpoint.shapes import Answer, Body, EndpointApi, InvalidRequest, error_answer, shown_message
from hub.protocols.calls import Reply
from hub.protocols.messages import JSON, Message, Tool, text_of
from sandbox.workspaces import relay
from sandbox.workspaces.base import Handle, WorkspaceEngine, WorkspaceError, WorkspaceLost

FOLDER = "/tmp/agent"  # noqa: S108
PORT = 8080
KEEP_ALIVE_S = 10.0  # between the bytes that a waiting client gets
REFERENCE_CALL = "reference_script"  # id of the call that carries the script of a reference answer
MAX_INVALID = 20  # requests that are answered with an error, before the episode ends
MAX_TRANSCRIPT_BYTES = 16 * 1024 * 1024
_WAIT_S = 10.0
_APIS: Mapping[str, EndpointApi] = {"/chat/completions": ChatCompletions(), "/responses": Responses()}


class ProgramState(TypedDict):
    """Stored state of a program between two steps. `said`: digests of the messages of the conversation so far."""

    token: str
    request: int
    said: list[str]
    tools: bool
    bytes: int


class _Sent(TypedDict):
    """A request as the relay wrote it. `history`: the items of the response that it continues."""

    key: str
    api: str
    body: Body
    history: list[JSON]


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """A request of the program. With `new`, its messages do not continue the conversation of the one before."""

    state: ProgramState
    messages: list[Message]
    tools: list[Tool]
    new: bool
    parameters: dict[str, JSON]


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a program. `limit` if it was a limit, and otherwise the exit code and the end of its output."""

    limit: Limit | None = None
    exit_code: int | None = None
    output: str = ""

    def info(self) -> dict[str, JSON]:
        if self.limit:
            return {}
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
    arguments = shlex.join(["serve", str(PORT), json.dumps([*command, f"{FOLDER}/instruction.md"]), str(KEEP_ALIVE_S)])
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
    engine: WorkspaceEngine, handle: Handle, state: ProgramState, deadline: float, limit: Limit
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
        try:
            request = _read(engine, handle, {**state, "request": number})
        except InvalidRequest as error:
            _reply(engine, handle, number, error_answer(error))
            invalid += 1
        else:
            if request.state["bytes"] > MAX_TRANSCRIPT_BYTES:
                return Ended(limit="transcript")
            engine.write(handle, {relay.accepted_path(number): b""})
            return request
        if invalid >= MAX_INVALID:
            return Ended(limit="invalid_requests")


def send_reply(
    engine: WorkspaceEngine, handle: Handle, state: ProgramState, message: Message, reply: Reply | None
) -> ProgramState:
    """Give the model's *message* to the program. May be repeated. Raises WorkspaceError.

    reply: the reply that has the message, None if a trainer sent it.
    """
    number = state["request"]
    after: ProgramState = {**state, "said": [*state["said"], _digest(shown_message(message, number))]}
    try:
        sent = _sent(engine, handle, number)
    except WorkspaceLost:
        raise
    except WorkspaceError:
        return after  # it was answered before, and its file removed
    except ValueError:
        raise WorkspaceError("the program changed its request") from None
    _reply(engine, handle, number, _APIS[sent["api"]].answer(sent["body"], number, message, reply))
    return after


def reference_script(message: Message) -> str:
    """Return the script of a reference answer, which replaces the program; "" for a message of a model."""
    calls = message.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], dict) else None
    if call is None or call.get("id") != REFERENCE_CALL:
        return ""
    try:
        return str(json.loads(call["function"]["arguments"])["command"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def _ask(engine: WorkspaceEngine, handle: Handle, after: int, seconds: float) -> int | Ended | None:
    """Return the number of the next request, the program's end, or None if neither happened in *seconds*."""
    result = engine.execute(handle, f"exec {_relay()} next {after} {seconds:.2f}", seconds + 10)
    try:
        found = json.loads(result.output)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "lost" in found:
        return Ended(output="The program ended the relay.")
    if found.get("ended"):
        return _end(engine, handle)
    number = found.get("request")
    return number if isinstance(number, int) and number < 1_000_000 else None


def _end(engine: WorkspaceEngine, handle: Handle) -> Ended:
    """Return how the program ended, as the relay has written it."""
    try:
        ended = json.loads(engine.read(handle, f"{relay.FOLDER}/ended", 1_000_000))
        code, output = ended["code"], ended["output"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return Ended(output="The program ended the relay.")
    return Ended(exit_code=code if isinstance(code, int) else None, output=str(output))


def _read(engine: WorkspaceEngine, handle: Handle, state: ProgramState) -> ProgramRequest:
    """Return the request whose number is in *state*. Raises InvalidRequest."""
    try:
        sent = _sent(engine, handle, state["request"])
    except ValueError:
        raise InvalidRequest("The request is not a JSON object of a known API.") from None
    if not hmac.compare_digest(sent["key"].encode("utf-8", "surrogatepass"), state["token"].encode()):
        raise InvalidRequest("The key is not the one of this episode.", status=401, code="invalid_api_key")
    call = _APIS[sent["api"]].parse(sent["body"], sent["history"])
    digests = [_digest(message) for message in call.messages]
    said = state["said"]
    new = bool(said) and (digests[: len(said)] != said or (state["tools"] and not call.tools))
    added = call.messages if new else call.messages[len(said) :]
    size = state["bytes"] + len(json.dumps(added))
    after: ProgramState = {**state, "said": digests, "tools": bool(call.tools), "bytes": size}
    return ProgramRequest(after, added, call.tools, new, call.parameters)


def _sent(engine: WorkspaceEngine, handle: Handle, number: int) -> _Sent:
    """Return what the relay wrote for a request. Raises ValueError if it has another shape."""
    try:
        sent = json.loads(engine.read(handle, f"{relay.FOLDER}/requests/{number}", 3 * relay.MAX_BODY))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    shapes = {"key": str, "api": str, "body": dict, "history": list}
    if not isinstance(sent, dict) or not all(isinstance(sent.get(name), shape) for name, shape in shapes.items()):
        raise ValueError("not a request")
    if sent["api"] not in _APIS:
        raise ValueError("not an API")
    return cast(_Sent, sent)


def _digest(message: Message) -> str:
    """Return a digest of what a model reads of a message. Clients drop and add other keys when they send it back."""
    calls: Sequence[Mapping[str, JSON]] = cast(Sequence[Mapping[str, JSON]], message.get("tool_calls") or [])
    content = message.get("content")
    texts = isinstance(content, list) and all(part.get("type") == "text" for part in content)
    plain = [
        message["role"],
        content if isinstance(content, list) and not texts else text_of(message),
        [[call.get("id"), call.get("function")] for call in calls],
        message.get("tool_call_id"),
    ]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:32]


def _reply(engine: WorkspaceEngine, handle: Handle, number: int, answer: Answer) -> None:
    part, path = f"{relay.FOLDER}/reply.part", f"{relay.FOLDER}/replies/{number}"
    engine.write(handle, {part: json.dumps(asdict(answer)).encode()})
    engine.execute(handle, f"mv {part} {path} && rm -f {relay.FOLDER}/requests/{number}", 10.0)


def _relay() -> str:
    return f"python3 -I -S -c {shlex.quote(_relay_source())}"


@cache
def _relay_source() -> str:
    return Path(relay.__file__).read_text(encoding="utf-8")
