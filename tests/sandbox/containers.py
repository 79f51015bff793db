"""The sandbox's image and service in containers, built and started for the tests that need them."""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import docker
import pytest
import requests
from docker.errors import DockerException

import sandbox
from sandbox.connections.transports import TransportOptions
from sandbox.connections.transports.docker import hardening
from tests.services import unavailable

TAGS = {"plain": "llmeval-sandbox:test", "packages": "llmeval-sandbox:test-packages"}
# Engines of workspaces, as parameters. The tests of boxes are the same for both; in containers each takes longer.
ENGINES = ["native", pytest.param("docker", marks=pytest.mark.exhaustive)]
SERVE = "/usr/lib/llmeval/serve.py"
_START_S = 20.0


def daemon() -> docker.DockerClient:
    """A client of a Docker engine that answers; the running test is skipped without one."""
    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except (DockerException, requests.RequestException) as error:
        unavailable("docker", str(error))
    return client


@cache
def image(target: str = "plain") -> str:
    """The sandbox's image, built from this very source, so that no test runs an engine of yesterday."""
    client = daemon()
    before = client.images.list(name=TAGS[target])
    try:
        folder = str(Path(sandbox.__file__).parent)
        client.images.build(
            path=folder, dockerfile="image/Dockerfile", target=target, tag=TAGS[target], rm=True, forcerm=True
        )
    except (DockerException, requests.RequestException) as error:
        unavailable("docker", f"the sandbox image cannot be built: {error}")
    for old in before:
        if old.id != client.images.get(TAGS[target]).id:
            with contextlib.suppress(DockerException):  # another test run may still use it
                client.images.remove(str(old.id))
    client.close()
    return TAGS[target]


@contextlib.contextmanager
def service() -> Iterator[str]:
    """The socket backend's service in a container, as docker-compose.yml starts it: the path of its socket."""
    built, client = image(), daemon()
    with tempfile.TemporaryDirectory(prefix="llmeval-socket-") as folder, contextlib.closing(client):
        Path(folder).chmod(0o777)
        given = hardening(TransportOptions(memory_mb=2048, cpus=2.0)) | {"pids_limit": 1024, "auto_remove": False}
        host_config = client.api.create_host_config(**given, binds={folder: {"bind": "/run/llmeval", "mode": "rw"}})
        made = client.api.create_container(
            built, command=[SERVE, "/run/llmeval/sandbox.sock"], user="65534:65534", host_config=host_config
        )
        try:
            client.api.start(made["Id"])
            path = Path(folder, "sandbox.sock")
            deadline = time.monotonic() + _START_S
            while not path.is_socket():
                assert time.monotonic() < deadline, "The sandbox service opened no socket."
            yield str(path)
        finally:
            client.api.remove_container(made["Id"], force=True, v=True)
