"""Names of processes that own containers, and whether such a process has ended."""

import os
import socket
from pathlib import Path


def owner(pid: int | None = None) -> str:
    """Return a unique name of a process of this host (this process by default): host, process id, and start time."""
    pid = pid or os.getpid()
    return f"{socket.gethostname()}/{pid}/{_start_time(pid)}"


def _start_time(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def is_gone(name: str) -> bool:
    """Return whether the owner was a process of this host that has ended."""
    host, _, process = name.rpartition("/")[0].rpartition("/")
    if host != socket.gethostname() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # a process of another user, so it exists
    return _start_time(int(process)) != name.rpartition("/")[2]
