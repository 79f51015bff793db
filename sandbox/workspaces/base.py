"""The interface of workspace engines: boxes, the operations on them, and their errors."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from sandbox.errors import SandboxUnavailable

VERIFY = "/verify"  # folder of a scoring box that only root can enter
SEED = "/.llmeval-workdir"  # folder of a built image with what its work folder begins with
PACKAGES = "/opt/packages"  # folder of packages that Python imports, read-only, in boxes and in the image of packages
MAX_ARTIFACTS = 20_000  # files and folders


class WorkspaceLost(SandboxUnavailable):
    """A box that ended, does not respond or is on another host. The response is errored, never wrong."""


class WorkspaceError(Exception):
    """An operation that the box refused, such as reading a file that does not exist. The message is the reason."""


class TooManyProcesses(WorkspaceError):
    """The box had no room for another process or its memory was full; every process of the agent was ended."""


class ArtifactsTooLarge(WorkspaceError):
    """The artifacts exceed the limit on bytes or files."""


class ServiceFailed(WorkspaceError):
    """A service that ended or did not become healthy in time; the message has the end of its output."""


class PackagesUnsuitable(Exception):
    """Packages that the Python of an image cannot import; the message names both Pythons."""


class BuildFailed(Exception):
    """An image that cannot be built; the message has the reason and the end of the build's output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxLimits:
    """Limits of one box. Files are kept in memory, so a box can use `memory_mb` and `disk_mb` together."""

    cpus: float = 1.0
    memory_mb: int = 512
    pids: int = 256
    disk_mb: int = 256
    episode_s: int = 1800
    output_kb: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSpec:
    """A container beside the box, which reaches it by `name`. It has the limits of the box.

    `healthcheck` is a shell command that must succeed in the container within `start_s`; "" if running suffices.
    `user` is the user of its processes, "" for the image's. `writable` are folders besides the image's volumes.
    """

    name: str
    image: str
    environment: Mapping[str, str] = field(default_factory=dict)
    healthcheck: str = ""
    start_s: float = 60.0
    user: str = ""
    writable: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSpec:
    """A box to open. `owner` is the process with which the box ends; "" if any process may use it until it expires.

    With `verify` the box has a folder `/verify` for tests and rewards that only root can enter. With `seeded` the work
    folder begins with what a built image has there. `services` are started before the box and removed with it.
    `allowed` are the hosts, each with a port, that the box may connect to through a proxy; none by default.
    `packages` is the digest of the image whose folder /opt/packages Python in the box imports from; "" for none.
    """

    image: str
    workdir: str = "/app"
    user: int = 1000
    limits: BoxLimits = field(default_factory=BoxLimits)
    owner: str = ""
    verify: bool = False
    seeded: bool = False
    services: Sequence[ServiceSpec] = ()
    allowed: Sequence[str] = ()
    packages: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A box: the host that it runs on, its id there, and a token of its start. `image` is the digest of its image.

    `network` is the name of the box's own network, "" if it has none.
    """

    host: str
    id: str
    generation: str
    image: str
    network: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """Result of one command. `output` has stdout and stderr in order; `cut` is the number of bytes left out of it.

    `exit_code` is 128 plus the signal's number if a signal ended the command.
    """

    exit_code: int
    output: str
    cut: int
    timed_out: bool
    wall_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file or folder (`content` is None) copied out of a box, by absolute path."""

    path: str
    mode: int
    content: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """Artifacts of a box. `refused` lists links, devices and other entries that are not copied."""

    entries: Sequence[Artifact] = ()
    refused: Sequence[str] = ()
    missing: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFacts:
    """An archive of the writable folders of a box: its SHA-256 and its size in bytes.

    `processes` is the number of processes that ran at that time, which no archive keeps. `left_out` are entries that
    cannot be kept, such as sockets.
    """

    digest: str
    size: int
    processes: int
    left_out: Sequence[str] = ()


class WorkspaceEngine(ABC):
    """Engine of workspaces. Its methods block, and can be called from several threads.

    All of them raise WorkspaceLost if the box cannot be used any more.
    """

    @abstractmethod
    def check(self, image: str = "") -> None:
        """Raise SandboxUnavailable if no box, or none of *image*, can be opened."""

    @abstractmethod
    def check_outside(self) -> None:
        """Raise SandboxUnavailable if boxes cannot be given a way to the outside."""

    @abstractmethod
    def refusals(self, handle: Handle, after: int) -> Sequence[str]:
        """Return the refused connections to hosts outside, oldest first, without the first *after* of them."""

    @abstractmethod
    def build(self, context: Mapping[str, bytes], workdir: str, seconds: float, *, allowed: bool) -> str:
        """Return the image of a folder with a Dockerfile, built in at most *seconds* unless it exists.

        Without *allowed* nothing is built. Raises BuildFailed, SandboxUnavailable.
        """

    @abstractmethod
    def find_packages(self) -> str:
        """Return the digest of the image with the packages of boxes. Raises SandboxUnavailable."""

    @abstractmethod
    def open(self, spec: BoxSpec) -> Handle:
        """Open a box. Raises SandboxUnavailable, ServiceFailed."""

    @abstractmethod
    def execute(
        self,
        handle: Handle,
        command: str,
        seconds: float,
        *,
        root: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run *command* in a new shell, in the work folder. After *seconds* its process group is killed.

        With *root*, it runs as root without privileges (scoring boxes only). Raises WorkspaceError.
        """

    @abstractmethod
    def read(self, handle: Handle, path: str, max_bytes: int, *, root: bool = False) -> bytes:
        """Return at most *max_bytes* of a regular file. Raises WorkspaceError."""

    @abstractmethod
    def write(self, handle: Handle, files: Mapping[str, bytes], *, root: bool = False, mode: int | None = None) -> None:
        """Write files, and the folders that they need. Raises WorkspaceError."""

    @abstractmethod
    def ping(self, handle: Handle) -> None:
        """Raise WorkspaceLost if the box cannot be used."""

    @abstractmethod
    def end_processes(self, handle: Handle) -> None:
        """Kill every process in the box that was started by a command."""

    @abstractmethod
    def reached_limits(self, handle: Handle) -> Sequence[str]:
        """Return which limits the box has reached since it was opened: `memory`, `processes`.

        A limit for which the kernel counts no events is left out.
        """

    @abstractmethod
    def export_artifacts(self, handle: Handle, paths: Sequence[str], max_mb: int) -> Artifacts:
        """Kill the box's processes and copy *paths* out of it. Raises WorkspaceError."""

    @abstractmethod
    def snapshot(self, handle: Handle, workdir: str, target: IO[bytes], max_mb: int) -> SnapshotFacts:
        """Write an archive of the work folder, /tmp and /dev/shm to *target*. Its processes are stopped meanwhile.

        Files may have *max_mb* together, holes of sparse ones included. Raises WorkspaceError.
        """

    @abstractmethod
    def open_snapshot(self, spec: BoxSpec, source: IO[bytes], max_mb: int) -> Handle:
        """Open a box with the files of an archive. Raises SandboxUnavailable, ServiceFailed, WorkspaceError."""

    @abstractmethod
    def open_from(self, spec: BoxSpec, artifacts: Artifacts) -> Handle:
        """Open a box of a trusted image and copy *artifacts* into it. Raises SandboxUnavailable, WorkspaceError."""

    @abstractmethod
    def close(self, handle: Handle) -> None:
        """Remove a box, its services and its network. Does nothing if they are removed already."""

    @abstractmethod
    def sweep(self) -> list[str]:
        """Remove boxes, services and networks that have expired or whose owner has ended, and return their ids."""
