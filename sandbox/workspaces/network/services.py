"""Services beside a box: containers on a network of its own, without a way to the host or the outside."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import docker
from docker.errors import APIError
from docker.types import LogConfig

from sandbox.connections.owners import is_gone
from sandbox.connections.transports.docker import FAILURES, Keywords, remove
from sandbox.workspaces.base import BoxSpec, ServiceFailed, ServiceSpec
from sandbox.workspaces.docker_api import (
    EXPIRES_LABEL,
    GROUP_LABEL,
    LABEL,
    OWNER_LABEL,
    container_limits,
    image_id,
)

_CHECK_S = 5.0  # for one call of a health check; then it is called again
_POLL_S = 0.1
_LOG_LINES = 20
# Programs of images often begin as root, prepare their folders and change their user.
_ENTRYPOINT_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]
# The name server of boxes and services. The address does not exist in their network, so that no query leaves it.
NO_NAME_SERVER: Keywords = {"dns": ["192.0.2.1"], "dns_opt": ["timeout:1", "attempts:1"]}


@dataclass(frozen=True, slots=True)
class BoxNetwork:
    """The network of one box, and the addresses of its services by name."""

    name: str
    addresses: Mapping[str, str]


def open_network(api: docker.APIClient, labels: Mapping[str, str]) -> str:
    """Create the network of a box and return its name.

    *labels*, with GROUP_LABEL, are those of the network and of all containers in it except the box.
    """
    name = f"llmeval-workspace-{labels[GROUP_LABEL]}"
    api.create_network(
        name,
        driver="bridge",
        internal=True,
        # Without an address of the host in the network, nothing that listens on the host can be reached.
        options={"com.docker.network.bridge.inhibit_ipv4": "true"},
        labels={**labels, LABEL: "network"},
    )
    return name


def start_services(
    api: docker.APIClient,
    spec: BoxSpec,
    network: str,
    labels: Mapping[str, str],
    *,
    cpus: int,
    runtime: str | None,
) -> BoxNetwork:
    """Start the services of *spec* together and wait until all are healthy. Raises ServiceFailed.

    *cpus* are those of the machine.
    """
    containers = {}
    for service in spec.services:
        image = image_id(api, service.image)
        options = api.create_host_config(
            **_host_options(api, spec, service, image, cpus), network_mode=network, runtime=runtime
        )
        made = api.create_container(
            image,
            user=service.user or None,
            hostname=service.name,
            environment=dict(service.environment),
            labels={**labels, LABEL: "service"},
            host_config=options,
            networking_config={"EndpointsConfig": {network: {"Aliases": [service.name]}}},
        )
        containers[service.name] = str(made["Id"])
    started = time.monotonic()
    for container in containers.values():
        api.start(container)
    for service in spec.services:
        _wait_until_healthy(api, service, containers[service.name], started + service.start_s)
    addresses = {}
    for service in spec.services:
        found: Keywords = api.inspect_container(containers[service.name])
        if not found["State"]["Running"]:
            raise _failed(api, service, containers[service.name], "ended")
        addresses[service.name] = str(found["NetworkSettings"]["Networks"][network]["IPAddress"])
    return BoxNetwork(network, addresses)


def _host_options(api: docker.APIClient, spec: BoxSpec, service: ServiceSpec, image: str, cpus: int) -> Keywords:
    limits = spec.limits
    inspect: Callable[[str], Keywords] = api.inspect_image  # the library has no types for it
    found = inspect(image)
    writable = {"/tmp", "/run", *(found["Config"].get("Volumes") or ()), *service.writable}  # noqa: S108
    folder = f"rw,exec,nosuid,nodev,mode=1777,size={limits.disk_mb}m,nr_inodes=64k"
    return {
        **container_limits(spec, limits.memory_mb + limits.disk_mb, cpus),
        **NO_NAME_SERVER,
        "cap_add": [] if service.user else _ENTRYPOINT_CAPABILITIES,
        "shm_size": "64m",
        "tmpfs": dict.fromkeys(sorted(writable), folder),
        "log_config": LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
    }


def _wait_until_healthy(api: docker.APIClient, service: ServiceSpec, container: str, deadline: float) -> None:
    code: int | None = None
    while True:
        if not api.inspect_container(container)["State"]["Running"]:
            raise _failed(api, service, container, "ended")
        if not service.healthcheck:
            return
        latest = _check_health(api, service, container, deadline)
        if latest == 0:
            return
        code = code if latest is None else latest
        if time.monotonic() > deadline:
            ended = "does not end" if code is None else f"ends with exit code {code}"
            what = f"is not healthy after {service.start_s:g} seconds, its health check {ended}"
            raise _failed(api, service, container, what)
        time.sleep(_POLL_S)


def _check_health(api: docker.APIClient, service: ServiceSpec, container: str, deadline: float) -> int | None:
    """Return the exit code of the health check, or None if it has none in time."""
    try:
        command = ["/bin/sh", "-c", service.healthcheck]
        check = api.exec_create(container, command, environment=dict(service.environment))["Id"]
        api.exec_start(check, detach=True)
        until = min(deadline, time.monotonic() + _CHECK_S)
        while time.monotonic() < until:
            found: Keywords = api.exec_inspect(check)
            if not found["Running"] and found["ExitCode"] is not None:
                return int(found["ExitCode"])
            time.sleep(_POLL_S / 2)
    except APIError:  # the container has just ended, which the caller finds
        pass
    return None


def _failed(api: docker.APIClient, service: ServiceSpec, container: str, what: str) -> ServiceFailed:
    output: bytes = api.logs(container, tail=_LOG_LINES)
    return ServiceFailed(f"The service {service.name} {what}: {output.decode('utf-8', 'replace')[-2000:].strip()}")


def remove_network(api: docker.APIClient, generation: str) -> None:
    """Remove the services and the network of a box. What cannot be removed is left to the sweep."""
    labels = {"label": f"{GROUP_LABEL}={generation}"}
    for found in api.containers(all=True, filters=labels):
        remove(api, found["Id"])
    for found in api.networks(filters=labels):
        api.remove_network(found["Id"])


def sweep_group(api: docker.APIClient) -> list[str]:
    """Remove boxes, services, then networks that have expired or whose owner has ended; return their ids."""
    labelled = {"label": LABEL}
    removed = []
    for found in api.containers(all=True, filters=labelled):
        if _is_left(found["Labels"]):
            remove(api, found["Id"])
            removed.append(str(found["Id"]))
    for found in api.networks(filters=labelled):
        if _is_left(found["Labels"]):
            try:
                api.remove_network(found["Id"])
            except FAILURES:  # another process has removed it at the same time
                continue
            removed.append(str(found["Id"]))
    return removed


def _is_left(labels: Mapping[str, str]) -> bool:
    owner = labels.get(OWNER_LABEL, "")
    return int(labels.get(EXPIRES_LABEL) or 0) < time.time() or bool(owner and is_gone(owner))
