"""The engine's own process: speaks with the pool, has the zygote start runs, relays their frames, drains their output.

It holds one session per job. A candidate and its judge get a pipe between them (see `links`); where they live in two
engines that cannot meet, their frames for each other go up to the pool, which passes them on.

One spare run waits, locked down, for the next job: a job then need not wait for a fork.
"""

import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

from ..isolation import lockdown
from ..isolation.cgroups import Group
from ..isolation.lockdown import Base
from ..protocol import channel, frames
from ..zygote import process as zygote
from .digest import source_digest
from .links import Links, meeting
from .sessions import Run, Session

_CHUNK = 1 << 18
_BACKLOG = 4 << 20  # bytes waiting for a slow reader, from which its writer is not read any more
_DISK_WATCH_S = 0.1
_REST_S = 0.004


class Engine:
    """The event loop."""

    def __init__(self, base: Base, control: socket.socket, read_fd: int, write_fd: int, links: Links) -> None:
        self._base = base
        self._control = control
        self._links = links
        self._read_fd, self._write_fd = read_fd, write_fd
        self._incoming = frames.EngineBuffer()
        self._outgoing = bytearray()
        self._sessions: dict[int, Session] = {}
        self._seats: dict[int, Session] = {}  # the same, by the seat of their run
        self._owners: dict[int, Session] = {}  # descriptor -> session
        self._ordered = 0  # runs so far
        self._spare: Run | None = None
        self._last_disk_mb = 0
        self._poll = select.poll()
        self._writing = False  # whether the poll waits for room in the pipe to the pool
        self._open = True

    def serve(self) -> None:
        """Until the pool closes its end or the zygote dies."""
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)
        self._poll.register(self._read_fd, select.POLLIN)
        self._poll.register(self._control, select.POLLIN)
        while self._open:
            self._choose_readers()
            for fd, events in self._poll.poll(self._patience()):
                self._handle(fd, events)
            self._enforce()

    # ---- the loop's parts -------------------------------------------------------------------------------------------

    def _choose_readers(self) -> None:
        """Write where something waits; leave unread what would only grow another backlog."""
        if self._outgoing:
            self._flush()
        if self._writing != bool(self._outgoing):
            self._writing = not self._writing
            self._await_room()
        crowded = len(self._outgoing) > _BACKLOG
        now = time.monotonic()
        for session in self._sessions.values():
            self._listen(session, crowded, now)

    def _await_room(self) -> None:
        if self._read_fd == self._write_fd:
            self._poll.register(self._read_fd, select.POLLIN | (select.POLLOUT if self._writing else 0))
        elif self._writing:
            self._poll.register(self._write_fd, select.POLLOUT)
        else:
            self._poll.unregister(self._write_fd)

    def _listen(self, session: Session, crowded: bool, now: float) -> None:
        """Have a session's descriptors polled for what is wanted now; most runs end before anything is."""
        resting = session.rest_until > now
        for fd, polled in session.open.items():
            is_pipe = fd == session.run.pipe.fileno()
            wanted = 0 if resting or (crowded and is_pipe) else select.POLLIN
            if is_pipe and session.sending:
                wanted |= select.POLLOUT
            if wanted != polled:
                session.open[fd] = wanted
                if wanted:
                    self._poll.register(fd, wanted)
                else:  # registered for nothing, it would still report its end
                    self._poll.unregister(fd)

    def _patience(self) -> float | None:
        """Milliseconds until something must be enforced."""
        if not self._sessions:
            return None
        now = time.monotonic()
        sessions = self._sessions.values()
        soonest = min(session.deadline for session in sessions) - now
        resting = [session.rest_until - now for session in sessions if session.rest_until > now]
        soonest = min([soonest, *resting])
        if any(session.disk for session in sessions):
            soonest = min(soonest, _DISK_WATCH_S)
        return max(0.0, soonest) * 1000 + 0.5

    def _handle(self, fd: int, events: int) -> None:
        if fd == self._read_fd:
            self._from_pool()
        elif fd == self._control.fileno():
            self._from_zygote()
        elif fd == self._write_fd:
            self._flush()
        elif (session := self._owners.get(fd)) is not None:
            if fd != session.run.pipe.fileno():
                self._from_output(session, fd)
                return
            if events & select.POLLOUT:
                session.send_on()
            if events & ~select.POLLOUT:
                self._from_run(session)

    def _enforce(self) -> None:
        now = time.monotonic()
        for session in list(self._sessions.values()):
            if session.why:
                continue
            if now >= session.deadline:
                self._kill(session, "wall")
            elif session.overflows():
                self._kill(session, "disk")

    # ---- pool -------------------------------------------------------------------------------------------------------

    def _from_pool(self) -> None:
        try:
            data = os.read(self._read_fd, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._open = False
            return
        self._incoming.feed(data)
        for number, kind, payload in self._incoming.frames():
            if kind == frames.START:
                self._start(number, payload)
            elif kind == frames.DATA and number in self._sessions:
                self._sessions[number].send(payload[0], payload[1:])
            elif kind == frames.KILL and number in self._sessions:
                self._kill(self._sessions[number], "asked")
            elif kind == frames.PING:
                self._tell(0, frames.PONG, payload)

    def _tell(self, number: int, kind: int, payload: bytes) -> None:
        self._outgoing += frames.to_engine(number, kind, payload)

    def _flush(self) -> None:
        try:
            written = os.write(self._write_fd, self._outgoing)
            del self._outgoing[:written]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._open = False

    # ---- sessions ---------------------------------------------------------------------------------------------------

    def _start(self, number: int, payload: bytes) -> None:
        head, (job,) = frames.split_head(payload)
        limits = head["limits"]
        disk_mb = lockdown.disk_mb(limits)
        group: Group | None = None
        joining: list[int] = []
        if limits["processes"] or self._base.packages:  # else limits of the process bound all of its memory
            processes = lockdown.THREADS + limits["processes"]
            group, joining = self._base.groups.group(number, limits["memory_mb"] << 20, processes)
        alone = not (limits["processes"] or head["link"] or head["linked_to"] or joining)
        run = self._take_spare(disk_mb) if alone else None
        if run is None:
            try:
                link = self._link(number, head)
            except OSError:  # the other engine is no more, so that this one is of no use
                self._open = False
                return
            run = self._order(disk_mb, limits["processes"], joining, link)
        disk = None
        if not self._base.namespaces:
            disk = (self._base.work_directory(run.seat), disk_mb << 20, lockdown.INODES)
        session = Session(
            number,
            run,
            wall_s=limits["wall_s"],
            keep=limits["output_kb"] * 1024,
            rest_s=_REST_S if head["rest"] else 0.0,
            group=group,
            disk=disk,
        )
        self._sessions[number] = self._seats[run.seat] = session
        for fd in session.open:
            self._owners[fd] = session
        session.send(frames.JOB, job)
        if alone:
            self._keep_spare(disk_mb)

    def _order(self, disk_mb: int, processes: int, joining: list[int], link: list[int]) -> Run:
        """Have the zygote start a run. The groups to join and the end of its link are closed here."""
        self._ordered += 1
        ours, theirs = socket.socketpair()
        out, out_writer = os.pipe()
        err, err_writer = os.pipe()
        for fd in (out, err):
            os.set_blocking(fd, False)
        ours.setblocking(False)
        order = zygote.ORDER.pack(zygote.START, self._ordered, disk_mb, processes, len(joining))
        given = [theirs.detach(), out_writer, err_writer, *joining, *link]
        socket.send_fds(self._control, [order], given)
        for fd in given:
            os.close(fd)
        return Run(self._ordered, disk_mb, ours, out, err)

    def _take_spare(self, disk_mb: int) -> Run | None:
        spare = self._spare
        if spare is None or spare.disk_mb != disk_mb:
            return None
        self._spare = None
        return spare

    def _keep_spare(self, disk_mb: int) -> None:
        """Order the next run beforehand. One for other jobs gives way once two in a row did not want it."""
        again, self._last_disk_mb = disk_mb == self._last_disk_mb, disk_mb
        if self._spare is not None and again and self._spare.disk_mb != disk_mb:
            self._end(self._spare.seat)
            self._drop_spare()
        if self._spare is None and again:
            self._spare = self._order(disk_mb, 0, [], [])

    def _drop_spare(self) -> None:
        if self._spare is not None:
            if not self._base.namespaces:
                lockdown.remove_tree(self._base.work_directory(self._spare.seat))
            self._spare.close()
            self._spare = None

    def _link(self, number: int, head: dict[str, Any]) -> list[int]:
        """The run's end of the pipe between a candidate and its judge, if they are to have one."""
        if head["linked_to"]:
            return [self._links.take(head["linked_to"])]
        if not head["link"]:
            return []
        candidates, judges = socket.socketpair()
        self._links.give(number, judges)
        return [candidates.detach()]

    def _from_run(self, session: Session) -> bool:
        """Read and pass on what a run says; False when there is nothing more for now."""
        data = session.receive()
        if data == b"":
            self._forget(session, session.run.pipe.fileno())
        if data and (words := session.words(data)):
            self._tell(session.number, frames.DATA, words)
        return bool(data)

    def _from_output(self, session: Session, fd: int) -> bool:
        """Read what a run prints; False when there is nothing more for now."""
        more = session.drain(fd)
        if more is False:
            self._forget(session, fd)
        return bool(more)

    def _forget(self, session: Session, fd: int) -> None:
        """Poll a descriptor no more."""
        if session.open.pop(fd, 0):
            self._poll.unregister(fd)
        self._owners.pop(fd, None)

    def _kill(self, session: Session, why: str) -> None:
        if not session.why:
            session.why = why
            self._end(session.run.seat)

    def _end(self, seat: int) -> None:
        self._control.send(zygote.ORDER.pack(zygote.KILL, seat, 0, 0, 0))

    # ---- zygote -----------------------------------------------------------------------------------------------------

    def _from_zygote(self) -> None:
        try:
            data = self._control.recv(4096)
        except ConnectionError:
            data = b""
        if not data:
            self._open = False
            return
        kind, seat, code, cpu_us, peak = zygote.ENDED.unpack_from(data)
        if self._spare is not None and seat == self._spare.seat:
            self._drop_spare()
        session = self._seats.pop(seat, None)
        if session is not None:
            if kind == zygote.FAULT:
                session.fault = data[zygote.ENDED.size :].decode("utf-8", "replace")
            self._finish(session, code, cpu_us / 1000, peak / (1 << 20))

    def _finish(self, session: Session, code: int, cpu_ms: float, peak_mb: float) -> None:
        """The run has ended: take what is left of its words and output, and tell the pool."""
        run = session.run
        while run.pipe.fileno() in session.open and self._from_run(session):
            pass
        for fd in (run.out, run.err):
            while fd in session.open and self._from_output(session, fd):
                pass
        for fd in list(session.open):
            self._forget(session, fd)
        run.close()
        del self._sessions[session.number]
        if session.disk:
            lockdown.remove_tree(session.disk[0])
        if session.group is not None:
            cpu_ms, peak_mb = self._with_group(session, session.group, cpu_ms, peak_mb)
        head = {
            "code": code,
            "why": session.why,
            "begun": session.begun,
            "fault": session.fault,
            "cpu_ms": round(cpu_ms, 3),
            "peak_mb": round(peak_mb, 2),
            "wall_ms": round((time.monotonic() - session.started) * 1000, 3),
            "cut": session.cut,
        }
        out, err = bytes(session.output[run.out]), bytes(session.output[run.err])
        self._tell(session.number, frames.EXIT, frames.with_head(head, out, err))

    def _with_group(self, session: Session, group: Group, cpu_ms: float, peak_mb: float) -> tuple[float, float]:
        """The figures of a run that had a control group, its descendants included; and the group's end."""
        used = group.usage()
        if used.out_of_memory:
            session.why = session.why or "memory"
        self._base.groups.done(group)
        return max(cpu_ms, used.cpu_ms), max(peak_mb, used.peak_mb)


def _read_options(read_fd: int) -> dict[str, Any]:
    """The first frame, which says how this engine is to be set up."""
    buffer = frames.EngineBuffer()
    while True:
        data = os.read(read_fd, 4096)
        if not data:
            os._exit(0)
        buffer.feed(data)
        for _, kind, payload in buffer.frames():
            if kind == frames.OPTIONS:
                options: dict[str, Any] = json.loads(payload)
                return options


def _spare_low_descriptors() -> tuple[int, int]:
    """Move the pool's pipes out of the way of what a run finds at 0 to 4, and put nothing there instead.

    No stray print can reach them then, and a run's own descriptors never arrive under these numbers.
    """
    read_fd, write_fd = (os.dup2(fd, high, inheritable=False) for fd, high in ((0, 10), (1, 11)))
    null = os.dup2(os.open(os.devnull, os.O_RDWR), 12)
    for fd in range(channel.LINK + 1):
        os.dup2(null, fd)
    os.close(null)
    return read_fd, write_fd


def main() -> None:
    """Serve the pool over stdin and stdout until it closes them."""
    if os.getpid() != 1 and os.getsid(0) != os.getpid():
        os.setsid()  # Ctrl-C in the pool's terminal is the pool's to handle
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    read_fd, write_fd = _spare_low_descriptors()
    options = _read_options(read_fd)
    packages = tuple(path for path in options.get("packages", ()) if os.path.isdir(path))
    offered = sorted({name.removesuffix(".py") for path in packages for name in os.listdir(path)})
    digest = source_digest(os.path.dirname(os.path.dirname(__file__)))  # while it can be read
    links = meeting(options)  # while it can be reached
    base = lockdown.survey(packages, options.get("strongest", "A"), options.get("landlock_abi"))
    base.cgroups = bool(options.get("groups"))
    sys.path[:] = [path for path in sys.path if path not in options.get("hide", ())] + list(packages)
    base.enter()
    control, zygote_end = socket.socketpair(socket.AF_UNIX, zygote.KIND)
    pid = os.fork()
    if pid == 0:
        for fd in (read_fd, write_fd, control.fileno()):
            os.close(fd)
        if links is not None:
            links.close()
        zygote.main(base, zygote_end)
    zygote_end.close()
    engine = Engine(base, control, read_fd, write_fd, links or Links())
    ready = {"tier": base.tier, "missing": base.missing, "digest": digest, "met": links is not None, "offered": offered}
    os.write(write_fd, frames.to_engine(0, frames.READY, json.dumps(ready).encode()))
    try:
        engine.serve()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        base.leave()
        os._exit(0)
