"""How a candidate and its judge come by the pipe between them, from one engine or from two.

Two engines meet on an abstract unix socket whose name, a secret of the pool's, both are told before any code of others
runs. It exists in the network namespace that their containers share and that has no interface to anywhere; the
candidate's engine passes the judge's end of each pipe over it. No run can open a socket.
"""

import os
import socket

_WAIT_S = 5.0
_NUMBER = 4  # bytes of a session's number


class Links:
    """Within one engine: the judge's end waits here until the judge is started."""

    def __init__(self) -> None:
        self._waiting: dict[int, socket.socket] = {}

    def give(self, number: int, pipe: socket.socket) -> None:
        """Keep *pipe* for the judge of session *number*, instead of any that was given before."""
        for stale in self._waiting.values():
            stale.close()
        self._waiting = {number: pipe}

    def take(self, number: int) -> int:
        """The descriptor given for session *number*, which is the caller's from now on."""
        return self._waiting.pop(number).detach()

    def close(self) -> None:
        """In a process that has no part in the meeting."""


class GivingLinks(Links):
    """The candidate's engine of two. Raises OSError where no judge's engine has come."""

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
            self._listener.close()  # nobody else is expected
        with pipe:
            socket.send_fds(self._judge, [number.to_bytes(_NUMBER, "big")], [pipe.fileno()])

    def close(self) -> None:
        self._listener.close()


class TakingLinks(Links):
    """The judge's engine of two. Raises OSError where the candidate's cannot be reached, or gives nothing."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._candidate = _socket()
        try:
            self._candidate.connect(f"\0{name}")
        except OSError:
            self._candidate.close()
            raise

    def take(self, number: int) -> int:
        while True:  # past those whose judge was never started
            data, pipes, _, _ = socket.recv_fds(self._candidate, _NUMBER, 1)
            if len(pipes) == 1 and data == number.to_bytes(_NUMBER, "big"):
                return pipes[0]
            for pipe in pipes:
                os.close(pipe)
            if not data:
                raise ConnectionError("the candidate's engine is gone")

    def close(self) -> None:
        self._candidate.close()


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # what is sent at once is received at once
    made.settimeout(_WAIT_S)
    return made


def meeting(options: dict[str, str]) -> Links | None:
    """What the pool asked for; None where the other engine cannot be reached, so that the pool must pass words on."""
    try:
        if "listen" in options:
            return GivingLinks(options["listen"])
        if "join" in options:
            return TakingLinks(options["join"])
    except OSError:
        return None
    return Links()
