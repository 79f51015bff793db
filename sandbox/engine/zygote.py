"""A warm interpreter that forks once per run. No code, test or result of any run ever passes through it."""

import array
import gc
import json
import os
import select
import signal
import socket
import sys
from dataclasses import dataclass, field
from typing import Any

from . import lockdown, runner
from .lockdown import Base, Request

KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
_MESSAGE = 4096

# Imported before the first fork, so that a run finds them loaded. What model-written solutions use most.
_WARM = """
abc array base64 bisect calendar cmath collections collections.abc contextlib copy csv dataclasses datetime decimal
difflib enum fractions functools hashlib heapq inspect io itertools json math numbers operator os.path pprint queue
random re secrets statistics string struct tempfile textwrap threading time traceback types typing unicodedata
unittest.mock uuid zlib
""".split()

_REHEARSAL = """
import math, re, collections
def f(items, *, key=None):
    table = collections.defaultdict(list)
    for n, item in enumerate(items):
        table[item % 3].append(f"{n}:{item!r}")
    return sorted((sum(map(len, v)), k) for k, v in table.items()), re.sub(r"[a-z]+", "", "ab1"), math.sqrt(2)
class C:
    def __init__(self): self.x = [1]
    def __eq__(self, other): return self.x == other.x
assert f(range(9)) and C() == C()
try:
    raise ValueError("x")
except ValueError as e:
    str(e)
"""


@dataclass
class Zygote:
    """The loop: fork when told, kill when told, tell what ended."""

    base: Base
    control: socket.socket
    _runs: dict[int, int] = field(default_factory=dict)  # pid -> session

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
            data, ancillary, _, _ = self.control.recvmsg(_MESSAGE, socket.CMSG_SPACE(12))
        except ConnectionError:
            return False
        if not data:
            return False
        order: dict[str, Any] = json.loads(data)
        if "kill" in order:
            for pid in [pid for pid, session in self._runs.items() if session == order["kill"]]:
                self._kill(pid)
            return True
        descriptors = array.array("i")
        for _, _, content in ancillary:
            descriptors.frombytes(content)
        self._start(Request(order["session"], order["limits"], order["work"]), list(descriptors))
        return True

    def _start(self, request: Request, descriptors: list[int]) -> None:
        try:
            self.base.before_fork()
            pid = os.fork()
        except OSError as error:
            self._tell({"session": request.session, "fault": f"fork: {error}"})
            pid = -1
        if pid == 0:
            runner.main(self.base, request, descriptors)
        for fd in descriptors:
            os.close(fd)
        if pid > 0:
            self._runs[pid] = request.session

    def _kill(self, pid: int) -> None:
        """End a run, and without a pid namespace the rest of its process group."""
        self._kill_group(pid)
        os.kill(pid, signal.SIGKILL)

    def _kill_group(self, pid: int) -> None:
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass  # it has not become a group yet, or nobody is left in it

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
            session = self._runs.pop(pid, None)
            if session is None:
                continue  # an orphan of a run, adopted
            if not self.base.namespaces:
                self._kill_group(pid)  # what it started may outlive it
            peak = usage.ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024)
            self._tell(
                {
                    "session": session,
                    "code": os.waitstatus_to_exitcode(status),
                    "cpu_ms": round((usage.ru_utime + usage.ru_stime) * 1000, 3),
                    "peak_mb": round(peak, 2),
                }
            )

    def _tell(self, event: dict[str, Any]) -> None:
        self.control.send(json.dumps(event).encode())


def warm_up() -> None:
    """Import, and run code of the usual kind once, so that forks find everything in place."""
    for name in _WARM:
        __import__(name)
    for _ in range(3):
        exec(compile(_REHEARSAL, "<rehearsal>", "exec"), {"__name__": "rehearsal"})
    os.environ.clear()
    os.environ.update(PATH="/usr/bin:/bin", LANG="C.UTF-8")
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    sys.dont_write_bytecode = True
    sys.argv = [""]


def main(base: Base, control: socket.socket) -> None:
    """The zygote's process. Never returns."""
    lockdown.die_with_parent()
    lockdown.adopt_orphans()
    base.prepare_zygote()
    warm_up()
    gc.collect()
    lockdown.trim_heap()
    gc.freeze()
    Zygote(base, control).serve()
