"""Start of an engine: options, isolation, the zygote, and then the event loop."""

import json
import os
import signal
import socket
import sys
from typing import TypedDict

from ..isolation import detection
from ..protocol import channel, frames
from ..zygote import messages, process
from .digest import source_digest
from .event_loop import EventLoop
from .links import Links, connect


class EngineOptions(TypedDict, total=False):
    """The options that the pool sends.

    strongest     "A", "B" or "C": strongest tier to use
    landlock_abi  highest Landlock version to use
    groups        whether to use control groups
    packages      directories of packages to offer to runs
    hide          directories to remove from the import path
    listen, join  name of the socket on which two engines meet, see `links`
    """

    strongest: str
    landlock_abi: int | None
    groups: bool
    packages: list[str]
    hide: list[str]
    listen: str
    join: str


def _read_options(read_fd: int) -> EngineOptions:
    """Return the options in the first frame."""
    buffer = frames.EngineBuffer()
    while True:
        data = os.read(read_fd, 4096)
        if not data:
            os._exit(0)
        buffer.feed(data)
        for _, kind, payload in buffer.frames():
            if kind == frames.OPTIONS:
                options: EngineOptions = json.loads(payload)
                return options


def _move_pipes() -> tuple[int, int]:
    """Move the pool's pipes above the descriptors of a run, and open /dev/null in their place.

    No stray output can reach the pipes then, and descriptors for a run never arrive under the numbers 0 to 4.
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
        os.setsid()  # the pool handles Ctrl-C in its terminal
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    read_fd, write_fd = _move_pipes()
    options = _read_options(read_fd)
    packages = tuple(path for path in options.get("packages", ()) if os.path.isdir(path))
    offered = sorted({name.removesuffix(".py") for path in packages for name in os.listdir(path)})
    digest = source_digest(os.path.dirname(os.path.dirname(__file__)))  # before the file system changes
    links = connect(options)  # before the network namespace changes
    isolation = detection.detect(packages, options.get("strongest", "A"), options.get("landlock_abi"))
    isolation.cgroups = bool(options.get("groups"))
    sys.path[:] = [path for path in sys.path if path not in options.get("hide", ())] + list(packages)
    try:
        isolation.enter()
    except OSError as error:
        failed = {"error": f"it cannot isolate code: {error}."}
        os.write(write_fd, frames.to_engine(0, frames.READY, json.dumps(failed).encode()))
        os._exit(1)
    control, zygote_end = socket.socketpair(socket.AF_UNIX, messages.SOCKET_KIND)
    pid = os.fork()
    if pid == 0:
        for fd in (read_fd, write_fd, control.fileno()):
            os.close(fd)
        if links is not None:
            links.close()
        process.main(isolation, zygote_end)
    zygote_end.close()
    loop = EventLoop(isolation, control, read_fd, write_fd, links or Links())
    ready = {
        "tier": isolation.tier,
        "missing": isolation.missing,
        "digest": digest,
        "met": links is not None,
        "offered": offered,
    }
    os.write(write_fd, frames.to_engine(0, frames.READY, json.dumps(ready).encode()))
    try:
        loop.serve()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        isolation.leave()
        os._exit(0)
