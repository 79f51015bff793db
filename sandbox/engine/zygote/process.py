"""The zygote: a warm interpreter that forks once per run. It never receives code, tests or results of a run."""

import os
import select
import signal
import socket
import struct
import sys

from ..isolation import lockdown
from ..isolation.lockdown import Isolation, RunOptions
from . import preload, runner, warm_up
from .messages import ENDED, EXITED, FAULT, KILL, ORDER

_MAX_MESSAGE = 4096
_MAX_DESCRIPTORS = 7


class Zygote:
    """Starts and kills runs on order, and reports those that ended."""

    def __init__(self, isolation: Isolation, control: socket.socket) -> None:
        self.isolation, self.control = isolation, control
        self._runs: dict[int, RunOptions] = {}  # by pid

    def serve(self) -> None:
        """Serve until the engine closes its end, then kill all runs and end this process."""
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
            if self.control.fileno() in ready and not self._receive_order():
                break
        for pid in self._runs:
            self._kill(pid)
        os._exit(0)

    def _receive_order(self) -> bool:
        """Carry out one order. Return False at the end of the stream."""
        try:
            data, ancillary, _, _ = self.control.recvmsg(_MAX_MESSAGE, socket.CMSG_SPACE(4 * _MAX_DESCRIPTORS))
        except ConnectionError:
            return False
        if not data:
            return False
        kind, run_id, disk_mb, processes, groups = ORDER.unpack(data)
        if kind == KILL:
            for pid in [pid for pid, request in self._runs.items() if request.run_id == run_id]:
                self._kill(pid)
            return True
        descriptors = [fd for _, _, data in ancillary for fd in struct.unpack(f"{len(data) // 4}i", data)]
        self._start(RunOptions(run_id, disk_mb, processes, groups), descriptors)
        return True

    def _start(self, request: RunOptions, descriptors: list[int]) -> None:
        try:
            self.isolation.before_fork(request)
            pid = os.fork()
        except OSError as error:
            self.control.send(
                ENDED.pack(FAULT, request.run_id, 0, 0, 0) + f"fork: {error}".encode()[: _MAX_MESSAGE // 2]
            )
            pid = -1
        if pid == 0:
            runner.main(self.isolation, request, descriptors)
        for fd in descriptors:
            os.close(fd)
        if pid > 0:
            self._runs[pid] = request

    def _kill(self, pid: int) -> None:
        """Kill a run and its process group."""
        self._kill_group(pid)
        os.kill(pid, signal.SIGKILL)

    def _kill_group(self, pid: int) -> None:
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass  # the group does not exist yet, or has no process left

    def _kill_orphans(self) -> None:
        """Kill processes that left their run's process group and whose parent ended: they are children of this one."""
        while orphans := [pid for pid in _children(os.getpid()) if pid not in self._runs]:
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)  # its own children become children of this process then

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if os.WIFSTOPPED(status):  # it is traced, which tier C does not prevent
                os.kill(pid, signal.SIGKILL)
                continue
            request = self._runs.pop(pid, None)
            if request is None:
                continue  # an adopted orphan of a run
            if not self.isolation.namespaces:
                self._kill_group(pid)  # its children may outlive it
                if request.processes or not self.isolation.seccomp:
                    self._kill_orphans()
            code, cpu = os.waitstatus_to_exitcode(status), int((usage.ru_utime + usage.ru_stime) * 1e6)
            peak = usage.ru_maxrss * (1024 if sys.platform == "linux" else 1)
            self.control.send(ENDED.pack(EXITED, request.run_id, code, cpu, peak))


def _children(parent: int) -> list[int]:
    """Return the children of a process, zombies included; none if there is no /proc."""
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


def main(isolation: Isolation, control: socket.socket) -> None:
    """Run the zygote. Never returns."""
    lockdown.die_with_parent()
    lockdown.adopt_orphans()
    preload.load()
    isolation.prepare_zygote()
    warm_up.execute_small_job()
    Zygote(isolation, control).serve()
