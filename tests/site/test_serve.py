"""The web server as `manage.py serve` starts it."""

import http.client
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.site.web_server import environment_of, web_server


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The port of a web server with an empty database of its own."""
    with web_server(tmp_path, environment_of(tmp_path)) as port:
        yield port


@pytest.mark.exhaustive
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


@pytest.mark.exhaustive
def test_refused_request_with_a_body_does_not_block_its_connection(port: int) -> None:
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        answers = [client.put("/api/v1/score", json={"a": 1}).status_code for _ in range(40)]
    assert set(answers) == {401}
