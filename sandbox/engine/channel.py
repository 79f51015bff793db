"""A run's end of its pipes: one to the engine, and for a candidate and its judge in one engine, one between the two."""

import os
import select
import struct

from . import frames

FD = 3  # the pipe to the engine, in every run
LINK = 4  # the pipe between candidate and judge, where they have one of their own

_HEADER = struct.Struct(">IB")


class Closed(BaseException):
    """The other end is gone. Not an Exception, so that no `except` of tested code takes it for its own."""


class Channel:
    """Blocking reads and writes of frames on one descriptor."""

    def __init__(self, fd: int = FD) -> None:
        self._fd = fd

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Write one frame whole."""
        data = _HEADER.pack(len(payload), kind) + payload
        written = os.write(self._fd, data)
        while written < len(data):
            written += os.write(self._fd, data[written : written + (1 << 20)])

    def receive(self) -> tuple[int, bytes]:
        """The next frame as (kind, payload). Raises Closed at the end of the stream, frames.FrameTooLarge."""
        length, kind = _HEADER.unpack(self._read(_HEADER.size))
        if length > frames.MAX_FRAME:
            raise frames.FrameTooLarge(f"a frame of {length} bytes")
        return kind, self._read(length) if length else b""

    def has_input(self) -> bool:
        """Whether a frame has already come, or the end of the stream."""
        return bool(select.select([self._fd], [], [], 0)[0])

    def _read(self, size: int) -> bytes:
        data = os.read(self._fd, size)
        if len(data) == size:
            return data
        parts = [data]
        while data and size > len(data):
            size -= len(data)
            data = os.read(self._fd, size)
            parts.append(data)
        if not data:
            raise Closed
        return b"".join(parts)
