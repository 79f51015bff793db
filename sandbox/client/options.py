"""The options of a pool."""

import os
from dataclasses import dataclass, field

from sandbox.connections.backends import BACKEND_CHOICES
from sandbox.connections.transports import TransportOptions

TIERS = {
    "A": "namespaces, Landlock and a system call filter",
    "B": "Landlock and a system call filter, without namespaces",
    "C": "separate processes, resource limits and an unprivileged user only",
}
DEFAULT_TIERS = frozenset("AB")


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How a pool is set up.

    backend    auto, or the name of a backend
    accept     isolation tiers in which code may run
    workers    jobs at once; None means twice the number of processors, but at least four
    strongest  highest tier to use, for tests: the engine omits the features of stronger ones
    landlock_abi  highest Landlock version to use, for tests of older kernels; None for no limit
    packages   directories of packages that candidates may import besides the standard library
    required   packages that must be in the backend's own directory, by import name
    transport  options of the backend
    """

    backend: str = "auto"
    accept: frozenset[str] = DEFAULT_TIERS
    workers: int | None = None
    strongest: str = "A"
    landlock_abi: int | None = None
    packages: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    transport: TransportOptions = field(default_factory=TransportOptions)

    def __post_init__(self) -> None:
        if self.backend not in BACKEND_CHOICES:
            raise ValueError(f"backend must be one of {', '.join(BACKEND_CHOICES)}, not {self.backend!r}.")
        if not self.accept or not self.accept <= TIERS.keys():
            raise ValueError(f"accept must contain isolation tiers (A, B, C), not {sorted(self.accept)}.")
        if self.workers is not None and self.workers < 1:
            raise ValueError("workers must be at least 1.")

    @property
    def size(self) -> int:
        """Number of jobs that may run at once."""
        return self.workers or max(4, 2 * (os.cpu_count() or 1))

    @property
    def offers_packages(self) -> bool:
        """Whether code may import packages."""
        return bool(self.packages or self.required)
