"""Event loop of an engine: exchanges frames with the pool, orders runs from the zygote, passes on frames and output.

There is one session per run. A candidate and its judge get a pipe between them (see `links`). If they run in two
engines that cannot connect to each other, the pool passes on their frames.
"""

import os
import select
import socket
import time
from typing import TypedDict, cast

from ..isolation import scratch
from ..isolation.cgroups import Group
from ..isolation.limits import INODES, THREADS, RunLimits, disk_mb
from ..isolation.lockdown import Isolation
from ..protocol import frames
from ..zygote import messages
from .links import Links
from .run_starter import RunStarter
from .sessions import Session

_CHUNK = 1 << 18
_MAX_BACKLOG = 4 << 20  # bytes waiting for a slow reader; beyond this its writer is not read
_DISK_CHECK_S = 0.1
_READ_DELAY_S = 0.004


class StartHead(TypedDict):
    """The head of a START frame.

    link       whether to make a pipe for the judge of this session
    linked_to  the session of the candidate whose pipe the run gets, or None
    rest       whether to delay reading from the run, see `Session`
    """

    limits: RunLimits
    link: bool
    linked_to: int | None
    rest: bool


class EventLoop:
    """The event loop."""

    def __init__(self, isolation: Isolation, control: socket.socket, read_fd: int, write_fd: int, links: Links) -> None:
        self._isolation = isolation
        self._control = control
        self._links = links
        self._read_fd, self._write_fd = read_fd, write_fd
        self._incoming = frames.EngineBuffer()
        self._outgoing = bytearray()
        self._sessions: dict[int, Session] = {}
        self._by_run: dict[int, Session] = {}
        self._by_fd: dict[int, Session] = {}
        self._runs = RunStarter(isolation, control)
        self._poll = select.poll()
        self._polls_writing = False  # whether the poll waits for room in the pipe to the pool
        self._open = True

    def serve(self) -> None:
        """Serve until the pool closes its end or the zygote ends."""
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)
        self._poll.register(self._read_fd, select.POLLIN)
        self._poll.register(self._control, select.POLLIN)
        while self._open:
            self._update_poll()
            for fd, events in self._poll.poll(self._timeout_ms()):
                self._handle(fd, events)
            self._enforce()

    # ---- the loop's parts -------------------------------------------------------------------------------------------

    def _update_poll(self) -> None:
        """Choose the descriptors to poll; do not read a run while the backlog to the pool is large."""
        if self._outgoing:
            self._flush()
        if self._polls_writing != bool(self._outgoing):
            self._polls_writing = not self._polls_writing
            self._poll_writing()
        is_backlogged = len(self._outgoing) > _MAX_BACKLOG
        now = time.monotonic()
        for session in self._sessions.values():
            self._poll_session(session, is_backlogged, now)

    def _poll_writing(self) -> None:
        if self._read_fd == self._write_fd:
            self._poll.register(self._read_fd, select.POLLIN | (select.POLLOUT if self._polls_writing else 0))
        elif self._polls_writing:
            self._poll.register(self._write_fd, select.POLLOUT)
        else:
            self._poll.unregister(self._write_fd)

    def _poll_session(self, session: Session, is_backlogged: bool, now: float) -> None:
        """Register the descriptors of a session for the events that it waits for; most runs end before the first."""
        is_delayed = session.read_after > now
        for fd, polled in session.open.items():
            is_pipe = fd == session.run.pipe.fileno()
            wanted = 0 if is_delayed or (is_backlogged and is_pipe) else select.POLLIN
            if is_pipe and session.sending:
                wanted |= select.POLLOUT
            if wanted != polled:
                session.open[fd] = wanted
                if wanted:
                    self._poll.register(fd, wanted)
                else:  # a registered descriptor reports its end even without events
                    self._poll.unregister(fd)

    def _timeout_ms(self) -> float | None:
        """Return the milliseconds until a limit must be checked."""
        if not self._sessions:
            return None
        now = time.monotonic()
        sessions = self._sessions.values()
        soonest = min(session.deadline for session in sessions) - now
        delays = [session.read_after - now for session in sessions if session.read_after > now]
        soonest = min([soonest, *delays])
        if any(session.disk for session in sessions):
            soonest = min(soonest, _DISK_CHECK_S)
        return max(0.0, soonest) * 1000 + 0.5

    def _handle(self, fd: int, events: int) -> None:
        if fd == self._read_fd:
            self._read_pool()
        elif fd == self._control.fileno():
            self._read_zygote()
        elif fd == self._write_fd:
            self._flush()
        elif (session := self._by_fd.get(fd)) is not None:
            if fd != session.run.pipe.fileno():
                self._read_output(session, fd)
                return
            if events & select.POLLOUT:
                session.flush()
            if events & ~select.POLLOUT:
                self._read_run(session)

    def _enforce(self) -> None:
        now = time.monotonic()
        for session in list(self._sessions.values()):
            if session.kill_reason:
                continue
            if now >= session.deadline:
                self._kill(session, "wall")
            elif session.overflows():
                self._kill(session, "disk")

    # ---- pool -------------------------------------------------------------------------------------------------------

    def _read_pool(self) -> None:
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
                self._send(0, frames.PONG, payload)

    def _send(self, number: int, kind: int, payload: bytes) -> None:
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
        """Start a run for a START frame of the pool: its session, its pipe to another run, its control group."""
        head_data, (job,) = frames.split_head(payload)
        head = cast(StartHead, head_data)
        limits = head["limits"]
        disk = disk_mb(limits)
        group: Group | None = None
        joining: list[int] = []
        if limits["processes"] or self._isolation.packages:  # else the limits of the process cover all its memory
            processes = THREADS + limits["processes"]
            group, joining = self._isolation.groups.group(number, limits["memory_mb"] << 20, processes)
        is_plain = not (limits["processes"] or head["link"] or head["linked_to"] or joining)
        run = self._runs.take_spare(disk) if is_plain else None
        if run is None:
            try:
                link = self._link(number, head)
            except OSError:  # the other engine has ended, so this one is of no use
                self._open = False
                return
            run = self._runs.start(disk, limits["processes"], joining, link)
        watched: tuple[str, int, int] | None = None
        if not self._isolation.namespaces:
            watched = (self._isolation.work_directory(run.run_id), disk << 20, INODES)
        session = Session(
            number,
            run,
            wall_s=limits["wall_s"],
            keep=limits["output_kb"] * 1024,
            read_delay_s=_READ_DELAY_S if head["rest"] else 0.0,
            group=group,
            disk=watched,
        )
        self._sessions[number] = self._by_run[run.run_id] = session
        for fd in session.open:
            self._by_fd[fd] = session
        session.send(frames.JOB, job)
        if is_plain:
            self._runs.keep_spare(disk)

    def _link(self, number: int, head: StartHead) -> list[int]:
        """Return the run's end of the pipe between a candidate and its judge, if they have one."""
        if head["linked_to"]:
            return [self._links.take(head["linked_to"])]
        if not head["link"]:
            return []
        candidate_end, judge_end = socket.socketpair()
        self._links.give(number, judge_end)
        return [candidate_end.detach()]

    def _read_run(self, session: Session) -> bool:
        """Pass on data of a run. Return False if there is none left for now."""
        data = session.receive()
        if data == b"":
            self._forget(session, session.run.pipe.fileno())
        if data and (for_pool := session.data_for_pool(data)):
            self._send(session.number, frames.DATA, for_pool)
        return bool(data)

    def _read_output(self, session: Session, fd: int) -> bool:
        """Read output of a run. Return False if there is none left for now."""
        more = session.drain(fd)
        if more is False:
            self._forget(session, fd)
        return bool(more)

    def _forget(self, session: Session, fd: int) -> None:
        """Stop polling a descriptor."""
        if session.open.pop(fd, 0):
            self._poll.unregister(fd)
        self._by_fd.pop(fd, None)

    def _kill(self, session: Session, reason: str) -> None:
        if not session.kill_reason:
            session.kill_reason = reason
            self._runs.kill(session.run.run_id)

    # ---- zygote -----------------------------------------------------------------------------------------------------

    def _read_zygote(self) -> None:
        try:
            data = self._control.recv(4096)
        except ConnectionError:
            data = b""
        if not data:
            self._open = False
            return
        kind, run_id, code, cpu_us, peak = messages.ENDED.unpack_from(data)
        self._runs.forget_ended_spare(run_id)
        session = self._by_run.pop(run_id, None)
        if session is not None:
            if kind == messages.FAULT:
                session.fault = data[messages.ENDED.size :].decode("utf-8", "replace")
            self._finish(session, code, cpu_us / 1000, peak / (1 << 20))

    def _finish(self, session: Session, code: int, cpu_ms: float, peak_mb: float) -> None:
        """Read the rest of an ended run's data and output, and report its end to the pool."""
        run = session.run
        while run.pipe.fileno() in session.open and self._read_run(session):
            pass
        for fd in (run.out, run.err):
            while fd in session.open and self._read_output(session, fd):
                pass
        for fd in list(session.open):
            self._forget(session, fd)
        run.close()
        del self._sessions[session.number]
        if session.disk:
            scratch.remove_tree(session.disk[0])
        if session.group is not None:
            cpu_ms, peak_mb = self._with_group(session, session.group, cpu_ms, peak_mb)
        head: frames.ExitHead = {
            "code": code,
            "why": session.kill_reason,
            "begun": session.begun,
            "fault": session.fault,
            "cpu_ms": round(cpu_ms, 3),
            "peak_mb": round(peak_mb, 2),
            "wall_ms": round((time.monotonic() - session.started) * 1000, 3),
            "cut": session.cut,
        }
        out, err = bytes(session.output[run.out]), bytes(session.output[run.err])
        self._send(session.number, frames.EXIT, frames.with_head(head, out, err))

    def _with_group(self, session: Session, group: Group, cpu_ms: float, peak_mb: float) -> tuple[float, float]:
        """Return the figures of a run with a control group, including its descendants, and remove the group."""
        used = group.usage()
        if used.out_of_memory:
            session.kill_reason = session.kill_reason or "memory"
        self._isolation.groups.done(group)
        return max(cpu_ms, used.cpu_ms), max(peak_mb, used.peak_mb)
