"""The engine behind a unix socket: a service that starts one engine per connection."""

import contextlib
import socket

from sandbox.connections.transports.base import Transport, TransportOptions
from sandbox.errors import EngineFailed, SandboxUnreachable

_CONNECT_S = 10.0


class SocketTransport(Transport):
    """A connection to `sandbox/image/serve.py`, which starts an engine that ends with the connection."""

    backend = "socket"
    install_hint = "start its service with LLMEVAL_SANDBOX_TARGET=packages (`docker-compose up --build sandbox`)"
    rebuild_hint = "rebuild the image of the `sandbox` service (`docker-compose up --build`) and restart the service"

    def __init__(self, options: TransportOptions) -> None:
        super().__init__(options)
        self._connection: socket.socket | None = None

    @property
    def description(self) -> str:
        return f"The sandbox service at {self.options.socket}"

    def open(self) -> None:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_CONNECT_S)
        try:
            connection.connect(self.options.socket)
        except OSError as error:
            connection.close()
            raise SandboxUnreachable(
                f"The sandbox service does not answer at {self.options.socket}: {error}. "
                "Start the `sandbox` service of docker-compose.yml, and share its volume with this process."
            ) from error
        connection.settimeout(None)
        self._connection = connection

    def fileno(self) -> int:
        return self._connected().fileno()

    def read(self) -> bytes:
        try:
            return self._connected().recv(1 << 18)
        except OSError:
            return b""

    def write(self, data: bytes) -> None:
        try:
            self._connected().sendall(data)
        except OSError as error:
            raise EngineFailed(f"The sandbox service stopped reading: {error}.") from error

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # Shut down first: a fork that still has the descriptor would otherwise keep the engine running.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def abort(self) -> None:
        stream = self._connection
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def detach_after_fork(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> socket.socket:
        if self._connection is None:
            raise EngineFailed("The connection to the sandbox service is closed.")
        return self._connection
