"""Boxes without containers: namespaces, control groups and a system call filter, over the files of a local image."""

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from uuid import uuid4

from sandbox.connections.owners import is_gone
from sandbox.connections.transports.docker import PACKAGES_IMAGE
from sandbox.engine.boxes.keeper import remove
from sandbox.engine.boxes.setup import LISTEN_FD, BoxPlan, ReadOnlyFolder
from sandbox.engine.isolation import cgroups, seccomp
from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import PACKAGES, BoxSpec, Handle, WorkspaceLost
from sandbox.workspaces.connection import Connection
from sandbox.workspaces.driven import (
    DriverWorkspaces,
    driver_config,
    lost,
    not_started,
    total_memory_mb,
    writable_folders,
)
from sandbox.workspaces.native_roots import RootCache
from sandbox.workspaces.native_zygote import BoxZygote

_SHM = {"/dev/shm": "mode=1777,size=16m,nr_inodes=1k"}  # noqa: S108
_START_S = 60
_CONNECT_S = 10.0
_FIRST_UID = 0x73000000  # no distribution assigns these; engines use those from namespaces.UID_BASE on
_SLOT_DIGITS = 5
_ONLY_DOCKER = "only the Docker engine of workspaces offers. Set LLMEVAL_WORKSPACES=docker on a machine with Docker."


