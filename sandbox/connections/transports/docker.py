"""The engine as process 1 of a container, spoken to over its attached standard streams."""

import contextlib
import os
import socket
import ssl
import struct
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import DockerException, ImageNotFound
from docker.types import LogConfig, Ulimit

from sandbox.connections.transports.base import Transport, TransportOptions
from sandbox.errors import EngineFailed, SandboxUnavailable

DEFAULT_IMAGE = "llmeval-sandbox:latest"
PACKAGES_IMAGE = "llmeval-sandbox:packages"
LABEL = "llmeval.sandbox"
OWNER_LABEL = "llmeval.sandbox.owner"

_USER = "65534:65534"
_PROCESSES = 128  # an engine's two, and the most threads and children that one run may have
_SCRATCH_MB = 128
_ABANDONED_S = 600  # a container that was made but not started for so long has lost its maker
_API_TIMEOUT_S = 60
_REMOVAL_S = 10
_HEADER = struct.Struct(">BxxxL")  # before every piece of an attached container's output: stream, length
_STDOUT = 1

# What the docker package lets through when the daemon is away, misbehaves or refuses.
_FAILURES = (DockerException, requests.RequestException, OSError)


def hardening(options: TransportOptions, beside: str = "") -> dict[str, Any]:
    """The host configuration of a container that holds engines, as keyword arguments of `create_host_config`.

    *beside* is another container, which has no network either and whose empty network namespace this one shares, so
    that the two engines can meet.
    """
    return {
        "network_mode": f"container:{beside}" if beside else "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "pids_limit": _PROCESSES,
        "mem_limit": f"{options.memory_mb}m",
        "memswap_limit": f"{options.memory_mb}m",
        "nano_cpus": int(options.cpus * 1e9),
        "ipc_mode": "none",  # a private namespace, and no /dev/shm in it
        "tmpfs": {"/tmp": f"rw,noexec,nosuid,nodev,mode=1777,size={_SCRATCH_MB}m,nr_inodes=16k"},  # noqa: S108
        "ulimits": [Ulimit(name="core", soft=0, hard=0), Ulimit(name="nofile", soft=1024, hard=4096)],
        "log_config": LogConfig(type="none"),
        "oom_score_adj": 500,
        "runtime": options.runtime,
    }


class DockerTransport(Transport):
    """A container of the sandbox's image without network, root, capabilities or a writable file beyond one tmpfs.

    The container's stdin is ours alone (StdinOnce): when this process ends, however it ends, the daemon closes it, the
    engine ends, and the daemon removes the container. `sweep` takes those that were never started.
    """

    backend = "docker"
    separate_judge = True
    installation = "build the image that holds them with `make sandbox-image PACKAGES=1`"
    renewal = "build it anew with `make sandbox-image`, and restart what has used the old one"

    def __init__(self, options: TransportOptions) -> None:
        super().__init__(options)
        self._api: docker.APIClient | None = None
        self._container = ""
        self._beside = ""
        self._stream: socket.socket | None = None
        self._received = bytearray()

    def beside(self) -> "DockerTransport":
        made = DockerTransport(self.options)
        made._beside = self._container
        return made

    @property
    def name(self) -> str:
        return f"The sandbox image {self._image}"

    @property
    def _image(self) -> str:
        return self.options.image or (PACKAGES_IMAGE if self.options.offering else DEFAULT_IMAGE)

    def open(self) -> None:
        try:
            self._api = docker.from_env(timeout=_API_TIMEOUT_S).api
            _sweep_once(self._api)
            self._start(self._api, *_daemon(self._api, self._image))
        except SandboxUnavailable:
            self.close()
            raise
        except _FAILURES as error:
            self.close()
            raise SandboxUnavailable(
                f"No container could be started for the docker sandbox: {_sentence(error)} "
                "Is the Docker engine running, and may this user use it (DOCKER_HOST, the docker group)?"
            ) from error

    def _start(self, api: docker.APIClient, image: str, cpus: int) -> None:
        limited = replace(self.options, cpus=min(self.options.cpus, cpus))  # more are refused
        made = api.create_container(
            image,
            user=_USER,
            stdin_open=True,  # and, attached, StdinOnce
            hostname=None if self._beside else "sandbox",  # what is beside another has its name
            labels={LABEL: "engine", OWNER_LABEL: owner()},
            host_config=api.create_host_config(**hardening(limited, self._beside), auto_remove=True),
        )
        self._container = made["Id"]
        attached = api.attach_socket(self._container, params={"stdin": 1, "stdout": 1, "stream": 1})
        self._stream = _plain_socket(attached)
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
        """The engine's bytes among those received, without the daemon's headers."""
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

    def forget(self) -> None:
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


