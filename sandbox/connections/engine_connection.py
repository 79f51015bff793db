"""Connection to one engine: starts runs in it, sends to them, and reads their messages."""

import itertools
import json
import secrets
import select
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from sandbox.connections.events import Event, RunEnd, RunMessage
from sandbox.connections.transports import Transport
from sandbox.engine.protocol import frames
from sandbox.engine.server import digest
from sandbox.errors import EngineFailed, SandboxUnavailable, SandboxUnreachable
from sandbox.limits import MAX_FRAME_BYTES, Limits

_READY_TIMEOUT_S = 30.0
_sessions = itertools.count()  # one count per process, so that the two engines of a job never use the same number


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """How a run exchanges frames with another run; by default, it does not.

    offered    the run is a candidate that gets a pipe to its judge
    candidate  the run is the judge of the candidate with this session, in this engine or in one that it can link to
    relayed    the other run is in an engine that it cannot link to, so each frame is forwarded at once
    """

    offered: bool = False
    candidate: int = 0
    relayed: bool = False


class EngineConnection:
    """One engine, used by one thread at a time. Every method raises EngineFailed once the engine is gone.

    can_link   whether its runs can have pipes to runs of the engine that it judges for
    runs       number of runs started
    suspect    whether a run timed out or interfered with the sandbox; the engine is then not used for another job
    available_packages  packages that runs can import from the directories in `packages`
    """

    def __init__(
        self,
        transport: Transport,
        *,
        strongest: str = "A",
        landlock_abi: int | None = None,
        packages: tuple[str, ...] = (),
        cgroups: bool = False,
        candidate_engine: "EngineConnection | None" = None,
    ) -> None:
        """*candidate_engine* is the engine whose runs this one judges, if judges need an engine of their own."""
        self.transport = transport
        self.can_link = False
        self.runs = 0
        self.suspect = False
        self.tier = ""
        self.missing: dict[str, str] = {}
        self.available_packages: frozenset[str] = frozenset()
        self._options: dict[str, object] = {"strongest": strongest, "packages": packages, "groups": cgroups}
        if landlock_abi is not None:
            self._options["landlock_abi"] = landlock_abi
        self._id = secrets.token_hex(16)
        if candidate_engine is not None:
            self._options["join"] = candidate_engine._id
        elif transport.separate_test_judge:
            self._options["listen"] = self._id
        self._buffer = frames.EngineBuffer()
        # Frames received so far of each run; None once the run announced a larger frame than it may send.
        self._runs: dict[int, frames.RunBuffer | None] = {}
        self._ignored: set[int] = set()  # sessions whose frames are dropped unread

    def open(self) -> None:
        """Start the engine and read which isolation it found. Raises SandboxUnavailable."""
        self.transport.open()
        try:
            self.transport.write(frames.to_engine(0, frames.OPTIONS, json.dumps(self._options).encode()))
            kind, payload = self._read_reply(_READY_TIMEOUT_S)
        except EngineFailed as error:
            self.close()
            failure = SandboxUnavailable if self.transport.backend == "local" else SandboxUnreachable
            raise failure(f"The sandbox engine did not start: {error}") from error
        if kind != frames.READY:
            self.close()
            raise SandboxUnavailable("The sandbox engine did not start: it uses another protocol.")
        ready = json.loads(payload)
        if "error" in ready:
            self.close()
            raise SandboxUnavailable(f"The sandbox engine did not start: {ready['error']}")
        self.tier, self.missing, self.can_link = ready["tier"], ready["missing"], ready.get("met", False)
        self.available_packages = frozenset(ready.get("offered", ()))
        if self.transport.rebuild_hint and ready.get("digest") != _own_digest():
            self.close()
            raise SandboxUnavailable(
                f"{self.transport.description} contains the engine {ready.get('digest', 'of an early release')}, but "
                f"this installation needs {_own_digest()}: {self.transport.rebuild_hint}."
            )

    def start(
        self,
        job: Mapping[str, object],
        bodies: Sequence[bytes],
        limits: Limits,
        *,
        max_frame: int = MAX_FRAME_BYTES,
        link: Link = Link(),
    ) -> int:
        """Start a run and return its session."""
        session = next(_sessions) % 65535 + 1
        self.runs += 1
        size_mb = sum(map(len, bodies)) // (1 << 20) + (1 if bodies else 0)
        allowed = limits.to_json() | {"input_mb": size_mb}
        head = {"limits": allowed, "link": link.offered, "linked_to": link.candidate, "rest": not link.relayed}
        payload = frames.with_head(head, frames.with_head({**job, "limits": allowed}, *bodies))
        self.transport.write(frames.to_engine(session, frames.START, payload))
        self._runs[session] = frames.RunBuffer(max_frame)
        return session

    def send(self, session: int, kind: int, payload: bytes) -> None:
        """Send a frame to a run. A run that has ended does not get it."""
        self.transport.write(frames.to_engine(session, frames.DATA, bytes([kind]) + payload))

    def kill(self, session: int) -> None:
        """End a run. Its RunEnd follows."""
        self.transport.write(frames.to_engine(session, frames.KILL))

    def kill_and_ignore(self, session: int) -> None:
        """End a run and drop its remaining frames unread, also those that have arrived. Its RunEnd follows.

        For a run that broke the protocol: reading a frame costs far more than writing one.
        """
        if session in self._runs and session not in self._ignored:
            self._ignored.add(session)
            self.kill(session)

    def read(self) -> Iterator[Event]:
        """Yield the events that have arrived; block until the first bytes arrive."""
        data = self.transport.read()
        if not data:
            raise EngineFailed("The engine ended.")
        self._buffer.feed(data)
        try:
            for session, kind, payload in self._buffer.frames():
                if session not in self._runs:
                    continue
                if kind == frames.DATA:
                    yield from self._read_messages(session, payload)
                elif kind == frames.EXIT:
                    yield self._read_end(session, payload)
        except (ValueError, KeyError, IndexError, frames.FrameTooLarge) as error:
            raise EngineFailed(f"The engine broke its protocol: {error}.") from error

    def _read_messages(self, session: int, data: bytes) -> Iterator[RunMessage]:
        """Yield the frames that *data* completes. Kill a run that announces a larger frame than it may send."""
        buffer = self._runs[session]
        if buffer is None or session in self._ignored:
            return
        buffer.feed(data)
        try:
            for kind, payload in buffer.frames():
                yield RunMessage(session, kind, payload)
                if session in self._ignored:
                    buffer.rest()
                    return
        except frames.FrameTooLarge:
            self._runs[session] = None
            self.kill(session)

    def _read_end(self, session: int, payload: bytes) -> RunEnd:
        data, (stdout, stderr) = frames.split_head(payload)
        head = cast(frames.ExitHead, data)
        self._ignored.discard(session)
        too_large = self._runs.pop(session) is None
        return RunEnd(
            session=session,
            code=head["code"],
            reason="large" if too_large else head["why"],
            started=head["begun"],
            fault=head["fault"],
            cpu_ms=head["cpu_ms"],
            wall_ms=head["wall_ms"],
            peak_mb=head["peak_mb"],
            cut=head["cut"],
            stdout=stdout,
            stderr=stderr,
        )

    def is_responsive(self, timeout_s: float = 2.0) -> bool:
        """Return whether the engine answers."""
        try:
            self.transport.write(frames.to_engine(0, frames.PING, b"?"))
            return self._read_reply(timeout_s)[0] == frames.PONG
        except EngineFailed:
            return False

    @property
    def busy(self) -> bool:
        """Whether a run has not ended yet."""
        return bool(self._runs)

    def close(self) -> None:
        """End the engine and everything in it."""
        self.transport.close()

    def _read_reply(self, timeout_s: float) -> tuple[int, bytes]:
        """Return kind and payload of the next frame of session 0, which is the engine itself."""
        deadline = time.monotonic() + timeout_s
        while True:
            for session, kind, payload in self._buffer.frames():
                if session == 0:
                    return kind, payload
            if not wait_readable([self.transport], deadline - time.monotonic()):
                raise EngineFailed(f"no answer within {timeout_s:g} seconds.")
            data = self.transport.read()
            if not data:
                raise EngineFailed("it ended.")
            self._buffer.feed(data)


@cache
def _own_digest() -> str:
    return digest.source_digest(str(Path(digest.__file__).parent.parent))


def wait_readable(transports: Sequence[Transport], timeout_s: float) -> list[Transport]:
    """Wait until a transport has something to read, and return those that have; none after the timeout."""
    poll = select.poll()
    by_fd = {transport.fileno(): transport for transport in transports}
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    return [by_fd[fd] for fd, _ in poll.poll(max(0.0, timeout_s) * 1000)]