class NativeWorkspaces(DriverWorkspaces):
    """Workspaces in namespaces of this machine. Needs root and control groups."""

    def __init__(self, folder: Path, *, packages_image: str = PACKAGES_IMAGE) -> None:
        """folder: where the files of images and the sockets of boxes are kept; only root may enter it.

        packages_image: the image with the packages of boxes.
        """
        self._packages_image = packages_image
        self._roots = RootCache(folder / "images")
        self._boxes = folder / "boxes"
        self.zygote = BoxZygote()

    def check(self, image: str = "") -> None:
        if problem := missing_protection():
            raise SandboxUnavailable(f"Native workspaces cannot be used on this machine: {problem}")
        if image:
            self._roots.get(image)

    def check_outside(self) -> None:
        raise SandboxUnavailable(f"This environment lets its boxes connect to hosts outside, which {_ONLY_DOCKER}")

    def refusals(self, handle: Handle, after: int) -> Sequence[str]:
        return []

    def build(self, context: Mapping[str, bytes], workdir: str, seconds: float, *, allowed: bool) -> str:
        raise SandboxUnavailable(f"The image of this environment is built from a Dockerfile, which {_ONLY_DOCKER}")

    def find_packages(self) -> str:
        return self._roots.get(self._packages_image).digest

    def open(self, spec: BoxSpec) -> Handle:
        self._check_spec(spec)
        root = self._roots.get(spec.image)
        packages = [self._packages_folder(spec.packages)] if spec.packages else []
        state, uid = _make_state(self._boxes)
        generation = uuid4().hex
        handle = Handle(host=socket.gethostname(), id=state.name, generation=generation, image=root.digest)
        try:
            folders = {**writable_folders(spec, root=uid, user=uid + 1), **_SHM}
            plan: BoxPlan = {
                "root": str(root.folder),
                "name": f"llmeval-box-{state.name}",
                "state": str(state),
                "uid": uid,
                "user": spec.user,
                "folders": [{"path": path, "options": options} for path, options in folders.items()],
                "read_only": packages,
                "groups": _group_folders(),
                "memory": total_memory_mb(spec) << 20,
                "processes": spec.limits.pids,
                "cpus": min(spec.limits.cpus, os.cpu_count() or 1),
                "expires_s": spec.limits.episode_s,
                "environment": {"PATH": os.defpath, **root.environment},
                "driver": driver_config(spec, generation, listen=LISTEN_FD),
            }
            _write_facts(state, spec, plan)
            self._start(plan, state, spec)
            with self.connect(handle) as connection:
                self.wait_for_driver(connection, spec)
        except BaseException as error:
            self.close(handle)
            if isinstance(error, OSError | subprocess.TimeoutExpired):
                raise not_started(spec, error) from error
            raise
        return handle

    def _check_spec(self, spec: BoxSpec) -> None:
        """Raise SandboxUnavailable if this engine cannot open a box of *spec*."""
        if spec.services:
            raise SandboxUnavailable(f"This environment has services beside its boxes, which {_ONLY_DOCKER}")
        if spec.allowed:
            self.check_outside()
        self.check()

    def _packages_folder(self, image: str) -> ReadOnlyFolder:
        folder = self._roots.get(image).folder / PACKAGES.removeprefix("/")
        if not folder.is_dir():
            raise SandboxUnavailable(f"The image of packages {image} has no folder {PACKAGES}.")
        return {"source": str(folder), "path": PACKAGES}

    def _start(self, plan: BoxPlan, state: Path, spec: BoxSpec) -> None:
        """Start a box, and return once its driver runs. Raises SandboxUnavailable, OSError."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, _folder_descriptor(state) as folder:
            listener.bind(f"/proc/self/fd/{folder}/socket")
            listener.listen(64)
            if reason := self.zygote.start_box(plan, listener):
                raise not_started(spec, reason)

    def connect(self, handle: Handle, *, start: bool = False) -> Connection:
        state = self._state(handle)
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connected.settimeout(_CONNECT_S)
            with _folder_descriptor(state) as folder:
                connected.connect(f"/proc/self/fd/{folder}/socket")  # paths of sockets are short
        except OSError:
            connected.close()
            raise lost() from None
        return Connection(connected, handle.generation, framed=False)

    def close(self, handle: Handle) -> None:
        with contextlib.suppress(OSError, WorkspaceLost, ValueError):  # the sweep removes it
            _remove(self._state(handle))

    def reached_limits(self, handle: Handle) -> Sequence[str]:
        facts = _read_facts(self._state(handle))  # a box does not see its control groups
        groups = facts.get("groups")
        return cgroups.box_limits_reached(str(facts.get("name", "")), dict(groups)) if isinstance(groups, dict) else []

    def sweep(self) -> list[str]:
        removed = []
        for state in sorted(self._boxes.glob("*")):
            with contextlib.suppress(OSError, ValueError):
                if _is_left(state) and _remove(state):
                    removed.append(state.name)
        return removed

    def _state(self, handle: Handle) -> Path:
        """Return the folder of a box. Its name comes from the database, so it must not be a path."""
        if not handle.id.isalnum():
            raise lost()
        return self._boxes / handle.id


_group_folders = cache(cgroups.box_folders)


@cache
def missing_protection() -> str:
    """Return why boxes would not be protected on this machine; "" if nothing is missing."""
    if os.name != "posix" or os.uname().sysname != "Linux":
        return "only Linux has namespaces."
    if os.geteuid() != 0:
        return (
            "the process that opens boxes must be root, which gives them users of their own and limits them. "
            "Use the Docker engine (LLMEVAL_WORKSPACES=docker) or run the workers as root."
        )
    if not seccomp.works():
        return f"there is no system call filter for {os.uname().machine}."
    if "overlay" not in Path("/proc/filesystems").read_text(encoding="utf-8"):
        return "the kernel does not offer overlayfs (`modprobe overlay`)."
    try:
        _group_folders()
    except OSError as error:
        return f"memory, processes and processor time of a box cannot be limited: {error}. Delegate a control group."
    return ""


def _make_state(boxes: Path) -> tuple[Path, int]:
    """Create the folder of a new box. Return it and the first of the two consecutive user ids that the box gets.

    The folder's name begins with a number from which the ids are computed, so removing the folder frees them.
    """
    boxes.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (boxes.parent / ".users").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        taken = {other.name[:_SLOT_DIGITS] for other in boxes.iterdir()}
        slot = next(slot for slot in range(16**_SLOT_DIGITS) if f"{slot:0{_SLOT_DIGITS}x}" not in taken)
        state = boxes / f"{slot:0{_SLOT_DIGITS}x}{uuid4().hex}"
        state.mkdir(mode=0o700)
    return state, _FIRST_UID + 2 * slot


@contextlib.contextmanager
def _folder_descriptor(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write_facts(state: Path, spec: BoxSpec, plan: BoxPlan) -> None:
    """Write what a process that closes or sweeps the box has to know. `expires` is in seconds since the epoch."""
    facts = {
        "owner": spec.owner,
        "expires": time.time() + spec.limits.episode_s,
        "name": plan["name"],
        "groups": plan["groups"],
    }
    (state / "box.json").write_text(json.dumps(facts), encoding="utf-8")


def _read_facts(state: Path) -> dict[str, object]:
    """Return what `_write_facts` wrote; empty if there is nothing, or only a part of it."""
    try:
        found: dict[str, object] = json.loads((state / "box.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def _is_left(state: Path) -> bool:
    facts = _read_facts(state)
    if not facts:  # another process is just making it, or was killed while it did
        return time.time() - state.stat().st_mtime > _START_S
    owner, expires = str(facts["owner"]), facts["expires"]
    return not isinstance(expires, float) or expires < time.time() or bool(owner and is_gone(owner))


def _remove(state: Path) -> bool:
    facts = _read_facts(state)
    groups = facts.get("groups")
    if not state.is_dir():
        return False
    return remove(str(state), str(facts.get("name", "")), dict(groups) if isinstance(groups, dict) else {})
