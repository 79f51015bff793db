"""Back end that shares limits between the local processes of one command, in a locked file."""

import fcntl
import json
import os
import time
from dataclasses import dataclass

from runs.limits.shares import Grant, Report, State, grant


@dataclass(frozen=True, slots=True)
class FileShares:
    """Back end in the file *path*. Its clock is that of the machine, which all processes share.

    The lock is held for well under a millisecond, so an event loop may wait for it.
    """

    path: str

    async def renew(self, key: str, report: Report) -> Grant:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            states: dict[str, State] = json.loads(text) if text else {}
            granted = grant(states.setdefault(key, State()), report, time.monotonic())
            file.seek(0)
            file.truncate()
            file.write(json.dumps(states))
            file.flush()
        return granted

    async def aclose(self) -> None:
        """Do nothing: the command removes the file."""
