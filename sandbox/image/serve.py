"""Service of the socket backend: starts an engine for every connection to a unix socket.

Usage: serve.py SOCKET [CONNECTIONS]       serve at most CONNECTIONS connections at once (64)
       serve.py --check SOCKET             exit with 0 if an engine answers at the socket, else with 1

Standard library only, because it runs in the engine's image, as process 1. An engine ends with its connection.
"""

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENGINE = next(
    path for path in (HERE / "engine", HERE.parent / "engine") if path.is_dir()
)  # in the image, in the source
CHECK_S = 10.0
_OPTIONS, _READY = ord("O"), ord("R")


class Server:
    """Accepts connections, starts engines and reaps child processes, also orphans, since this may be process 1."""

    def __init__(self, path: str, connections: int) -> None:
        self._path = Path(path)
        self._max_connections = connections
        self._engines: dict[int, subprocess.Popen[bytes]] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._path.unlink(missing_ok=True)
        self._listener.bind(path)
        # The permissions of the directory restrict access. Runs cannot open sockets.
        self._path.chmod(0o666)
        self._listener.listen(connections)

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        wake, waker = socket.socketpair()
        waker.setblocking(False)
        wake.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        while True:
            waiting = [wake, self._listener] if len(self._engines) < self._max_connections else [wake]
            ready, _, _ = select.select(waiting, [], [])
            if wake in ready:
                with contextlib.suppress(BlockingIOError):
                    wake.recv(4096)
                self._reap()
            if self._listener in ready:
                self._accept()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            command = [sys.executable, "-I", "-S", "-X", "utf8", str(ENGINE)]
            try:
                engine = subprocess.Popen(
                    command,
                    stdin=connection.fileno(),
                    stdout=connection.fileno(),
                    stderr=subprocess.DEVNULL,
                    env={},
                    cwd="/",
                )
            except OSError as error:  # no process or memory is left; the client finds the connection closed
                sys.stderr.write(f"An engine could not be started: {error}\n")
                return
        self._engines[engine.pid] = engine

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                engine = self._engines.pop(pid, None)
                if engine is not None:
                    engine.returncode = os.waitstatus_to_exitcode(status)

    def _stop(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
        for engine in self._engines.values():
            with contextlib.suppress(OSError):
                engine.kill()
        os._exit(0)


def is_ready(path: str) -> bool:
    """Return whether an engine starts at the socket and reports that it is ready."""
    header = struct.Struct(">IHB")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(CHECK_S)
        try:
            connection.connect(path)
            connection.sendall(header.pack(2, 0, _OPTIONS) + b"{}")
            reply = connection.recv(header.size, socket.MSG_WAITALL)
        except OSError:
            return False
    return len(reply) == header.size and header.unpack(reply)[2] == _READY


def main(arguments: list[str]) -> int:
    """Serve or check. Return the exit code."""
    if len(arguments) == 2 and arguments[0] == "--check":
        return 0 if is_ready(arguments[1]) else 1
    if len(arguments) not in (1, 2) or arguments[0].startswith("-"):
        sys.stderr.write(__doc__ or "")
        return 2
    Server(arguments[0], int(arguments[1]) if len(arguments) == 2 else 64).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
