"""A warm interpreter that forks once per run. No code, test or result of any run ever passes through it."""

import os
import select
import signal
import socket
import struct
import sys

from ..isolation import lockdown
from ..isolation.lockdown import Base, Request
from . import runner, warm_up

KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
_MESSAGE = 4096
_DESCRIPTORS = 7

# What engine and zygote tell each other. A seat is the number of one run's process, whatever its job.
ORDER = struct.Struct(">cIIHB")  # START with disk_mb, processes and the number of groups to join; or KILL
ENDED = struct.Struct(">cIiQQ")  # EXITED with exit code, microseconds of processor time, peak memory in bytes; or FAULT
START, KILL, EXITED, FAULT = b"S", b"K", b"X", b"F"  # a FAULT is followed by text


class Zygote:
    """The loop: fork when told, kill when told, tell what ended."""

    def __init__(self, base: Base, control: socket.socket) -> None:
        self.base, self.control = base, control
        self._runs: dict[int, Request] = {}  # by pid

    def serve(self) -> None:
        """Runs until the engine closes its end, then kills what is left. Never returns."""
        wake, waker = os.pipe()
        os.set_blocking(waker, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        patience = None if sys.platform == "linux" else 1000
        while True:
            ready = dict(poll.poll(patience))
            if not ready and os.getppid() == 1:
                break
            if wake in ready:
                os.read(wake, 4096)
                self._reap()
            if self.control.fileno() in ready and not self._obey():
                break
        for pid in self._runs:
            self._kill(pid)
        os._exit(0)

    def _obey(self) -> bool:
        """Act on one message; False at the end of the stream."""
        try:
            data, ancillary, _, _ = self.control.recvmsg(_MESSAGE, socket.CMSG_SPACE(4 * _DESCRIPTORS))
        except ConnectionError:
            return False
        if not data:
            return False
        kind, seat, disk_mb, processes, groups = ORDER.unpack(data)
        if kind == KILL:
            for pid in [pid for pid, request in self._runs.items() if request.seat == seat]:
                self._kill(pid)
            return True
        descriptors = [fd for _, _, data in ancillary for fd in struct.unpack(f"{len(data) // 4}i", data)]
        self._start(Request(seat, disk_mb, processes, groups), descriptors)
        return True

    def _start(self, request: Request, descriptors: list[int]) -> None:
        try:
            self.base.before_fork(request)
            pid = os.fork()
        except OSError as error:
            self.control.send(ENDED.pack(FAULT, request.seat, 0, 0, 0) + f"fork: {error}".encode()[: _MESSAGE // 2])
            pid = -1
        if pid == 0:
            runner.main(self.base, request, descriptors)
        for fd in descriptors:
            os.close(fd)
        if pid > 0:
            self._runs[pid] = request

    def _kill(self, pid: int) -> None:
        """End a run, and without a pid namespace the rest of its process group."""
        self._kill_group(pid)
        os.kill(pid, signal.SIGKILL)

    def _kill_group(self, pid: int) -> None:
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass  # it has not become a group yet, or nobody is left in it

    def _kill_orphans(self) -> None:
        """End what left its run's process group and, with its parent gone, has become a child of this process."""
        while orphans := [pid for pid in _children(os.getpid()) if pid not in self._runs]:
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)  # its own children come here next

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if os.WIFSTOPPED(status):  # it had itself traced, which tier C does not prevent
                os.kill(pid, signal.SIGKILL)
                continue
            request = self._runs.pop(pid, None)
            if request is None:
                continue  # an orphan of a run, adopted
            if not self.base.namespaces:
                self._kill_group(pid)  # what it started may outlive it
                if request.processes or not self.base.seccomp:
                    self._kill_orphans()
            code, cpu = os.waitstatus_to_exitcode(status), int((usage.ru_utime + usage.ru_stime) * 1e6)
            peak = usage.ru_maxrss * (1024 if sys.platform == "linux" else 1)
            self.control.send(ENDED.pack(EXITED, request.seat, code, cpu, peak))


def _children(parent: int) -> list[int]:
    """The processes whose parent is `parent`, zombies included; none where there is no /proc."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if name.isdigit() and int(fields[1]) == parent:
            found.append(int(name))
    return found


def main(base: Base, control: socket.socket) -> None:
    """The zygote's process. Never returns."""
    lockdown.die_with_parent()
    lockdown.adopt_orphans()
    warm_up.load()
    base.prepare_zygote()
    warm_up.walk_through(base)
    warm_up.settle()
    Zygote(base, control).serve()
