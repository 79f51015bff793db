"""Services beside a box: real ones, how the box reaches them, what it cannot reach, and what is left."""

import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace

import docker
import pytest

from sandbox.connections.owners import owner
from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import BoxLimits, BoxSpec, Handle, ServiceFailed, ServiceSpec
from sandbox.workspaces.docker_api import GROUP_LABEL
from sandbox.workspaces.docker_engine import DockerWorkspaces
from tests.sandbox import containers
from tests.services import unavailable

pytestmark = pytest.mark.docker
LIMITS = BoxLimits(pids=64, disk_mb=64, memory_mb=128)
REDIS = ServiceSpec(name="cache", image="redis:8", healthcheck="redis-cli ping")
POSTGRES = ServiceSpec(
    name="db",
    image="postgres:17",
    environment={"POSTGRES_PASSWORD": "desk", "POSTGRES_DB": "desk"},
    healthcheck="pg_isready -h 127.0.0.1 -d desk",
    writable=["/var/lib/postgresql"],
)


@pytest.fixture(scope="module")
def engine() -> DockerWorkspaces:
    client = containers.daemon()
    for image in (REDIS.image, POSTGRES.image):
        if not client.images.list(name=image):
            unavailable("docker", f"the image {image} is missing")
    client.close()
    return DockerWorkspaces()


def spec(*services: ServiceSpec, **values: object) -> BoxSpec:
    return BoxSpec(**{"image": containers.image(), "limits": LIMITS, "services": services, **values})  # type: ignore[arg-type]


@pytest.fixture
def redis_box(engine: DockerWorkspaces) -> Iterator[Handle]:
    handle = engine.open(spec(REDIS))
    yield handle
    engine.close(handle)


def left(generation: str) -> int:
    api = docker.from_env().api
    labels = {"label": f"{GROUP_LABEL}={generation}"}
    found = len(api.containers(all=True, filters=labels)) + len(api.networks(filters=labels))
    api.close()
    return found


def reachable(engine: DockerWorkspaces, box: Handle, port: int, *hosts: str) -> str:
    """Return the hosts, one per line, that accept a connection from the box."""
    program = f"""
import socket
for host in {hosts!r}:
    try:
        socket.create_connection((host, {port}), 0.3)
        print(host)
    except OSError:
        pass
"""
    return engine.execute(box, f"python3 -c '{program.replace(chr(39), chr(34))}'", 20).output


def test_box_reaches_a_service_by_name_and_nothing_else(engine: DockerWorkspaces, redis_box: Handle) -> None:
    stored = "exec 3<>/dev/tcp/cache/6379; printf 'SET k 42\\r\\nGET k\\r\\n' >&3; head -n 3 <&3"
    assert "42" in engine.execute(redis_box, stored, 20).output
    api = docker.from_env().api
    (network,) = api.networks(names=[redis_box.network])
    gateway = network["IPAM"]["Config"][0]["Gateway"]
    api.close()
    with socket.create_server(("0.0.0.0", 0)) as listener:  # all addresses of the host
        threading.Thread(target=listener.accept, daemon=True).start()
        assert reachable(engine, redis_box, listener.getsockname()[1], gateway, "172.17.0.1", "1.1.1.1") == ""
    interfaces = engine.execute(redis_box, "grep -v ' lo$' /proc/net/if_inet6", 20)
    assert interfaces.output == "", "the box has an IPv6 address"


@pytest.mark.exhaustive
def test_services_have_the_limits_of_the_box_and_few_capabilities(engine: DockerWorkspaces, redis_box: Handle) -> None:
    api = docker.from_env().api
    (found,) = api.containers(filters={"label": f"{GROUP_LABEL}={redis_box.generation}"})
    options = api.inspect_container(found["Id"])["HostConfig"]
    api.close()
    assert (options["CapDrop"], options["PidsLimit"], options["ReadonlyRootfs"]) == (["ALL"], 64, True)
    assert options["Memory"] == options["MemorySwap"] == (128 + 64) * 1024 * 1024
    assert "NET_RAW" not in str(options["CapAdd"])
    assert "no-new-privileges:true" in options["SecurityOpt"]


@pytest.mark.exhaustive
def test_postgres_answers_when_the_box_is_opened(engine: DockerWorkspaces) -> None:
    box = engine.open(spec(POSTGRES))
    try:
        assert reachable(engine, box, 5432, "db") == "db\n"
    finally:
        engine.close(box)
    assert left(box.generation) == 0


def test_closing_a_box_removes_services_and_network(engine: DockerWorkspaces) -> None:
    box = engine.open(spec(REDIS))
    assert left(box.generation) == 2
    engine.close(box)
    engine.close(box)
    assert left(box.generation) == 0


def test_sweep_removes_services_and_networks_whose_process_has_ended(
    engine: DockerWorkspaces, redis_box: Handle
) -> None:
    process = subprocess.Popen(["sleep", "600"])  # lives until the box is open, since other processes sweep too
    try:
        box = engine.open(spec(REDIS, owner=owner(process.pid)))
    finally:
        process.kill()
        process.wait()
    engine.sweep()
    assert (left(box.generation), left(redis_box.generation)) == (0, 2)


@pytest.mark.parametrize(
    ("service", "message"),
    [
        (
            ServiceSpec(name="x", image="redis:8", healthcheck="echo no; exit 4", start_s=5),
            "x is not healthy after 5 seconds, its health check ends with exit code 4:",
        ),
        (replace(POSTGRES, name="x", environment={}), r"(?s)x ended: .*POSTGRES_PASSWORD"),
    ],
)
def test_failed_service_is_reported_with_its_output_and_leaves_nothing(
    engine: DockerWorkspaces, service: ServiceSpec, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Handle] = []
    close = engine.close
    monkeypatch.setattr(engine, "close", lambda handle: (closed.append(handle), close(handle)))
    with pytest.raises(ServiceFailed, match=message):
        engine.open(spec(service))
    assert left(closed[0].generation) == 0


def test_missing_image_of_a_service_is_reported_with_its_remedy(engine: DockerWorkspaces) -> None:
    with pytest.raises(SandboxUnavailable, match="docker pull nothing-like-this"):
        engine.open(spec(ServiceSpec(name="x", image="nothing-like-this")))
