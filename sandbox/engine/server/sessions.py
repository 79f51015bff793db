"""Sessions: each has one job and its run, the data to and from the run, and the limits that the engine checks."""

import os
import socket
import time
from typing import NamedTuple

from ..isolation.cgroups import Group
from ..protocol import frames

_CHUNK = 1 << 18
_LARGE_READ = 32_768  # bytes read at once, after which more is expected without delay


class Run(NamedTuple):
    """A process that the zygote forked. It waits for a job."""

    run_id: int
    disk_mb: int
    pipe: socket.socket
    out: int
    err: int

    def close(self) -> None:
        self.pipe.close()
        os.close(self.out)
        os.close(self.err)


class Session:
    """A job from START to EXIT. Nothing here blocks."""

    def __init__(
        self,
        number: int,
        run: Run,
        *,
        wall_s: float,
        keep: int,
        read_delay_s: float,
        group: Group | None = None,
        disk: tuple[str, int, int] | None = None,
    ) -> None:
        """
        keep          bytes of stdout, and of stderr, to keep
        read_delay_s  seconds before the next read after a small one, so that several frames are read at once
        disk          without namespaces: directory, and bytes and files allowed in it
        """
        self.number, self.run, self.group, self.disk = number, run, group, disk
        self.started = time.monotonic()
        self.deadline = self.started + wall_s
        self.read_delay, self.read_after = read_delay_s, self.started + read_delay_s
        self.keep, self.cut = keep, False
        self.buffer = frames.RunBuffer()
        self.sending = bytearray()
        self.output = {run.out: bytearray(), run.err: bytearray()}
        # Descriptors that have not reached their end, and the events that they are polled for.
        self.open = {run.pipe.fileno(): 0, run.out: 0, run.err: 0}
        self.begun = False
        self.fault = ""
        self.kill_reason = ""  # why the engine killed it

    def send(self, kind: int, payload: bytes) -> None:
        """Send a frame to the run, now or when it can take it."""
        self.sending += frames.to_run(kind, payload)
        self.flush()

    def flush(self) -> None:
        """Send waiting data as far as the run takes it."""
        try:
            while self.sending:
                sent = self.run.pipe.send(self.sending)
                del self.sending[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.sending.clear()  # it has ended, and its exit will be reported

    def receive(self) -> bytes | None:
        """Read data of the run. Return b"" at its end, None if there is none for now."""
        try:
            data = self.run.pipe.recv(_CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self._delay_next_read(data)
        return data

    def data_for_pool(self, data: bytes) -> bytes:
        """Return the part of the run's data that is for the pool: everything after BEGUN."""
        if self.begun:
            return data
        # Until BEGUN no untrusted code has run, so frames before it can be trusted.
        self.buffer.feed(data)
        for kind, payload in self.buffer.frames():
            self.begun = kind == frames.BEGUN
            if self.begun:
                return self.buffer.rest()
            self.fault = payload.decode("utf-8", "replace")[:500]
        return b""

    def drain(self, fd: int) -> bool | None:
        """Read output of the run and keep what fits. Return False at the end, None if there is none for now."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return None
        self._delay_next_read(data)
        kept = self.output[fd]
        room = self.keep - len(kept)
        kept += data[: max(0, room)]
        self.cut = self.cut or len(data) > room
        return bool(data)

    def _delay_next_read(self, data: bytes) -> None:
        """Delay the next read, unless this one was large."""
        if data and len(data) < _LARGE_READ:
            self.read_after = time.monotonic() + self.read_delay

    def overflows(self) -> bool:
        """Return whether the run exceeds its disk limits, if it has no file system of its own."""
        return self.disk is not None and _exceeds(*self.disk)


def _exceeds(folder: str, max_bytes: int, max_files: int) -> bool:
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
            continue  # it changed during the walk
    return False
