"""What the Docker engine of workspaces shares: labels, failures, images and limits of containers."""

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus

import docker
from docker.errors import APIError, ImageNotFound, NotFound
from docker.types import Ulimit

from sandbox.connections.transports.docker import FAILURES, PACKAGES_IMAGE, Keywords, sentence
from sandbox.errors import SandboxUnavailable, SandboxUnreachable
from sandbox.workspaces.base import PACKAGES, BoxSpec

LABEL = "llmeval.workspace"  # of all containers and networks; its value is their kind
PACKAGES_LABEL = "llmeval.packages"  # of containers with packages; its value is the digest of their image
OWNER_LABEL = "llmeval.workspace.owner"
EXPIRES_LABEL = "llmeval.workspace.expires"
GROUP_LABEL = "llmeval.workspace.group"  # the generation of the box that a service or network belongs to

_COPY_S = 300.0  # for another process that copies packages


def connect(address: str, timeout_s: float) -> docker.APIClient:
    """Return a client of the Docker engine at *address*; "" for the one that the environment variables name.

    For every address, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH say whether TLS is used, and with which certificates.
    """
    environment = {**os.environ, "DOCKER_HOST": address} if address else dict(os.environ)
    return docker.from_env(timeout=math.ceil(timeout_s), environment=environment).api


def container_limits(spec: BoxSpec, memory_mb: int, cpus: int) -> Keywords:
    """Return what the host configurations of boxes and services have in common. *cpus* are those of the machine."""
    return {
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "pids_limit": spec.limits.pids,
        "mem_limit": f"{memory_mb}m",
        "memswap_limit": f"{memory_mb}m",
        "nano_cpus": int(min(spec.limits.cpus, cpus) * 1e9),
        "ipc_mode": "private",
        "oom_score_adj": 500,
    }


def short_ulimits() -> list[Ulimit]:
    """Return the limits of one process of a box: no core dumps, few open files."""
    return [Ulimit(name="core", soft=0, hard=0), Ulimit(name="nofile", soft=1024, hard=4096)]


def image_id(api: docker.APIClient, image: str) -> str:
    """Return the digest of a local image. Raises SandboxUnavailable with the command that gets it."""
    try:
        inspect: Callable[[str], dict[str, object]] = api.inspect_image  # it has no types
        return str(inspect(image)["Id"])
    except ImageNotFound as error:
        remedy = "`make sandbox-image`" if image.startswith("llmeval-sandbox") else f"`docker pull {image}`"
        if image == PACKAGES_IMAGE:
            remedy = "`make sandbox-image PACKAGES=1`"
        raise SandboxUnavailable(
            f"The image {image} of the workspace is not on this Docker engine. Get it with {remedy}."
        ) from error


def packages_container(api: docker.APIClient, image: str) -> str:
    """Return the container whose volume has the packages of an image, for `volumes_from`.

    It is made once for each image and never started. Docker copies the packages into its volume while it is created,
    and no other container can refer to it before it is complete. Raises SandboxUnavailable.
    """
    name = f"llmeval-packages-{image.removeprefix('sha256:')[:32]}"
    until = time.monotonic() + _COPY_S
    while True:
        with contextlib.suppress(NotFound):
            api.inspect_container(name)
            return name
        try:
            options: Keywords = {"volumes": [PACKAGES], "labels": {PACKAGES_LABEL: image}, "network_disabled": True}
            api.create_container(image, command=["/bin/true"], name=name, **options)
        except ImageNotFound as error:
            raise SandboxUnavailable(
                f"The image of packages {image} is not on this Docker engine any more. Get it with "
                "`make sandbox-image PACKAGES=1`."
            ) from error
        except APIError as error:
            if error.status_code != HTTPStatus.CONFLICT or time.monotonic() > until:
                raise
            time.sleep(0.2)  # another process is just making it


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Turn failures of the Docker engine into SandboxUnavailable."""
    try:
        yield
    except APIError as error:
        raise SandboxUnavailable(f"Docker refused: {sentence(error)}") from error
    except FAILURES as error:
        raise SandboxUnreachable(
            f"Workspaces need a Docker engine, which cannot be reached: {sentence(error)} "
            "Is it running, and may this user use it (DOCKER_HOST, the docker group)?"
        ) from error
