"""The pool's end of one engine: starts runs in it, sends to them, hears from them."""

import itertools
import json
import secrets
import select
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sandbox.connections.transports.base import Transport
from sandbox.engine.protocol import frames
from sandbox.engine.server import digest
from sandbox.errors import EngineFailed, SandboxUnavailable
from sandbox.limits import Limits

_READY_S = 30.0
_sessions = itertools.count()  # of the whole process, so that two engines of one job never use the same
_CODE_FRAME = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Said:
    """A frame from a run."""

    session: int
    kind: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """A run's end.

    code    exit code, or minus a signal
    why     why it was killed: "", wall, disk, memory, large, asked
    begun   whether the code was ever started; False is the sandbox's fault, and `fault` says which
    """

    session: int
    code: int
    why: str
    begun: bool
    fault: str
    cpu_ms: float
    wall_ms: float
    peak_mb: float
    cut: bool
    stdout: bytes
    stderr: bytes


Event = Said | Ended


class Engine:
    """One engine, used by one thread at a time. Every method raises EngineFailed once the engine is gone."""

    def __init__(
        self,
        transport: Transport,
        *,
        strongest: str = "A",
        landlock_abi: int | None = None,
        packages: tuple[str, ...] = (),
        groups: bool = False,
        judges: "Engine | None" = None,
    ) -> None:
        """`judges`: the engine whose runs this one is to judge, where the two must be apart."""
        self.transport = transport
        self.met = False  # whether its runs can have pipes to those of the engine it judges
        self.runs = 0
        self.harmed = False
        self.tier = ""
        self.missing: dict[str, str] = {}
        self.offered: frozenset[str] = frozenset()  # what can be imported out of the directories in `packages`
        self._options: dict[str, Any] = {"strongest": strongest, "packages": packages, "groups": groups}
        if landlock_abi is not None:
            self._options["landlock_abi"] = landlock_abi
        self._name = secrets.token_hex(16)
        if judges is not None:
            self._options["join"] = judges._name
        elif transport.separate_judge:
            self._options["listen"] = self._name
        self._buffer = frames.EngineBuffer()
        # What has come of each run's words; None once it has announced more than it may say at once.
        self._live: dict[int, frames.RunBuffer | None] = {}
        self._silenced: set[int] = set()  # runs whose words are dropped unread

    def open(self) -> None:
        """Start the engine and hear what isolation it found. Raises SandboxUnavailable."""
        self.transport.open()
        try:
            self.transport.write(frames.to_engine(0, frames.OPTIONS, json.dumps(self._options).encode()))
            kind, payload = self._answer(_READY_S)
        except EngineFailed as error:
            self.close()
            raise SandboxUnavailable(f"The sandbox engine did not start: {error}") from error
        if kind != frames.READY:
            self.close()
            raise SandboxUnavailable("The sandbox engine did not start: it speaks another protocol.")
        ready = json.loads(payload)
        self.tier, self.missing, self.met = ready["tier"], ready["missing"], ready.get("met", False)
        self.offered = frozenset(ready.get("offered", ()))
        if self.transport.renewal and ready.get("digest") != _own_digest():
            self.close()
            raise SandboxUnavailable(
                f"{self.transport.name} holds the engine {ready.get('digest', 'of an early release')}, and this "
                f"installation needs {_own_digest()}: {self.transport.renewal}."
            )

    def start(
        self,
        job: dict[str, Any],
        bodies: Sequence[bytes],
        limits: Limits,
        *,
        max_frame: int = _CODE_FRAME,
        link: bool = False,
        linked_to: int = 0,
        relayed: bool = False,
    ) -> int:
        """Start a run and return its session.

        link       it is a candidate that shall have a pipe to its judge
        linked_to  it is the judge of that candidate, in this engine or in one that it has met
        relayed    it talks with a run of another engine, so that every word of it is waited for
        """
        session = next(_sessions) % 65535 + 1
        self.runs += 1
        size_mb = sum(map(len, bodies)) // (1 << 20) + (1 if bodies else 0)
        allowed = limits.to_json() | {"input_mb": size_mb}
        head = {"limits": allowed, "link": link, "linked_to": linked_to, "rest": not relayed}
        payload = frames.with_head(head, frames.with_head(job | {"limits": allowed}, *bodies))
        self.transport.write(frames.to_engine(session, frames.START, payload))
        self._live[session] = frames.RunBuffer(max_frame)
        return session

    def send(self, session: int, kind: int, payload: bytes) -> None:
        """Send a frame to a run; one that has ended does not get it."""
        self.transport.write(frames.to_engine(session, frames.DATA, bytes([kind]) + payload))

    def kill(self, session: int) -> None:
        """End a run. Its `Ended` follows."""
        self.transport.write(frames.to_engine(session, frames.KILL))

    def silence(self, session: int) -> None:
        """End a run and read none of its frames any more, also of those that have arrived. Its `Ended` follows.

        For a run that broke the protocol: reading a frame costs far more than writing one.
        """
        if session in self._live and session not in self._silenced:
            self._silenced.add(session)
            self.kill(session)

    def read(self) -> Iterator[Event]:
        """Events that have arrived, each read when it is asked for; blocks for the first bytes."""
        data = self.transport.read()
        if not data:
            raise EngineFailed("The engine ended.")
        self._buffer.feed(data)
        try:
            for session, kind, payload in self._buffer.frames():
                if session not in self._live:
                    continue
                if kind == frames.DATA:
                    yield from self._said(session, payload)
                elif kind == frames.EXIT:
                    yield self._ended(session, payload)
        except (ValueError, KeyError, IndexError, frames.FrameTooLarge) as error:
            raise EngineFailed(f"The engine broke its protocol: {error}.") from error

    def _said(self, session: int, data: bytes) -> Iterator[Event]:
        """The frames that a run's bytes complete. One that announces a larger one than it may send is ended."""
        buffer = self._live[session]
        if buffer is None or session in self._silenced:
            return
        buffer.feed(data)
        try:
            for kind, payload in buffer.frames():
                yield Said(session, kind, payload)
                if session in self._silenced:
                    buffer.rest()
                    return
        except frames.FrameTooLarge:
            self._live[session] = None
            self.kill(session)

    def _ended(self, session: int, payload: bytes) -> Ended:
        head, (stdout, stderr) = frames.split_head(payload)
        self._silenced.discard(session)
        if self._live.pop(session) is None:
            head["why"] = "large"
        return Ended(session=session, stdout=stdout, stderr=stderr, **head)

    def healthy(self, patience_s: float = 2.0) -> bool:
        """Whether the engine answers."""
        try:
            self.transport.write(frames.to_engine(0, frames.PING, b"?"))
            return self._answer(patience_s)[0] == frames.PONG
        except EngineFailed:
            return False

    @property
    def busy(self) -> bool:
        """Whether a run has not ended yet."""
        return bool(self._live)

    def close(self) -> None:
        """End the engine and everything in it."""
        self.transport.close()

    def _answer(self, patience_s: float) -> tuple[int, bytes]:
        """The next frame of session 0."""
        deadline = time.monotonic() + patience_s
        while True:
            for session, kind, payload in self._buffer.frames():
                if session == 0:
                    return kind, payload
            if not wait_readable([self.transport], deadline - time.monotonic()):
                raise EngineFailed(f"no answer within {patience_s:g} seconds.")
            data = self.transport.read()
            if not data:
                raise EngineFailed("it ended.")
            self._buffer.feed(data)


@cache
def _own_digest() -> str:
    return digest.source_digest(str(Path(digest.__file__).parent.parent))


def wait_readable(transports: Sequence[Transport], timeout_s: float) -> list[Transport]:
    """Those with something to read, after waiting for the first; none on timeout."""
    poll = select.poll()
    by_fd = {transport.fileno(): transport for transport in transports}
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    return [by_fd[fd] for fd, _ in poll.poll(max(0.0, timeout_s) * 1000)]
