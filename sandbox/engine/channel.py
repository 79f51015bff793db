"""A run's end of its pipe to the engine."""

import os
import select

from . import frames

FD = 3  # where every run finds it


class Closed(BaseException):
    """The engine closed the pipe: nobody waits for this run any more."""


class Channel:
    """Blocking reads and writes of frames on one descriptor."""

    def __init__(self, fd: int = FD) -> None:
        self._fd = fd
        self._buffer = frames.RunBuffer()
        self._waiting: list[tuple[int, bytes]] = []

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Write one frame whole."""
        data = memoryview(frames.to_run(kind, payload))
        while data:
            data = data[os.write(self._fd, data) :]

    def receive(self) -> tuple[int, bytes]:
        """The next frame as (kind, payload). Raises Closed at the end of the stream."""
        self._await_one()
        return self._waiting.pop(0)

    def peek(self) -> int:
        """The next frame's kind, left where it is."""
        self._await_one()
        return self._waiting[0][0]

    def _await_one(self) -> None:
        while not self._waiting:
            data = os.read(self._fd, 1 << 18)
            if not data:
                raise Closed
            self._buffer.feed(data)
            self._waiting = list(self._buffer.frames())

    def has_input(self) -> bool:
        """Whether a frame, or part of one, has already come."""
        return bool(self._waiting) or bool(select.select([self._fd], [], [], 0)[0])
