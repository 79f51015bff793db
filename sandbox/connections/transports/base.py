"""Base class of transports."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """Options of the backends.

    image      docker: an image built by `make sandbox-image`; None for the default name
    runtime    docker: a container runtime other than the daemon's default, such as runsc (gVisor)
    memory_mb  docker: MiB of memory of one container, for an engine and its run together
    cpus       docker: processors of one container, at most as many as the machine has. With a single one, the run would
               wait while the engine prepares the next run
    socket     socket: path of the unix socket that the engine's service listens on
    packages   local: the directory into which `manage.py sandbox_packages install` puts packages
    with_packages  whether engines offer packages to the code; docker then uses the image that contains them
    """

    image: str | None = None
    runtime: str | None = None
    memory_mb: int = 1024
    cpus: float = 2.0
    socket: str = "/run/llmeval/sandbox.sock"
    packages: str = ""
    with_packages: bool = False


class Transport(ABC):
    """A started engine, reached over two byte streams. Used by one thread at a time.

    backend         the name of the backend in settings and results
    separate_test_judge  whether a judge must run in another engine than the code it judges
    max_runs        number of runs after which an engine is replaced
    install_hint    how to install packages for this backend, as an imperative
    rebuild_hint    what to do if the engine is of another release, as an imperative; "" if it cannot be
    """

    backend: ClassVar[str]
    separate_test_judge: ClassVar[bool] = False
    max_runs: ClassVar[int] = 2000
    install_hint: ClassVar[str]
    rebuild_hint: ClassVar[str] = ""

    def __init__(self, options: TransportOptions) -> None:
        self.options = options

    def create_test_judge_transport(self) -> "Transport":
        """Return a transport for the engine that judges what runs in the engine of this one."""
        return type(self)(self.options)

    @property
    def packages_folder(self) -> str:
        """The directory of installed packages, as an engine sees it."""
        return "/opt/packages"

    @property
    def description(self) -> str:
        """Where the engine comes from, as the beginning of a sentence."""
        return f"The {self.backend} backend"

    @abstractmethod
    def open(self) -> None:
        """Start or reach the engine. Raises SandboxUnavailable with what is missing."""

    @abstractmethod
    def fileno(self) -> int:
        """Return a descriptor that polls readable when `read` would not block."""

    @abstractmethod
    def read(self) -> bytes:
        """Return what has arrived, at least one byte; b"" once the engine is gone."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Send all of `data`. Raises EngineFailed if the engine is gone."""

    @abstractmethod
    def close(self) -> None:
        """End the engine and everything it runs, and leave nothing behind. Never raises; may be called twice."""

    @abstractmethod
    def abort(self) -> None:
        """Disconnect the engine, from any thread: a `read` that blocks in another thread returns.

        `close` has to be called as well.
        """

    @abstractmethod
    def detach_after_fork(self) -> None:
        """Release the parent's engine in a forked child without ending it."""
