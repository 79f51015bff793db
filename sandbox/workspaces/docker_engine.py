"""Boxes as containers: one container per box, with the driver as its first process."""

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

import docker
from docker.errors import NotFound
from docker.types import LogConfig

from sandbox.connections.transports.docker import (
    DEFAULT_IMAGE,
    FAILURES,
    PACKAGES_IMAGE,
    Keywords,
    plain_socket,
    remove,
    sentence,
)
from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import VERIFY, BoxSpec, Handle, WorkspaceError, WorkspaceLost
from sandbox.workspaces.builds import ImageBuilder
from sandbox.workspaces.connection import Connection
from sandbox.workspaces.docker_api import (
    EXPIRES_LABEL,
    GROUP_LABEL,
    LABEL,
    OWNER_LABEL,
    connect,
    container_limits,
    image_id,
    packages_container,
    reported,
    short_ulimits,
)
from sandbox.workspaces.driven import (
    DriverWorkspaces,
    driver_arguments,
    driver_environment,
    lost,
    not_started,
    total_memory_mb,
    writable_folders,
)
from sandbox.workspaces.network.egress import PROXY_NAME, proxy_environment, read_refusals, start_proxy
from sandbox.workspaces.network.services import (
    NO_NAME_SERVER,
    BoxNetwork,
    open_network,
    remove_network,
    start_services,
    sweep_group,
)
from sandbox.workspaces.prepared import IDLE_S, PreparedBoxes

_API_TIMEOUT_S = 60
_WAITS_S = 2 * IDLE_S  # a prepared box ends by itself after this time, if the process that prepared it was killed
_BEGIN_S = 5.0


def container_options(spec: BoxSpec, cpus: int, network: BoxNetwork | None = None) -> Keywords:
    """Return the host configuration of a box, as keyword arguments of `create_host_config`."""
    folders = writable_folders(spec, root=0, user=spec.user)
    connected: Keywords = {"network_mode": "none"}
    if network is not None:
        connected = {"network_mode": network.name, "extra_hosts": dict(network.addresses), **NO_NAME_SERVER}
    return {
        **container_limits(spec, total_memory_mb(spec), cpus),
        **connected,
        "cap_add": ["SETUID", "SETGID", "KILL"],  # of the driver; the agent's processes lose them with its user
        "shm_size": "16m",
        "tmpfs": {path: f"rw,exec,nosuid,nodev,{options}" for path, options in folders.items()},
        "ulimits": short_ulimits(),
        "log_config": LogConfig(type="none"),
    }


