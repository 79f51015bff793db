"""What every way of reaching an engine has to offer."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """Where engines come from, for the backends that need to be told.

    image      docker: an image built by `make sandbox-image`; None is its default name
    runtime    docker: a container runtime other than the daemon's default, such as runsc (gVisor)
    memory_mb  docker: MiB of memory of one container, an engine and its run together
    cpus       docker: processors of one container, as far as there are so many. With one, an engine that prepares the
               next run beside the present one would be held up
    socket     socket: path of the unix socket that the engine's service listens on
    packages   local: the directory into which `manage.py sandbox_packages install` puts packages
    offering   whether engines offer packages to the code: docker then takes the image that holds them
    """

    image: str | None = None
    runtime: str | None = None
    memory_mb: int = 1024
    cpus: float = 2.0
    socket: str = "/run/llmeval/sandbox.sock"
    packages: str = ""
    offering: bool = False


class Transport(ABC):
    """A started engine at the other end of two byte streams. Used by one thread at a time.

    backend          the name under which results and settings know it
    separate_judge   whether a judge must run in another engine than the code it judges
    max_runs         runs after which an engine is replaced
    keep_after_harm  whether an engine may be used again after a run timed out or tampered
    installation     how packages get to where engines can offer them, as an imperative
    renewal          what to do where the engine is not this installation's own; "" where it always is
    """

    backend: ClassVar[str]
    separate_judge: ClassVar[bool] = False
    max_runs: ClassVar[int] = 2000
    keep_after_harm: ClassVar[bool] = False
    installation: ClassVar[str]
    renewal: ClassVar[str] = ""

    def __init__(self, options: TransportOptions) -> None:
        self.options = options

    def beside(self) -> "Transport":
        """Another of the kind, for the engine that judges what runs in this one's."""
        return type(self)(self.options)

    @property
    def packages_folder(self) -> str:
        """Where the packages lie that engines may offer, as an engine sees it."""
        return "/opt/packages"

    @property
    def name(self) -> str:
        """Where the engine comes from, to begin a sentence with."""
        return f"The {self.backend} backend"

    @abstractmethod
    def open(self) -> None:
        """Start or reach the engine. Raises SandboxUnavailable with a sentence on what is missing."""

    @abstractmethod
    def fileno(self) -> int:
        """A descriptor that polls readable when `read` would not block."""

    @abstractmethod
    def read(self) -> bytes:
        """What has arrived, at least one byte; b"" once the engine is gone."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Send all of `data`. Raises EngineFailed when the engine is gone."""

    @abstractmethod
    def close(self) -> None:
        """End the engine and everything it runs, and leave nothing behind. Never raises; may be called twice."""

    @abstractmethod
    def abort(self) -> None:
        """Cut the engine off from any thread: a `read` that waits in another returns. `close` still has to follow."""

    @abstractmethod
    def forget(self) -> None:
        """In a forked child: let go of the parent's engine without ending it."""
