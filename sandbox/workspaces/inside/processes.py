"""Processes of a box: how they give up root, are started, and are ended. Runs inside the box, in the driver."""

# mypy: allow-any-generics

import contextlib
import errno
import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import TypeVar

from sandbox.workspaces.inside.files import CHUNK, RequestRefused

T = TypeVar("T")
Request = dict  # as JSON
CONFIG: Request = {}  # set by the driver
FILE_SECONDS = 30


def become(root: bool) -> None:
    """Give up root permanently, unless *root*.

    If memory is full, processes of the agent's user are killed first, then those of root, and the driver last.
    """
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("750" if root else "1000")
    os.umask(0o022)
    if not root:
        os.setgroups([])
        os.setgid(CONFIG["user"])
        os.setuid(CONFIG["user"])


def end_processes() -> None:
    """Kill all processes but this one, and return when they have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:  # this process inherits those whose parents have ended
            os.waitpid(-1, 0)


def reap() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def with_room(start: Callable[[], T]) -> T:
    """Call *start*, which starts a process. If the box is full, end all its processes and report it."""
    try:
        return start()
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.ENOMEM):
            raise
        end_processes()
        raise RequestRefused("full") from None


def as_user(root: bool, work: Callable[[], Request], seconds: int = FILE_SECONDS, make_room: bool = True) -> Request:
    """Return what *work* returns in a child process of the agent's user (of root if *root*)."""
    return finish_as_user(*start_as_user(root, work, seconds, make_room), seconds)


def start_as_user(root: bool, work: Callable[[], Request], seconds: int, make_room: bool = True) -> "tuple[int, int]":
    """Start a child that carries out *work*, for at most *seconds*; return it and where its reply is read.

    make_room: whether all processes of a full box are ended, so that the child can be started.
    """
    reading, writing = os.pipe()
    try:
        child = with_room(os.fork) if make_room else os.fork()
    except BaseException as error:
        os.close(reading)
        os.close(writing)
        if isinstance(error, BlockingIOError):
            raise RequestRefused("the box has no room for another process") from None
        raise
    if child == 0:
        try:
            os.close(reading)
            signal.alarm(seconds)
            become(root)
            os.chdir("/")
            try:
                reply = work()
            except RequestRefused as refusal:
                reply = {"error": str(refusal)}
            except OSError as error:
                reply = {"error": error.strerror or str(error)}
            except Exception as error:
                reply = {"error": type(error).__name__}
            left = json.dumps(reply).encode()
            while left:
                left = left[os.write(writing, left) :]
        finally:
            os._exit(0)
    os.close(writing)
    return child, reading


def finish_as_user(child: int, reading: int, seconds: int) -> Request:
    """Return the reply of a child. It is killed after *seconds*: if the agent stops it, its alarm does not end it."""
    data = b""
    deadline = time.monotonic() + seconds
    try:
        while select.select([reading], [], [], max(deadline - time.monotonic(), 0))[0]:
            more = os.read(reading, CHUNK)
            if not more:
                break
            data += more
        else:
            os.kill(child, signal.SIGKILL)
            data = b""
    finally:
        os.close(reading)
    with contextlib.suppress(ChildProcessError):  # it was reaped before
        os.waitpid(child, 0)
    if not data:
        raise RequestRefused("the operation took too long or used too much memory")
    found: Request = json.loads(data)
    return found


def reached_limits() -> list:
    """Return the names of the limits that the control groups of the box, version 1 or 2, have reached."""
    events = {
        "memory": ("oom_kill", ("memory.events", "memory/memory.oom_control")),
        "processes": ("max", ("pids.events", "pids/pids.events")),
    }
    reached = []
    for limit, (key, files) in events.items():
        for name in files:
            with contextlib.suppress(OSError), open("/sys/fs/cgroup/" + name) as file:
                words = file.read().split()
                if key in words and int(words[words.index(key) + 1]):
                    reached.append(limit)
    return reached


def signal_all(number: signal.Signals) -> int:
    """Send a signal to every process but this one, and return their number."""
    reap()
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        return 0
    return sum(name.isdigit() and name != "1" for name in os.listdir("/proc"))
