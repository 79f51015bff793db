"""The engine as process 1 of a container, connected through its attached standard streams."""

import contextlib
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import docker
import requests
from docker.errors import DockerException, ImageNotFound
from docker.types import LogConfig, Ulimit

from sandbox.connections.owners import is_gone, owner
from sandbox.connections.transports.base import Transport, TransportOptions
from sandbox.errors import EngineFailed, SandboxUnavailable, SandboxUnreachable

DEFAULT_IMAGE = "llmeval-sandbox:latest"
PACKAGES_IMAGE = "llmeval-sandbox:packages"
LABEL = "llmeval.sandbox"
OWNER_LABEL = "llmeval.sandbox.owner"

_USER = "65534:65534"
_PROCESSES = 128  # an engine's two, and the most threads and children that one run may have
_SCRATCH_MB = 128
_ABANDONED_S = 600  # a container that was created but not started for so long will never be started
_API_TIMEOUT_S = 60
_REMOVAL_S = 10
_HEADER = struct.Struct(">BxxxL")  # header of each part of an attached container's output: stream, length
_STDOUT = 1

# Exceptions of the docker package if the daemon is unreachable, fails or refuses.
FAILURES = (DockerException, requests.RequestException, OSError)


Keywords = dict[str, Any]  # arguments and replies of the SDK, which have no types


def hardening(options: TransportOptions, network_of: str = "") -> Keywords:
    """Return the host configuration of a container for engines, as keyword arguments of `create_host_config`.

    *network_of* is the id of a container whose network namespace is shared. That namespace has no interfaces; the
    engines of the two containers connect through an abstract unix socket in it (decision 0011).
    """
    return {
        "network_mode": f"container:{network_of}" if network_of else "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "pids_limit": _PROCESSES,
        "mem_limit": f"{options.memory_mb}m",
        "memswap_limit": f"{options.memory_mb}m",
        "nano_cpus": int(options.cpus * 1e9),
        "ipc_mode": "none",  # a private namespace for System V objects, without /dev/shm
        "tmpfs": {"/tmp": f"rw,noexec,nosuid,nodev,mode=1777,size={_SCRATCH_MB}m,nr_inodes=16k"},  # noqa: S108
        "ulimits": [Ulimit(name="core", soft=0, hard=0), Ulimit(name="nofile", soft=1024, hard=4096)],
        "log_config": LogConfig(type="none"),
        "oom_score_adj": 500,
        "runtime": options.runtime,
    }


class DockerTransport(Transport):
    """A container of the sandbox image without network, root, capabilities or writable files outside one tmpfs.

    Only this process is attached to the container's stdin (StdinOnce). When it ends, also if it is killed, the daemon
    closes that stdin, the engine ends, and the daemon removes the container. `sweep` removes containers that were never
    started.
    """

    backend = "docker"
    separate_test_judge = True
    install_hint = "build the image that contains them with `make sandbox-image PACKAGES=1`"
    rebuild_hint = "rebuild it with `make sandbox-image`, and restart the processes that used the old one"

    def __init__(self, options: TransportOptions) -> None:
        super().__init__(options)
        self._api: docker.APIClient | None = None
        self._container = ""
        self._network_of = ""
        self._stream: socket.socket | None = None
        self._received = bytearray()

    def create_test_judge_transport(self) -> "DockerTransport":
        transport = DockerTransport(self.options)
        transport._network_of = self._container
        return transport

    @property
    def description(self) -> str:
        return f"The sandbox image {self._image}"

    @property
    def _image(self) -> str:
        return self.options.image or (PACKAGES_IMAGE if self.options.with_packages else DEFAULT_IMAGE)

    def open(self) -> None:
        try:
            self._api = docker.from_env(timeout=_API_TIMEOUT_S).api
            _sweep_once(self._api)
            self._start(self._api, *_daemon(self._api, self._image))
        except SandboxUnavailable:
            self.close()
            raise
        except FAILURES as error:
            self.close()
            raise SandboxUnreachable(
                f"No container could be started for the docker sandbox: {sentence(error)} "
                "Is the Docker engine running, and may this user use it (DOCKER_HOST, the docker group)?"
            ) from error

    def _start(self, api: docker.APIClient, image: str, cpus: int) -> None:
        # The daemon refuses more processors than its machine has.
        limited = replace(self.options, cpus=min(self.options.cpus, cpus))
        created = api.create_container(
            image,
            user=_USER,
            stdin_open=True,  # the daemon also sets StdinOnce, because stdin is attached
            hostname=None if self._network_of else "sandbox",  # not allowed with a shared network namespace
            labels={LABEL: "engine", OWNER_LABEL: owner()},
            host_config=api.create_host_config(**hardening(limited, self._network_of), auto_remove=True),
        )
        self._container = created["Id"]
        attached = api.attach_socket(self._container, params={"stdin": 1, "stdout": 1, "stream": 1})
        self._stream = plain_socket(attached)
        api.start(self._container)

    def fileno(self) -> int:
        return self._connected().fileno()

    def read(self) -> bytes:
        while True:
            try:
                data = self._connected().recv(1 << 18)
            except OSError:
                return b""
            if not data:
                return b""
            self._received += data
            output = self._take_output()
            if output:
                return output

    def _take_output(self) -> bytes:
        """Return the engine's bytes among those received, without the daemon's headers."""
        output = bytearray()
        while len(self._received) >= _HEADER.size:
            stream, length = _HEADER.unpack_from(self._received)
            end = _HEADER.size + length
            if len(self._received) < end:
                break
            if stream == _STDOUT:
                output += self._received[_HEADER.size : end]
            del self._received[:end]
        return bytes(output)

    def write(self, data: bytes) -> None:
        try:
            self._connected().sendall(data)
        except OSError as error:
            raise EngineFailed(f"The sandbox container stopped reading: {error}.") from error

    def close(self) -> None:
        container, self._container = self._container, ""
        api, self._api = self._api, None
        self._drop_stream()
        if api is not None:
            if container:
                remove(api, container)
            api.close()

    def abort(self) -> None:
        stream = self._stream
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def detach_after_fork(self) -> None:
        self._container, self._api = "", None
        self._drop_stream()

    def _drop_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _connected(self) -> socket.socket:
        if self._stream is None:
            raise EngineFailed("The sandbox container is closed.")
        return self._stream