class DockerWorkspaces(DriverWorkspaces):
    """Workspaces on one Docker engine."""

    def __init__(
        self,
        runtime: str | None = None,
        *,
        outside: str = "",
        proxy_image: str = DEFAULT_IMAGE,
        packages_image: str = PACKAGES_IMAGE,
        prepared: int = 0,
        address: str = "",
    ) -> None:
        """runtime: the container runtime, such as runsc; None for Docker's default.

        outside: the Docker network by which egress proxies reach allowed hosts; "" if boxes may reach none.
        packages_image: the image with the packages of boxes.
        prepared: how many boxes may wait for an episode.
        address: of the engine; "" for the one that the environment variables of this process name.
        """
        self.address = address
        self._host = ""
        self.prepared = PreparedBoxes(prepared, lambda spec: self._open(spec, waits=True), self.close)
        self._runtime = runtime
        self._outside = outside
        self._proxy_image = proxy_image
        self._packages_image = packages_image
        self._local = threading.local()

    def check(self, image: str = "") -> None:
        with reported():
            api = self._api
            api.ping()
            if image:
                image_id(api, image)

    def check_outside(self) -> None:
        if not self._outside:
            raise SandboxUnavailable(
                "This environment lets its boxes connect to hosts outside, which is not enabled here. Set "
                "LLMEVAL_WORKSPACE_NETWORK to the Docker network that leads there, such as bridge."
            )
        with reported():
            image_id(self._api, self._proxy_image)

    def refusals(self, handle: Handle, after: int) -> Sequence[str]:
        with reported():
            return read_refusals(self._api, handle.generation)[after:]

    def build(self, context: Mapping[str, bytes], workdir: str, seconds: float, *, allowed: bool) -> str:
        builder = ImageBuilder(lambda: self._api, self.address)
        return builder.build(context, workdir, seconds, allowed=allowed)

    def host(self) -> str:
        """Return the id of the engine, as in the handles of its boxes. Raises SandboxUnavailable."""
        if not self._host:
            with reported():
                self._host = str(self._api.info()["ID"])
        return self._host

    def find_packages(self) -> str:
        with reported():
            return image_id(self._api, self._packages_image)

    def open(self, spec: BoxSpec) -> Handle:
        while (handle := self.prepared.take(spec)) is not None:
            if self._begin(handle, spec):
                return handle
            self.close(handle)
        return self._open(spec)

    def _begin(self, handle: Handle, spec: BoxSpec) -> bool:
        """Let the episode of a prepared box begin. Return False if it has ended, or is of an earlier image."""
        with reported():
            if image_id(self._api, spec.image) != handle.image:
                return False
        try:
            with self.connect(handle) as connection:
                connection.call("expire_in", _BEGIN_S, seconds=spec.limits.episode_s)
        except WorkspaceLost:
            return False
        return True

    def _open(self, spec: BoxSpec, *, waits: bool = False) -> Handle:
        """Open a box. With *waits*, it ends by itself after _WAITS_S, unless its episode begins."""
        expires = int(time.time()) + spec.limits.episode_s + (int(_WAITS_S) if waits else 0)
        driver_s = int(_WAITS_S) if waits else spec.limits.episode_s
        with reported():
            image, info = image_id(self._api, spec.image), self._api.info()
        host, cpus = str(info["ID"]), int(info["NCPU"])
        labels = {OWNER_LABEL: spec.owner, EXPIRES_LABEL: str(expires)}
        handle = Handle(host=host, id="", generation=uuid4().hex, image=image)
        if spec.allowed:
            self.check_outside()
        try:
            with reported():
                packages = packages_container(self._api, spec.packages) if spec.packages else ""
                network: BoxNetwork | None = None
                environment: dict[str, str] = {}
                if spec.services or spec.allowed:
                    group = {**labels, GROUP_LABEL: handle.generation}
                    handle = replace(handle, network=open_network(self._api, group))
                    network, environment = self._connect_network(spec, handle.network, group, cpus)
                container = self._create_container(
                    image,
                    command=driver_arguments(spec, handle.generation, expires_s=driver_s),
                    environment={**environment, **driver_environment()},
                    labels={**labels, LABEL: "box"},
                    options=container_options(spec, cpus, network),
                    packages=packages,
                )
            handle = replace(handle, id=container)
            self._start(handle, spec)
        except BaseException:
            self.close(handle)
            raise
        return handle

    def _connect_network(
        self, spec: BoxSpec, name: str, group: Mapping[str, str], cpus: int
    ) -> tuple[BoxNetwork, dict[str, str]]:
        """Start the services and the egress proxy of a box. Return its network and the variables that name the proxy.

        name: of the network. group: the labels of all that belongs to this box.
        """
        network = start_services(self._api, spec, name, group, cpus=cpus, runtime=self._runtime)
        if not spec.allowed:
            return network, {}
        address = start_proxy(
            self._api,
            network.name,
            group,
            image=self._proxy_image,
            outside=self._outside,
            allowed=spec.allowed,
        )
        environment = proxy_environment(list(network.addresses))
        return BoxNetwork(network.name, {**network.addresses, PROXY_NAME: address}), environment

    def _create_container(
        self,
        image: str,
        *,
        command: list[str],
        environment: dict[str, str],
        labels: dict[str, str],
        options: Keywords,
        packages: str,
    ) -> str:
        """Create the container of a box and return its id.

        options: of the host configuration. packages: the container whose packages the box reads; "" for none.
        """
        return str(
            self._api.create_container(
                image,
                command=command,
                entrypoint=["python3"],
                user="0:0",
                stdin_open=True,
                detach=True,  # keeps stdin open when a connection ends (no StdinOnce)
                working_dir="/",
                environment=environment,
                hostname="workspace",
                labels=labels,
                host_config=self._api.create_host_config(
                    **options,
                    volumes_from=[f"{packages}:ro"] if packages else None,
                    auto_remove=True,
                    runtime=self._runtime,
                ),
            )["Id"]
        )

    def _start(self, handle: Handle, spec: BoxSpec) -> None:
        try:
            with reported(), self.connect(handle, start=True) as connection:
                _set_modes(connection, spec)
                self.wait_for_driver(connection, spec)
        except SandboxUnavailable as error:
            raise not_started(spec, error) from error

    def close(self, handle: Handle) -> None:
        with contextlib.suppress(*FAILURES):  # the sweep removes it
            if handle.id:
                remove(self._api, handle.id)
            if handle.network:
                remove_network(self._api, handle.generation)

    def sweep(self) -> list[str]:
        with contextlib.suppress(*FAILURES):
            return sweep_group(self._api)
        return []

    @property
    def _api(self) -> docker.APIClient:
        """Return this thread's client, because a client is not safe for several threads."""
        api: docker.APIClient | None = getattr(self._local, "api", None)
        if api is None:
            api = self._local.api = connect(self.address, _API_TIMEOUT_S)
        return api

    def connect(self, handle: Handle, *, start: bool = False) -> Connection:
        """Attach to the box. Raises WorkspaceLost."""
        try:
            api = self._api
            attached = api.attach_socket(handle.id, params={"stdin": 1, "stdout": 1, "stream": 1})
            connection = Connection(plain_socket(attached), handle.generation)
            if start:
                api.start(handle.id)
        except NotFound:
            raise lost() from None
        except FAILURES as error:
            raise WorkspaceLost(f"The workspace cannot be reached: {sentence(error)}") from error
        return connection


def _set_modes(connection: Connection, spec: BoxSpec) -> None:
    """Give the writable folders their modes. A folder that the image has too is mounted with the image's mode."""
    with contextlib.suppress(WorkspaceError):  # it is in a folder of the image that the agent may not enter
        connection.call("change_modes", entries=[{"path": spec.workdir, "mode": 0o755}])
    modes = [{"path": "/tmp", "mode": 0o1777}]  # noqa: S108
    if spec.verify:
        modes.append({"path": VERIFY, "mode": 0o700})
    connection.call("change_modes", entries=modes, root=True)
