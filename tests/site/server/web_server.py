"""The web server as `manage.py serve` starts it, for tests."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import requests

from llmeval_site.management.commands.serve import _commands


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Return whether a server answers at *url*. One that still starts accepts connections, and may let them wait."""
    try:
        return requests.get(url, timeout=20).ok
    except (requests.ConnectionError, requests.Timeout):
        return False


def environment_of(folder: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment with a database and a data folder of its own in *folder*."""
    database = f"sqlite:///{folder / 'db.sqlite3'}"
    return {**os.environ, "DATABASE_URL": database, "LLMEVAL_VAR": str(folder), **(extra or {})}


@contextmanager
def web_server(folder: Path, environment: Mapping[str, str], log: int = subprocess.DEVNULL) -> Iterator[int]:
    """Run the web server, with stderr to the descriptor *log*, and yield its port."""
    port = free_port()
    web, *_ = _commands("127.0.0.1", port)
    process = subprocess.Popen(web, env=dict(environment), cwd=folder, stderr=log)
    try:
        for _ in range(600):
            if process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(30)