# ---- the Docker daemon ----------------------------------------------------------------------------------------------

_once = threading.Lock()
_swept: set[tuple[int, str]] = set()
_known: dict[tuple[str, str], tuple[str, int]] = {}


def _daemon(api: docker.APIClient, image: str) -> tuple[str, int]:
    """Return the id of an image and the number of processors of the daemon's machine.

    Looked up once per process, so that all engines are of one image even if the tag is moved.
    """
    with _once:
        known = _known.get((api.base_url, image))
        if known is None:
            try:
                inspect: Callable[[str], dict[str, object]] = api.inspect_image  # the docker package has no types
                found = str(inspect(image)["Id"])
                known = _known[api.base_url, image] = found, int(api.info()["NCPU"])
            except ImageNotFound as error:
                raise SandboxUnavailable(
                    f"The sandbox image {image} is not on this Docker engine: build it with "
                    f"`make sandbox-image{' PACKAGES=1' if image == PACKAGES_IMAGE else ''}`."
                ) from error
    return known


def plain_socket(attached: socket.SocketIO | ssl.SSLSocket) -> socket.socket:
    """Return the socket of *connection* in blocking mode. The SDK wraps sockets that do not use TLS."""
    if isinstance(attached, ssl.SSLSocket):
        stream: socket.socket = attached
    else:
        stream = socket.socket(fileno=os.dup(attached.fileno()))
        attached.close()
    stream.settimeout(None)
    return stream


def _sweep_once(api: docker.APIClient) -> None:
    """Call `sweep` before this process creates its first container on a daemon."""
    key = os.getpid(), str(api.base_url)
    with _once:
        if key in _swept:
            return
        _swept.add(key)
    sweep(api)


def sweep(api: docker.APIClient) -> list[str]:
    """Remove containers whose owner has ended, or that were created long ago and never started; return their ids."""
    removed = []
    for found in api.containers(all=True, filters={"label": f"{LABEL}=engine"}):
        abandoned = found["State"] == "created" and time.time() - found["Created"] > _ABANDONED_S
        if abandoned or is_gone(found["Labels"].get(OWNER_LABEL, "")):
            remove(api, found["Id"])
            removed.append(found["Id"])
    return removed


def remove(api: docker.APIClient, container: str) -> None:
    """Kill and remove a container and wait until it is removed, also if the daemon is removing it already."""
    with contextlib.suppress(*FAILURES):
        api.remove_container(container, force=True, v=True)
        return
    with contextlib.suppress(*FAILURES):  # the next sweep removes it
        api.wait(container, timeout=_REMOVAL_S, condition="removed")


def sentence(error: BaseException) -> str:
    """Return the message of a failure of the Docker engine with a final full stop."""
    text = str(getattr(error, "explanation", None) or error).strip().replace("\n", " ")
    return text if text.endswith(".") else f"{text}."
