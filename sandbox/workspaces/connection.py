"""Requests to the driver of a box: over a container's attached streams, or a socket."""

import contextlib
import json
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from uuid import uuid4

from sandbox.connections.transports.docker import Keywords
from sandbox.workspaces.base import ArtifactsTooLarge, TooManyProcesses, WorkspaceError, WorkspaceLost

_HEADER = struct.Struct(">BxxxL")  # header of each part of an attached container's output: stream, length
_STDOUT = 1
_MAX_LINE = 8 * 1024 * 1024
_MAX_REPLY = 256 * 1024 * 1024
Reply = Keywords


class Connection:
    """Connection to one driver, for one or several requests. Replies to requests of other connections are ignored."""

    def __init__(self, stream: socket.socket, generation: str, *, framed: bool = True) -> None:
        """framed: whether the output has the headers of an attached container."""
        self._stream = stream
        self._generation = generation
        self._framed = framed
        self._received = bytearray()
        self._line = bytearray()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)  # the SDK holds the connection, too; closing would not end it
        self._stream.close()

    def call(self, operation: str, timeout: float = 60.0, /, **arguments: object) -> Reply:
        """Return the reply to a request. Raises WorkspaceError if the driver refuses it, WorkspaceLost."""
        *_, reply = self.stream(operation, timeout, **arguments)
        return reply

    def stream(
        self, operation: str, timeout: float, max_reply: int = _MAX_REPLY, /, **arguments: object
    ) -> Iterator[Reply]:
        """Yield the parts of a reply of at most *max_reply* bytes, the final one last. Raises as `call` does."""
        identity = uuid4().hex
        deadline = time.monotonic() + timeout
        self._send({**arguments, "operation": operation, "id": identity}, deadline)
        for reply in self._replies(deadline, max_reply):
            if reply.get("id") != identity:
                continue
            if reply.get("generation") != self._generation:
                raise WorkspaceLost("The workspace was started again; its files and processes are gone.")
            if error := reply.get("error"):
                raise _refusal(str(error))
            yield reply
            if reply.get("done"):
                return

    def _send(self, request: Mapping[str, object], deadline: float) -> None:
        # The empty line ends what a connection that was interrupted may have left.
        data = b"\n" + json.dumps(request).encode() + b"\n"
        try:
            self._stream.settimeout(max(deadline - time.monotonic(), 0.1))
            self._stream.sendall(data)
        except OSError as error:
            raise WorkspaceLost(f"The workspace has ended: {error}.") from error

    def _replies(self, deadline: float, max_reply: int) -> Iterator[Reply]:
        total = 0
        while True:
            data = self._receive(deadline)
            total += len(data)
            if total > max_reply:
                raise WorkspaceLost("The workspace sent more data than it may.")
            self._received += data
            for line in self._lines():
                try:
                    reply = json.loads(line)
                except ValueError:
                    continue
                if isinstance(reply, dict):
                    yield reply

    def _receive(self, deadline: float) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0:
            raise WorkspaceLost("The workspace does not respond.")
        try:
            self._stream.settimeout(left)
            data = self._stream.recv(1 << 18)
        except TimeoutError:
            raise WorkspaceLost("The workspace does not respond.") from None
        except OSError as error:
            raise WorkspaceLost(f"The workspace has ended: {error}.") from error
        if not data:
            raise WorkspaceLost("The workspace has ended.")
        return data

    def _lines(self) -> Iterator[bytes]:
        """Yield the complete lines received, without the daemon's headers."""
        if not self._framed:
            self._line += self._received
            self._received.clear()
            yield from self._complete_lines()
            return
        while len(self._received) >= _HEADER.size:
            stream, length = _HEADER.unpack_from(self._received)
            end = _HEADER.size + length
            if len(self._received) < end:
                return
            if stream == _STDOUT:
                self._line += self._received[_HEADER.size : end]
            del self._received[:end]
            yield from self._complete_lines()

    def _complete_lines(self) -> Iterator[bytes]:
        *complete, rest = self._line.split(b"\n")
        self._line = bytearray(rest)
        if len(self._line) > _MAX_LINE:
            raise WorkspaceLost("The workspace sent a line that is too long.")
        yield from (bytes(line) for line in complete)


def _refusal(error: str) -> WorkspaceError:
    if error == "full":
        return TooManyProcesses(
            "the box had no room for another process; all its processes, also those in the background, were ended"
        )
    return ArtifactsTooLarge(error) if error == "too large" else WorkspaceError(error)
