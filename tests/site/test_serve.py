"""The web server as `manage.py serve` starts it."""

import http.client
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmeval_site.management.commands.serve import _commands


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The port of a web server with an empty database of its own."""
    port = free_port()
    web, _ = _commands("127.0.0.1", port)
    environment = {**os.environ, "DATABASE_URL": f"sqlite:///{tmp_path / 'db.sqlite3'}", "LLMEVAL_VAR": str(tmp_path)}
    process = subprocess.Popen(web, env=environment, cwd=tmp_path)
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


def test_connection_stays_open_for_a_client_that_pauses_between_requests(port: int) -> None:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.request("GET", "/healthz")
    first = client.getresponse()
    first.read()
    connection = client.sock
    time.sleep(2.5)  # with its defaults, gunicorn closes idle connections after two seconds
    client.auto_open = 0  # a closed connection is an error and not opened again
    client.request("GET", "/healthz")
    assert (first.status, client.getresponse().status) == (200, 200)
    assert client.sock is connection
