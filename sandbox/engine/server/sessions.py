"""One job and the run that has it: what is still to be said to the run, what it says and prints, what it may use."""

import os
import socket
import time
from typing import NamedTuple

from ..isolation.cgroups import Group
from ..protocol import frames

_CHUNK = 1 << 18
_MUCH = 32_768  # bytes read at once, after which more is to be expected at once


class Run(NamedTuple):
    """A process of the zygote's, from the order for it to its end; it waits for a job first."""

    seat: int
    disk_mb: int
    pipe: socket.socket
    out: int
    err: int

    def close(self) -> None:
        self.pipe.close()
        os.close(self.out)
        os.close(self.err)


class Session:
    """A job from START to EXIT. Nothing here blocks; what is read comes back as None when there is nothing for now."""

    def __init__(
        self,
        number: int,
        run: Run,
        *,
        wall_s: float,
        keep: int,
        rest_s: float,
        group: Group | None = None,
        disk: tuple[str, int, int] | None = None,
    ) -> None:
        """
        keep    bytes of stdout, and of stderr
        rest_s  for which its words may wait: reading each at once costs more than it brings
        disk    without namespaces: directory, and bytes and files allowed in it
        """
        self.number, self.run, self.group, self.disk = number, run, group, disk
        self.started = time.monotonic()
        self.deadline = self.started + wall_s
        self.rest, self.rest_until = rest_s, self.started + rest_s
        self.keep, self.cut = keep, False
        self.buffer = frames.RunBuffer()
        self.sending = bytearray()
        self.output = {run.out: bytearray(), run.err: bytearray()}
        # Descriptors that have not come to their end, and the events they are polled for.
        self.open = {run.pipe.fileno(): 0, run.out: 0, run.err: 0}
        self.begun = False
        self.fault = ""
        self.why = ""  # why the engine killed it

    def send(self, kind: int, payload: bytes) -> None:
        """Say something to the run, now or when it reads on."""
        self.sending += frames.to_run(kind, payload)
        self.send_on()

    def send_on(self) -> None:
        """Say what waits, as far as the run takes it."""
        try:
            while self.sending:
                sent = self.run.pipe.send(self.sending)
                del self.sending[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.sending.clear()  # it is gone; its exit is on the way

    def receive(self) -> bytes | None:
        """Read what the run says; nothing at the end."""
        try:
            data = self.run.pipe.recv(_CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self._heard(data)
        return data

    def words(self, data: bytes) -> bytes:
        """Of what it says, what is for the pool: everything after BEGUN."""
        if self.begun:
            return data
        # Until BEGUN no untrusted code has run, so what comes first is the engine's own word.
        self.buffer.feed(data)
        for kind, payload in self.buffer.frames():
            self.begun = kind == frames.BEGUN
            if self.begun:
                return self.buffer.rest()
            self.fault = payload.decode("utf-8", "replace")[:500]
        return b""

    def drain(self, fd: int) -> bool | None:
        """Read what the run prints, and keep what fits; False at the end."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return None
        self._heard(data)
        kept = self.output[fd]
        room = self.keep - len(kept)
        kept += data[: max(0, room)]
        self.cut = self.cut or len(data) > room
        return bool(data)

    def _heard(self, data: bytes) -> None:
        """Leave it alone for a moment, unless it has more to say at once."""
        if data and len(data) < _MUCH:
            self.rest_until = time.monotonic() + self.rest

    def overflows(self) -> bool:
        """Whether it has more files than it may, where no file system of its own keeps it from that."""
        return self.disk is not None and _used_too_much(*self.disk)


def _used_too_much(folder: str, max_bytes: int, max_files: int) -> bool:
    size, count, folders = 0, 0, [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if count > max_files or size > max_bytes:
                        return True
        except OSError:
            continue  # it changed under the walk
    return False
