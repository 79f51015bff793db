"""Base class of the engines whose boxes run the driver as their first process: Docker and native."""

import base64
import hashlib
import json
import math
import posixpath
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import IO, Required, TypedDict

from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import (
    MAX_ARTIFACTS,
    PACKAGES,
    SEED,
    VERIFY,
    Artifact,
    Artifacts,
    BoxSpec,
    CommandResult,
    Handle,
    SnapshotFacts,
    WorkspaceEngine,
    WorkspaceLost,
)
from sandbox.workspaces.connection import Connection, Reply

_SOURCE = "LLMEVAL_DRIVER"
_TMP_MB = 64
_VERIFY_MB = 64
_START_S = 60.0
_EXPORT_S = 120  # for the host to receive the artifacts
_REPLY_S = 30.0  # for the driver to reply after a command has ended
_CHUNK = 1024 * 1024
_REQUEST_BYTES = 2 * 1024 * 1024  # at most, of a request with several entries; the driver accepts 8 MiB
_REQUEST_ENTRIES = 1000
_MAX_SNAPSHOT = 100_000
_SNAPSHOT_S = 120  # for packing or unpacking
_SNAPSHOT_OVERHEAD = 64 * 1024 * 1024  # headers of up to _MAX_SNAPSHOT entries


class _Entry(TypedDict, total=False):
    """A file to write, or a part of one in base64, or a folder, which has no data; or a path that gets another mode.

    append: to what the file already has.
    """

    path: Required[str]
    data: str
    append: bool
    mode: int | None


def driver_arguments(spec: BoxSpec, generation: str, **more: int) -> list[str]:
    """Return the arguments with which Python runs the driver, if it has the variables of `driver_environment`.

    Each process of the box can read the arguments of the driver, so they are short. *more*: see `driver_config`.
    """
    program = f"import os, sys; exec(os.environ.pop({_SOURCE!r})); main(sys.argv[1])"
    return ["-I", "-S", "-c", program, driver_config(spec, generation, **more)]


def driver_environment() -> dict[str, str]:
    """Return the variables that the driver needs at its start. They are not passed on to commands."""
    return {_SOURCE: driver_source()}


def driver_config(spec: BoxSpec, generation: str, **more: int) -> str:
    """Return the argument of the driver. *more*: what one engine adds or changes."""
    config = {
        "generation": generation,
        "user": spec.user,
        "workdir": spec.workdir,
        "expires_s": spec.limits.episode_s,
        "output_kb": spec.limits.output_kb,
        "packages": PACKAGES if spec.packages else "",
        **more,
    }
    return json.dumps(config)


def writable_folders(spec: BoxSpec, root: int, user: int) -> dict[str, str]:
    """Return path -> tmpfs options of the writable folders of a box.

    root, user: the numeric users, as the engine mounts the folders, of root in the box and of the agent.
    """
    folders = {
        spec.workdir: f"uid={user},gid={user},mode=0755,size={spec.limits.disk_mb}m,nr_inodes=64k",
        "/tmp": f"mode=1777,size={_TMP_MB}m,nr_inodes=16k",  # noqa: S108
    }
    if spec.verify:
        folders[VERIFY] = f"uid={root},gid={root},mode=0700,size={_VERIFY_MB}m,nr_inodes=16k"
    return folders


def total_memory_mb(spec: BoxSpec) -> int:
    """Return how much memory a box may use, in MiB: its processes and its writable folders, which are in memory."""
    return spec.limits.memory_mb + spec.limits.disk_mb + _TMP_MB + (_VERIFY_MB if spec.verify else 0)


def not_started(spec: BoxSpec, reason: object) -> SandboxUnavailable:
    """Return the error of a box whose driver does not reply."""
    return SandboxUnavailable(
        f"No workspace of the image {spec.image} could be started: {str(reason).rstrip('.')}. "
        f"The image must have python3, 3.9 or later, and may need no file of the work folder {spec.workdir} to run it."
    )


def lost() -> WorkspaceLost:
    """Return the error for a box that does not exist any more."""
    return WorkspaceLost("The workspace does not exist any more, or is on another host.")


_DEFINE = """
import sys, types
for name, source in {modules!r}.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
main = module.main
"""


@cache
def driver_source() -> str:
    """Return a program that defines `main`, with the modules of `inside` under the names by which they are imported."""
    folder = Path(__file__).with_name("inside")
    names = ("files", "processes", "commands", "driver")  # each imports only those before it
    modules = {
        f"sandbox.workspaces.inside.{name}": (folder / f"{name}.py").read_text(encoding="utf-8") for name in names
    }
    return _DEFINE.format(modules=modules)


