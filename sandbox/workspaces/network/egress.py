"""The container of the egress proxy, the only way from the network of a box to the outside."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import docker
from docker.types import LogConfig

from sandbox.connections.transports.docker import Keywords
from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.docker_api import GROUP_LABEL, LABEL, image_id
from sandbox.workspaces.network.proxy import PORT

PROXY_NAME = "egress-proxy"
_USER = "65534:65534"
_MEMORY_MB = 96
_START_S = 30.0
_POLL_S = 0.05


def start_proxy(
    api: docker.APIClient,
    network: str,
    labels: Mapping[str, str],
    *,
    image: str,
    outside: str,
    allowed: Sequence[str],
) -> str:
    """Start a proxy between *network* and the network *outside*, and return its address. Raises SandboxUnavailable.

    *image* is one of the product, because an image of a bundle could replace the program.
    """
    found: Keywords = api.inspect_network(network)
    config = {"inside": found["IPAM"]["Config"][0]["Subnet"], "allowed": list(allowed)}
    host_config = api.create_host_config(
        network_mode=outside,
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
        pids_limit=128,
        mem_limit=f"{_MEMORY_MB}m",
        memswap_limit=f"{_MEMORY_MB}m",
        ipc_mode="none",
        log_config=LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
    )
    container = str(
        api.create_container(
            image_id(api, image),
            command=["-I", "-S", "-c", _source(), json.dumps(config)],
            entrypoint=["python3"],
            user=_USER,
            labels={**labels, LABEL: "proxy"},
            host_config=host_config,
        )["Id"]
    )
    api.connect_container_to_network(container, network)
    api.start(container)
    deadline = time.monotonic() + _START_S
    while not any(line.get("ready") for line in _lines(api, container)):
        if time.monotonic() > deadline:
            raise SandboxUnavailable("The egress proxy of a workspace could not be started.")
        time.sleep(_POLL_S)
    state: Keywords = api.inspect_container(container)
    return str(state["NetworkSettings"]["Networks"][network]["IPAddress"])


def proxy_environment(services: Sequence[str]) -> dict[str, str]:
    """Return the variables by which programs in a box find the proxy."""
    address = f"http://{PROXY_NAME}:{PORT}"
    direct = ",".join(["localhost", "127.0.0.1", *services])
    return {
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), address),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), direct),
    }


def read_refusals(api: docker.APIClient, generation: str) -> list[str]:
    """Return what the proxy of a box refused so far, oldest first."""
    labels = [f"{GROUP_LABEL}={generation}", f"{LABEL}=proxy"]
    return [
        f"{line['target']}: {line['reason']}"
        for found in api.containers(all=True, filters={"label": labels})
        for line in _lines(api, found["Id"])
        if "target" in line
    ]


def _lines(api: docker.APIClient, container: str) -> Iterator[Keywords]:
    output: bytes = api.logs(container, stdout=True, stderr=False)
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


@cache
def _source() -> str:
    return Path(__file__).with_name("proxy.py").read_text(encoding="utf-8")
