"""Frames of both protocols: between the pool and an engine, and between an engine and a run.

Pool and engine: length (4 bytes), session (2 bytes), kind (1 byte), payload. Session 0 is the engine itself.
Engine and run:  length (4 bytes), kind (1 byte), payload. All numbers big-endian; length counts the payload.
"""

import struct
from collections.abc import Iterator
from typing import TypedDict

from . import compact_json

_ENGINE = struct.Struct(">IHB")
_RUN = struct.Struct(">IB")
_LENGTH = struct.Struct(">I")

MAX_FRAME = 96 * 1024 * 1024

# Pool to engine
OPTIONS = ord("O")  # JSON; answered by READY
START = ord("S")  # head JSON {limits, rest, link or linked_to}, then the job for the run
DATA = ord("D")  # to a run: kind byte and payload of a frame; from it: bytes of its frames as they arrived
KILL = ord("K")
PING = ord("P")  # answered by PONG with the same payload

# Engine to pool
READY = ord("R")
PONG = ord("Q")
EXIT = ord("X")  # head JSON, see ExitHead; then stdout, then stderr

# Between an engine and a run
JOB = ord("J")  # to the run, first: its job
BEGUN = ord("B")  # from the run, first: locked down, about to run the code
REPORT = ord("V")  # from the run, for the pool
PEER = ord("P")  # between candidate and judge; the pool passes it on if they have no pipe of their own
PEER_GONE = ord("G")  # to one of them: the other's process has ended


class ExitHead(TypedDict):
    """The head of an EXIT frame.

    code   exit code, or minus a signal
    why    why the engine killed the run: "", wall, disk, memory or asked
    begun  whether the code was started; if not, `fault` has the reason
    cut    whether output was cut
    """

    code: int
    why: str
    begun: bool
    fault: str
    cpu_ms: float
    wall_ms: float
    peak_mb: float
    cut: bool


class FrameTooLarge(Exception):
    """A frame announced more bytes than its reader accepts."""


def to_engine(session: int, kind: int, payload: bytes = b"") -> bytes:
    """Return one frame between pool and engine."""
    return _ENGINE.pack(len(payload), session, kind) + payload


def to_run(kind: int, payload: bytes = b"") -> bytes:
    """Return one frame between engine and run."""
    return _RUN.pack(len(payload), kind) + payload


def with_head(head: object, *bodies: bytes) -> bytes:
    """Return a payload of a JSON head and bodies, each with its length."""
    parts = [compact_json.dumps(head), *bodies]
    return b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def split_head(payload: bytes) -> tuple[dict[str, object], list[bytes]]:
    """Return the head and the bodies of a payload that `with_head` made. Raises ValueError if it is malformed."""
    parts, at = [], 0
    while at < len(payload):
        if at + 4 > len(payload):
            raise ValueError("cut length")
        (length,) = _LENGTH.unpack_from(payload, at)
        at += 4
        if at + length > len(payload):
            raise ValueError("cut body")
        parts.append(payload[at : at + length])
        at += length
    if not parts:
        raise ValueError("no head")
    head = compact_json.loads(parts[0])
    if not isinstance(head, dict):
        raise ValueError("a head that is not an object")
    return head, parts[1:]


class _Buffer:
    """Received bytes, from which complete frames are taken out."""

    header: struct.Struct

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self.limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data

    def rest(self) -> bytes:
        """Take out the bytes that are not part of a frame taken out before."""
        rest = bytes(self._data)
        self._data.clear()
        return rest

    def _frames(self) -> Iterator[tuple[tuple[int, ...], bytes]]:
        size = self.header.size
        while len(self._data) >= size:
            length, *rest = self.header.unpack_from(self._data)
            if length > self.limit:
                raise FrameTooLarge(f"a frame of {length} bytes, over the limit of {self.limit}")
            if len(self._data) < size + length:
                return
            payload = bytes(self._data[size : size + length])
            del self._data[: size + length]
            yield tuple(rest), payload


class EngineBuffer(_Buffer):
    """Reads frames between pool and engine."""

    header = _ENGINE

    def frames(self) -> Iterator[tuple[int, int, bytes]]:
        """Take out every complete frame as (session, kind, payload). Raises FrameTooLarge."""
        for (session, kind), payload in self._frames():
            yield session, kind, payload


class RunBuffer(_Buffer):
    """Reads frames between engine and run."""

    header = _RUN

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Take out every complete frame as (kind, payload). Raises FrameTooLarge."""
        for (kind,), payload in self._frames():
            yield kind, payload
