"""The zygote of boxes: a warm interpreter that forks a keeper per box. It never receives the plan of a box.

Its standard input is a socket. The first message is the source of the driver; each further one carries the two
descriptors that `keeper.keep` takes. It ends when the other side closes the socket; its boxes go on.
"""

import ctypes
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable

from ..isolation import seccomp
from ..zygote.fork_hooks import no_hooks
from . import keeper

_MAX_SOURCE = 1 << 20
_MAX_MESSAGE = 16
_DESCRIPTORS = 2
_NAME = b"llmeval-workspace"
# What the driver, or a module that it uses, imports only when it is needed. A box has no files to import them from.
_MODULES = "encodings.idna encodings.ascii encodings.latin_1 tarfile".split()


def main() -> None:
    """Serve until the socket is closed. Never returns."""
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    run_driver = _load_driver(control.recv(_MAX_SOURCE).decode())
    box_filter = seccomp.build_for_box()
    _hide_arguments()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing waits for keepers
    gc.freeze()
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, _MAX_MESSAGE, _DESCRIPTORS)
        if len(descriptors) != _DESCRIPTORS:
            os._exit(0)
        if os.fork() == 0:
            control.close()
            keeper.keep(descriptors[0], descriptors[1], run_driver, box_filter)
        for descriptor in descriptors:
            os.close(descriptor)


def _load_driver(source: str) -> Callable[[str], None]:
    """Return the driver's main function. Nothing can be imported afterwards, so that no file of a box ever is."""
    defined: dict[str, Callable[[str], None]] = {}
    with no_hooks():
        for name in _MODULES:
            __import__(name)
        exec(source, defined)
    for places in (sys.path, sys.meta_path, sys.path_hooks):
        places.clear()
    return defined["main"]


def _hide_arguments() -> None:
    """Replace the arguments of this process, which name files of the machine: a box can read those of its driver."""
    with open("/proc/self/stat") as file:
        start, end = file.read().rpartition(")")[2].split()[45:47]
    length = int(end) - int(start)
    ctypes.memmove(int(start), _NAME.ljust(length, b"\0")[:length], length)
