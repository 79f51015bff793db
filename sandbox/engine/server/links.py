"""Pipes between a candidate and its judge, in one engine or in two.

Two engines meet on an abstract unix socket. Its name is a secret that the pool sends to both before any untrusted code
runs. The socket exists in the network namespace that their containers share and that has no interfaces; the
candidate's engine passes the judge's end of each pipe over it. Runs cannot open sockets.
"""

import os
import socket
from collections.abc import Mapping

_WAIT_S = 5.0
_NUMBER = 4  # bytes of a session's number


class Links:
    """Pipes within one engine. The judge's end of each pipe is kept here until the judge starts."""

    def __init__(self) -> None:
        self._waiting: dict[int, socket.socket] = {}

    def give(self, number: int, pipe: socket.socket) -> None:
        """Keep a pipe for the judge of a session, in the place of an earlier one."""
        for stale in self._waiting.values():
            stale.close()
        self._waiting = {number: pipe}

    def take(self, number: int) -> int:
        """Return the descriptor given for a session; the caller owns it."""
        return self._waiting.pop(number).detach()

    def close(self) -> None:
        """Close the socket, in a process that does not use it."""


class GivingLinks(Links):
    """Pipes in the candidate's engine of two. Raises OSError if no judge's engine connects."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._listener = _socket()
        self._listener.bind(f"\0{name}")
        self._listener.listen(1)
        self._judge: socket.socket | None = None

    def give(self, number: int, pipe: socket.socket) -> None:
        if self._judge is None:
            self._judge, _ = self._listener.accept()
            self._judge.settimeout(_WAIT_S)
            self._listener.close()  # no other engine may connect
        with pipe:
            socket.send_fds(self._judge, [number.to_bytes(_NUMBER, "big")], [pipe.fileno()])

    def close(self) -> None:
        self._listener.close()


class TakingLinks(Links):
    """Pipes in the judge's engine of two. Raises OSError if the candidate's cannot be reached or sends none."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._candidate = _socket()
        try:
            self._candidate.connect(f"\0{name}")
        except OSError:
            self._candidate.close()
            raise

    def take(self, number: int) -> int:
        while True:  # skip pipes whose judge was never started
            data, pipes, _, _ = socket.recv_fds(self._candidate, _NUMBER, 1)
            if len(pipes) == 1 and data == number.to_bytes(_NUMBER, "big"):
                return pipes[0]
            for pipe in pipes:
                os.close(pipe)
            if not data:
                raise ConnectionError("the candidate's engine has ended")

    def close(self) -> None:
        self._candidate.close()


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps the boundaries of messages
    made.settimeout(_WAIT_S)
    return made


def connect(options: Mapping[str, object]) -> Links | None:
    """Return the links for the engine's options; None if the other engine cannot be reached.

    The pool has to pass on frames then.
    """
    try:
        if "listen" in options:
            return GivingLinks(str(options["listen"]))
        if "join" in options:
            return TakingLinks(str(options["join"]))
    except OSError:
        return None
    return Links()
