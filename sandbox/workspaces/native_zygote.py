"""The process from which the boxes of this process are forked."""

import contextlib
import json
import socket
import subprocess
import threading

from sandbox.connections.transports.local import ENGINE, interpreter
from sandbox.engine.boxes.setup import BoxPlan
from sandbox.workspaces.driven import driver_source

_START_S = 60.0
_END_S = 5.0
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from engine.boxes import zygote; zygote.main()"
_ORDER = b"box"
_MAX_REASON = 4096


class BoxZygote:
    """Connection to a warm interpreter that forks boxes. It is started for the first box, and again if it has ended.

    It ends with this process, or when this object is deleted. Its boxes do not.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @property
    def pid(self) -> int:
        """Process id, 0 before the first box."""
        return self._process.pid if self._process else 0

    def start_box(self, plan: BoxPlan, listener: socket.socket) -> str:
        """Start a box whose driver accepts connections from *listener*. Return why it failed, "" if the driver runs.

        Raises OSError.
        """
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._order(listener, theirs)
            ours.settimeout(_START_S)
            ours.sendall(json.dumps(plan).encode())
            ours.shutdown(socket.SHUT_WR)
            reason = bytearray()
            while data := ours.recv(_MAX_REASON):
                reason += data
        return reason.decode("utf-8", "replace")

    def _order(self, listener: socket.socket, plan_socket: socket.socket) -> None:
        descriptors = [listener.fileno(), plan_socket.fileno()]
        with self._lock:
            if self._control is not None:
                with contextlib.suppress(OSError):  # it has ended
                    socket.send_fds(self._control, [_ORDER], descriptors)
                    return
                self._end()
            self._control = self._start()
            socket.send_fds(self._control, [_ORDER], descriptors)

    def _start(self) -> socket.socket:
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [interpreter(), "-I", "-S", "-X", "utf8", "-c", _PROGRAM, str(ENGINE.parent)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        control.sendall(driver_source().encode())
        return control

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.wait(_END_S)
            self._process = None