class DriverWorkspaces(WorkspaceEngine):
    """Engine whose boxes carry out the requests of a connection."""

    @abstractmethod
    def connect(self, handle: Handle, *, start: bool = False) -> Connection:
        """Connect to the driver of a box, which is started first if *start*. Raises WorkspaceLost."""

    def wait_for_driver(self, connection: Connection, spec: BoxSpec) -> None:
        """Wait until the driver replies, and fill the work folder of a seeded box."""
        connection.call("ping", _START_S)
        if spec.seeded:
            connection.call("execute", _START_S, command=f"cp -a {SEED}/. .", seconds=_START_S / 2)

    def execute(
        self,
        handle: Handle,
        command: str,
        seconds: float,
        *,
        root: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> CommandResult:
        with self.connect(handle) as connection:
            reply = connection.call(
                "execute",
                seconds + _REPLY_S,
                command=command,
                seconds=seconds,
                root=root,
                environment=dict(environment or {}),
            )
        cut = int(reply["cut"])
        head, tail = (base64.b64decode(reply[key]) for key in ("head", "tail"))
        marker = f"\n[{cut:,} bytes of output cut here]\n" if cut else ""
        return CommandResult(
            exit_code=int(reply["exit_code"]),
            output=(head + marker.encode() + tail).decode("utf-8", "replace"),
            cut=cut,
            timed_out=bool(reply["timed_out"]),
            wall_ms=float(reply["ms"]),
        )

    def read(self, handle: Handle, path: str, max_bytes: int, *, root: bool = False) -> bytes:
        with self.connect(handle) as connection:
            reply = connection.call("read", path=path, max_bytes=max_bytes, root=root)
        return base64.b64decode(reply["data"])

    def write(self, handle: Handle, files: Mapping[str, bytes], *, root: bool = False, mode: int | None = None) -> None:
        if not files:
            return
        with self.connect(handle) as connection:
            entries = (entry for path, content in files.items() for entry in _entries_of_file(path, content, mode))
            _call(connection, "write", entries, root=root)

    def ping(self, handle: Handle) -> None:
        with self.connect(handle) as connection:
            connection.call("ping", _REPLY_S)

    def end_processes(self, handle: Handle) -> None:
        with self.connect(handle) as connection:
            connection.call("end_processes")

    def reached_limits(self, handle: Handle) -> Sequence[str]:
        with self.connect(handle) as connection:
            return [str(name) for name in connection.call("reached_limits")["limits"]]

    def export_artifacts(self, handle: Handle, paths: Sequence[str], max_mb: int) -> Artifacts:
        with self.connect(handle) as connection:
            parts = connection.stream(
                "export",
                _EXPORT_S,
                paths=[posixpath.normpath(path) for path in paths],
                max_bytes=max_mb * 1024 * 1024,
                max_entries=MAX_ARTIFACTS,
                # The agent's processes have ended, so only the machine can be too slow. The host gives up first: the
                # box counts as lost then, not its artifacts as wrong.
                seconds=_EXPORT_S + math.ceil(_REPLY_S),
            )
            return _join_artifacts(parts, paths)

    def snapshot(self, handle: Handle, workdir: str, target: IO[bytes], max_mb: int) -> SnapshotFacts:
        digest, size = hashlib.sha256(), 0
        with self.connect(handle) as connection:
            parts = connection.stream(
                "snapshot",
                _SNAPSHOT_S + _REPLY_S,
                2 * max_mb * 1024 * 1024 + _SNAPSHOT_OVERHEAD,
                folders=_snapshot_folders(workdir),
                max_bytes=max_mb * 1024 * 1024,
                max_entries=_MAX_SNAPSHOT,
                seconds=_SNAPSHOT_S,
            )
            for reply in parts:
                if reply.get("part") == "data":
                    data = base64.b64decode(reply["data"])
                    digest.update(data)
                    size += len(data)
                    target.write(data)
        left_out = [str(path) for path in reply.get("left_out", ())]
        return SnapshotFacts(digest=digest.hexdigest(), size=size, processes=int(reply["processes"]), left_out=left_out)

    def open_snapshot(self, spec: BoxSpec, source: IO[bytes], max_mb: int) -> Handle:
        handle = self.open(replace(spec, seeded=False))
        try:
            with self.connect(handle) as connection:
                _restore(connection, spec.workdir, source, max_mb)
        except BaseException:
            self.close(handle)
            raise
        return handle

    def open_from(self, spec: BoxSpec, artifacts: Artifacts) -> Handle:
        handle = self.open(spec)
        try:
            with self.connect(handle) as connection:
                folders = [entry for entry in artifacts.entries if entry.content is None]
                _call(connection, "write", ({"path": folder.path} for folder in folders))
                files = ((item.path, item.content, item.mode) for item in artifacts.entries if item.content is not None)
                _call(connection, "write", (entry for file in files for entry in _entries_of_file(*file)))
                # Inner folders first, because an outer one may become read-only. Root without privileges, and the
                # programs of the agent that it starts, begin in the work folder, so all must be able to enter that.
                modes = (
                    _Entry(path=folder.path, mode=folder.mode | (0o555 if folder.path == spec.workdir else 0))
                    for folder in reversed(folders)
                )
                _call(connection, "change_modes", modes)
        except BaseException:
            self.close(handle)
            raise
        return handle


def _join_artifacts(parts: Iterable[Reply], paths: Sequence[str]) -> Artifacts:
    """Return the artifacts below *paths* that a box sends in parts. Raises WorkspaceLost if these are not consistent.

    Each file or folder begins with a part of its own. The parts with the data of a file follow that of the file.
    """
    entries: list[Artifact] = []
    contents: dict[str, bytearray] = {}
    refused: list[str] = []
    missing: list[str] = []
    for part in parts:
        kind, path = part.get("part"), str(part.get("path", ""))
        if kind in ("file", "folder", "data") and not _is_below(path, paths):
            raise WorkspaceLost("The workspace sent a file outside of the declared artifacts.")
        if kind == "folder":
            entries.append(Artifact(path=path, mode=int(part["mode"]) & 0o3777, content=None))
        elif kind == "file":
            entries.append(Artifact(path=path, mode=int(part["mode"]) & 0o3777, content=b""))
            contents[path] = bytearray()
        elif kind == "data":
            if not entries or entries[-1].path != path or entries[-1].content is None:
                raise WorkspaceLost("The workspace sent the parts of its artifacts in a wrong order.")
            contents[path] += base64.b64decode(part["data"])
        elif kind == "refused":
            refused.append(path)
        elif kind == "missing":
            missing.append(path)
    entries = [replace(item, content=bytes(contents[item.path])) if item.path in contents else item for item in entries]
    return Artifacts(entries=entries, refused=refused, missing=missing)


def _snapshot_folders(workdir: str) -> list[str]:
    """Return all folders in which the agent can keep files."""
    return [workdir, "/tmp", "/dev/shm"]  # noqa: S108


def _restore(connection: Connection, workdir: str, source: IO[bytes], max_mb: int) -> None:
    part, first = source.read(_CHUNK), True
    while first or part:
        following = source.read(_CHUNK)
        connection.call(
            "restore",
            _SNAPSHOT_S + _REPLY_S,
            folders=_snapshot_folders(workdir),
            max_bytes=max_mb * 1024 * 1024,
            max_entries=_MAX_SNAPSHOT,
            seconds=_SNAPSHOT_S,
            data=base64.b64encode(part).decode(),
            first=first,
            last=not following,
        )
        part, first = following, False


def _entries_of_file(path: str, content: bytes, mode: int | None) -> Iterator[_Entry]:
    """Yield a file in parts that fit into a request. The last one has the mode."""
    for start in range(0, max(len(content), 1), _CHUNK):
        data = base64.b64encode(content[start : start + _CHUNK]).decode()
        last = start + _CHUNK >= len(content)
        yield {"path": path, "data": data, "append": start > 0, "mode": mode if last else None}


def _call(connection: Connection, operation: str, entries: Iterable[_Entry], *, root: bool = False) -> None:
    """Send *entries*, many with each request: the driver starts a process for a request, not for an entry."""
    waiting: list[_Entry] = []
    size = 0
    for entry in entries:
        length = len(json.dumps(entry))
        if waiting and (size + length > _REQUEST_BYTES or len(waiting) == _REQUEST_ENTRIES):
            connection.call(operation, entries=waiting, root=root)
            waiting, size = [], 0
        waiting.append(entry)
        size += length
    if waiting:
        connection.call(operation, entries=waiting, root=root)


def _is_below(path: str, roots: Sequence[str]) -> bool:
    tops = [posixpath.normpath(root) for root in roots]
    return posixpath.normpath(path) == path and any(path == top or path.startswith(f"{top}/") for top in tops)
