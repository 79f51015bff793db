"""A box of workspaces that is a folder on this machine, for programs that need packages that images do not have."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from hub.harnesses.steps import program
from hub.harnesses.steps.program import Ended, ProgramState, next_request, send_reply, start_program
from hub.protocols.calls import Reply
from hub.protocols.messages import JSON, Message, Tool
from sandbox.workspaces import relay
from sandbox.workspaces.base import CommandResult, Handle, WorkspaceError


class LocalBox:
    """The operations that programs need. The paths of a box are replaced by paths below *folder*."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _here(self, text: str) -> str:
        for path in (relay.FOLDER, program.FOLDER):
            text = text.replace(path, f"{self.folder}/{Path(path).name.strip('.')}")
        return text

    def execute(
        self, handle: Handle, command: str, seconds: float, *, environment: Mapping[str, str] | None = None
    ) -> CommandResult:
        given = {name: self._here(value) for name, value in (environment or {}).items()}
        result = subprocess.run(
            ["bash", "-c", self._here(command)],
            capture_output=True,
            text=True,
            timeout=seconds + 30,
            cwd=self.folder,
            env={**os.environ, **given},
        )
        return CommandResult(exit_code=result.returncode, output=result.stdout, cut=0, timed_out=False, wall_ms=1.0)

    def read(self, handle: Handle, path: str, max_bytes: int) -> bytes:
        try:
            return Path(self._here(path)).read_bytes()[:max_bytes]
        except OSError as error:
            raise WorkspaceError(str(error)) from None

    def write(self, handle: Handle, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        for path, content in files.items():
            target = Path(self._here(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(mode)


@dataclass
class Played:
    """What the model read in each request of a program, and its end."""

    messages: list[list[Message]] = field(default_factory=list)  # of the whole conversation
    tools: list[list[Tool]] = field(default_factory=list)
    new: list[bool] = field(default_factory=list)
    parameters: list[dict[str, JSON]] = field(default_factory=list)
    end: Ended = field(default_factory=Ended)


@dataclass(frozen=True)
class After:
    """A reply that is sent once the program has written *file*."""

    file: str
    reply: Reply | Message

    def wait(self, folder: Path) -> Reply | Message:
        deadline = time.monotonic() + 30
        while not (folder / self.file).exists():
            assert time.monotonic() < deadline, f"the program did not write {self.file}"
            time.sleep(0.01)
        return self.reply


def play_program(
    monkeypatch: pytest.MonkeyPatch, folder: Path, script: str, replies: Sequence[Reply | Message | After]
) -> Played:
    """Run a *script* with this interpreter's packages. A message among *replies* comes from a trainer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setattr(program, "PORT", free.getsockname()[1])
    box, handle = cast(Any, LocalBox(folder)), Handle(host="", id="", generation="", image="")
    files = {"agent/main.py": f"#!{sys.executable}\n{script}".encode()}
    start_program(box, handle, "agent/main.py", files, "Do it.", "key")
    state: ProgramState = {"token": "key", "request": 0, "said": [], "tools": False, "bytes": 0}
    played, left, conversation = Played(), list(replies), list[Message]()
    while True:
        found = next_request(box, handle, state, deadline=time.time() + 60, limit="time")
        if isinstance(found, Ended):
            played.end = found
            assert found.exit_code == 0, found.output
            assert not left, "there are more replies than requests"
            return played
        conversation = [*([] if found.new else conversation), *found.messages]
        played.messages.append(list(conversation))
        played.tools.append(found.tools)
        played.new.append(found.new)
        played.parameters.append(found.parameters)
        assert left, "there are more requests than replies"
        first = left.pop(0)
        answer = first.wait(folder) if isinstance(first, After) else first
        reply = answer if isinstance(answer, Reply) else None
        message = answer.message if isinstance(answer, Reply) else answer
        state = send_reply(box, handle, found.state, message, reply)
        conversation.append(message)
