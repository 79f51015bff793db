"""The egress proxy: allowed hosts are reached, all others are refused and recorded."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing

import docker
import pytest
from docker.types import IPAMConfig, IPAMPool

from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import BoxLimits, BoxSpec, Handle, ServiceSpec
from sandbox.workspaces.docker_api import GROUP_LABEL
from sandbox.workspaces.docker_engine import DockerWorkspaces
from sandbox.workspaces.network import proxy
from tests.sandbox import containers
from tests.services import unavailable

LIMITS = BoxLimits(pids=64, disk_mb=16, memory_mb=128)
HOST = "files.example"


@pytest.fixture(scope="module")
def outside() -> Iterator[str]:
    """A network in place of the internet: its addresses are public ones, and files.example serves HTTP in it."""
    containers.daemon().close()
    name, number = f"llmeval-test-outside-{os.getpid()}", os.getpid() % 62_500
    subnet = f"11.{number // 250}.{number % 250}.0/24"
    with closing(docker.from_env().api) as api:
        pool = IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)])
        api.create_network(name, driver="bridge", internal=True, ipam=pool)
        server = api.create_container(
            containers.image(),
            command=["-m", "http.server", "8443", "--directory", "/etc"],
            entrypoint=["python3"],
            name=name,
            host_config=api.create_host_config(network_mode=name, auto_remove=True),
            networking_config={"EndpointsConfig": {name: {"Aliases": [HOST, "other.example"]}}},
        )["Id"]
        api.start(server)
        yield name
        api.remove_container(server, force=True)
        api.remove_network(name)


@pytest.fixture(scope="module")
def engine(outside: str) -> DockerWorkspaces:
    return DockerWorkspaces(outside=outside, proxy_image=containers.image())


@pytest.fixture(scope="module")
def box(engine: DockerWorkspaces) -> Iterator[Handle]:
    with closing(containers.daemon()) as client:
        if not client.images.list(name="redis:8"):
            unavailable("docker", "the image redis:8 is missing")
    inner = ServiceSpec(name="inner.example", image="redis:8")  # an allowed name with an address that is not public
    allowed = [f"{HOST}:8443", "inner.example:6379"]
    handle = engine.open(BoxSpec(image=containers.image(), limits=LIMITS, services=[inner], allowed=allowed))
    yield handle
    engine.close(handle)
    with closing(docker.from_env().api) as api:
        labels = {"label": f"{GROUP_LABEL}={handle.generation}"}
        assert api.containers(all=True, filters=labels) + api.networks(filters=labels) == []


def tunnel(engine: DockerWorkspaces, box: Handle, host: str, port: int) -> str:
    program = f"""
import http.client, os
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["HTTPS_PROXY"])
for attempt in range(100):
    connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=10)
    connection.set_tunnel("{host}", {port})
    try:
        connection.request("GET", "/hostname")
        print(connection.getresponse().status)
        break
    except OSError as error:
        if "Bad Gateway" not in str(error):  # the server is starting
            print(error)
            break
"""
    return engine.execute(box, f"python3 -c '{program}'", 30).output


@pytest.mark.docker
def test_box_reaches_an_allowed_host_through_the_proxy(engine: DockerWorkspaces, box: Handle) -> None:
    assert tunnel(engine, box, HOST, 8443) == "200\n"


@pytest.mark.docker
def test_all_else_is_refused_and_recorded(engine: DockerWorkspaces, box: Handle) -> None:
    before = len(engine.refusals(box, 0))
    for host, port in (("other.example", 8443), (HOST, 22), ("inner.example", 6379)):
        assert "403 Forbidden" in tunnel(engine, box, host, port), host
    plain = 'import urllib.request as u; u.urlopen("http://files.example:8443/hostname")'
    assert "405" in engine.execute(box, f"python3 -c '{plain}'", 20).output
    found = engine.refusals(box, before)
    assert found[:2] == [
        "other.example:8443: it is not in the list of allowed hosts",
        "files.example:22: it is not in the list of allowed hosts",
    ]
    assert found[2].startswith("inner.example:6379: its address 1")
    assert found[2].endswith(" is not public")
    assert found[3] == "GET http://files.example:8443/hostname: only CONNECT is possible, as for https"


@pytest.mark.docker
def test_box_has_no_way_past_the_proxy(engine: DockerWorkspaces, box: Handle, outside: str) -> None:
    with closing(docker.from_env().api) as api:
        server = next(item for item in api.inspect_network(outside)["Containers"].values() if item["Name"] == outside)
    address = server["IPv4Address"].partition("/")[0]
    program = f'import socket; socket.create_connection(("{address}", 8443), 0.5)'
    assert engine.execute(box, f"python3 -c '{program}'", 20).exit_code != 0
    assert engine.execute(box, "python3 -c 'import socket; socket.gethostbyname(\"files.example\")'", 20).exit_code != 0


@pytest.mark.docker
def test_network_must_be_enabled() -> None:
    containers.daemon().close()
    with pytest.raises(SandboxUnavailable, match="LLMEVAL_WORKSPACE_NETWORK"):
        DockerWorkspaces().open(BoxSpec(image=containers.image(), allowed=["files.example:443"]))


@pytest.mark.parametrize(
    ("addresses", "refused"),
    [
        (["8.8.8.8"], ""),
        (["8.8.8.8", "10.0.0.1"], "10.0.0.1"),
        (["127.0.0.1"], "127.0.0.1"),
        (["169.254.169.254"], "169.254.169.254"),
        (["100.64.0.1"], "100.64.0.1"),
        (["0.0.0.0"], "0.0.0.0"),
        (["224.0.0.1"], "224.0.0.1"),
    ],
)
def test_name_with_an_address_that_is_not_public_is_refused(
    addresses: list[str], refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in addresses]
    monkeypatch.setattr(proxy.socket, "getaddrinfo", lambda *_: found)
    if not refused:
        assert proxy.public_address("host.example", 443) == addresses[0]
        return
    with pytest.raises(proxy.ConnectionRefusal, match=f"its address {refused} is not public"):
        proxy.public_address("host.example", 443)
