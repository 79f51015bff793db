"""A run's end of its pipes: one to the engine, and for a candidate and its judge one between the two."""

import os
import select
import struct

from . import frames

FD = 3  # the pipe to the engine, in every run
LINK = 4  # the pipe between candidate and judge, if they have one of their own

_CHUNK = 1 << 15
_HEADER = struct.Struct(">IB")


class Closed(BaseException):
    """The other end is closed. Not an Exception, so that `except Exception` in tested code does not catch it."""


class Channel:
    """Blocking reads and writes of frames on one descriptor."""

    def __init__(self, fd: int = FD) -> None:
        self._fd = fd
        self._rest = b""

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Write one complete frame."""
        data = _HEADER.pack(len(payload), kind) + payload
        written = os.write(self._fd, data)
        while written < len(data):
            written += os.write(self._fd, data[written : written + (1 << 20)])

    def receive(self) -> tuple[int, bytes]:
        """Return the next frame as (kind, payload). Raises Closed at the end of the stream, frames.FrameTooLarge."""
        # Most frames need one read. The bytes after the frame belong to the next one.
        data = self._rest or self._read_some()
        while len(data) < _HEADER.size:
            data += self._read_some()
        length, kind = _HEADER.unpack_from(data)
        if length > frames.MAX_FRAME:
            raise frames.FrameTooLarge(f"a frame of {length} bytes")
        end = _HEADER.size + length
        if len(data) < end:
            parts = [data]
            missing = end - len(data)
            while missing > 0:
                parts.append(self._read_some())
                missing -= len(parts[-1])
            data = b"".join(parts)
        self._rest = data[end:]
        return kind, data[_HEADER.size : end]

    def has_input(self) -> bool:
        """Return whether a frame, or the end of the stream, can be read without waiting."""
        return bool(self._rest) or bool(select.select([self._fd], [], [], 0)[0])

    def _read_some(self) -> bytes:
        data = os.read(self._fd, _CHUNK)
        if not data:
            raise Closed
        return data