# ---- the daemon's side ----------------------------------------------------------------------------------------------

_once = threading.Lock()
_swept: set[tuple[int, str]] = set()
_known: dict[tuple[str, str], tuple[str, int]] = {}


def _daemon(api: docker.APIClient, image: str) -> tuple[str, int]:
    """The id behind an image's name, and how many processors the daemon has.

    Looked up once per process: a tag that moves does not mix two engines.
    """
    with _once:
        known = _known.get((api.base_url, image))
        if known is None:
            try:
                found = str(api.inspect_image(image)["Id"])
                known = _known[api.base_url, image] = found, int(api.info()["NCPU"])
            except ImageNotFound as error:
                raise SandboxUnavailable(
                    f"The sandbox image {image} is not on this Docker engine: build it with "
                    f"`make sandbox-image{' PACKAGES=1' if image == PACKAGES_IMAGE else ''}`."
                ) from error
    return known


def _plain_socket(attached: Any) -> socket.socket:
    """The connection itself, blocking, out of what the SDK wraps around it and, but for TLS, independent of that."""
    inner = getattr(attached, "_sock", attached)
    stream = inner if isinstance(inner, ssl.SSLSocket) else socket.socket(fileno=os.dup(inner.fileno()))
    stream.settimeout(None)
    if stream is not inner:
        attached.close()
    return stream


def owner() -> str:
    """Names this process beyond doubt: host, process id, and when the process began."""
    return f"{socket.gethostname()}/{os.getpid()}/{_began(os.getpid())}"


def _began(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _is_gone(name: str) -> bool:
    """Whether the owner ran on this host and does not any more."""
    host, _, process = name.rpartition("/")[0].rpartition("/")
    if host != socket.gethostname() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # somebody else's, so it exists
    return _began(int(process)) != name.rpartition("/")[2]


def _sweep_once(api: docker.APIClient) -> None:
    """`sweep` at this process's first container on a daemon."""
    key = os.getpid(), str(api.base_url)
    with _once:
        if key in _swept:
            return
        _swept.add(key)
    sweep(api)


def sweep(api: docker.APIClient) -> list[str]:
    """Remove containers whose owner is gone, or that were made long ago and never started; their ids."""
    removed = []
    for found in api.containers(all=True, filters={"label": f"{LABEL}=engine"}):
        abandoned = found["State"] == "created" and time.time() - found["Created"] > _ABANDONED_S
        if abandoned or _is_gone(found["Labels"].get(OWNER_LABEL, "")):
            remove(api, found["Id"])
            removed.append(found["Id"])
    return removed


def remove(api: docker.APIClient, container: str) -> None:
    """Kill and remove a container, and wait until it is gone; one that the daemon is removing already as well."""
    with contextlib.suppress(*_FAILURES):
        api.remove_container(container, force=True, v=True)
        return
    with contextlib.suppress(*_FAILURES):  # what is left then is swept later
        api.wait(container, timeout=_REMOVAL_S, condition="removed")


def _sentence(error: BaseException) -> str:
    text = str(getattr(error, "explanation", None) or error).strip().replace("\n", " ")
    return text if text.endswith(".") else f"{text}."
