"""Resource limits of a run."""

import resource
from typing import NotRequired, TypedDict, cast

from . import syscalls

INODES = 4096
THREADS = 64
_REPORTING_RESERVE = 16 << 20  # address space beyond the limit, for reporting that it was reached
# Address space allowed beyond the data segment if packages are offered. Memory made read-only after it was filled does
# not count as data, so without a control group this much can be taken beyond the limit. numpy and pandas, with one
# thread each, reserve 220 MiB.
_PACKAGES_RESERVE = 512 << 20
_PENDING_SIGNALS = 256  # queued signals and POSIX timers, each of which takes memory of the kernel
_DISK_FILES = 16  # everything written to disk, in units of the largest single file


class RunLimits(TypedDict):
    """The limits of a run, as the pool sends them; `input_mb`: size of the files that the job brings."""

    cpu_s: float
    wall_s: float
    memory_mb: int
    file_mb: int
    output_kb: int
    descriptors: int
    processes: int
    input_mb: NotRequired[int]


def limits_of(head: dict[str, object]) -> RunLimits:
    """Return the limits in the head of a message of the pool."""
    return cast(RunLimits, head["limits"])


def disk_mb(limits: RunLimits) -> int:
    """Return the MiB that a run may write to disk."""
    return int(limits["file_mb"]) * _DISK_FILES + int(limits.get("input_mb", 0))


def resource_limits(limits: RunLimits, *, packages: bool, private_user: bool) -> list[tuple[int, int, int]]:
    """Return (resource, soft limit, hard limit) for each resource.

    packages      packages are offered, which reserve far more address space than they use
    private_user  no other process runs as the user of the run, so its processes can be counted
    """
    cpu = -int(-limits["cpu_s"] // 1)
    memory = int(limits["memory_mb"]) << 20
    # Process 1 of a pid namespace ignores SIGXCPU; the hard limit's SIGKILL ends it.
    wanted = [(resource.RLIMIT_CPU, cpu), (resource.RLIMIT_FSIZE, int(limits["file_mb"]) << 20)]
    wanted += [(resource.RLIMIT_NOFILE, int(limits["descriptors"])), (resource.RLIMIT_CORE, 0)]
    wanted += [(resource.RLIMIT_MEMLOCK, 0)]
    if syscalls.LINUX:
        wanted += [(resource.RLIMIT_SIGPENDING, _PENDING_SIGNALS)]
    if packages:
        wanted += [(resource.RLIMIT_DATA, memory)]
        memory += _PACKAGES_RESERVE
    if private_user:
        wanted += [(resource.RLIMIT_NPROC, THREADS + int(limits["processes"]))]
    found = [(number, value, value) for number, value in wanted]
    return [*found, (resource.RLIMIT_AS, memory, memory + _REPORTING_RESERVE)]


def lower(number: int, soft: int, hard: int) -> None:
    """Set a resource limit. Raises OSError or ValueError if it stays higher."""
    try:
        resource.setrlimit(number, (soft, hard))
    except (OSError, ValueError):
        # Lower already, as inside a container; or macOS, which refuses some limits and reaches only tier C.
        present = resource.getrlimit(number)[1]
        if syscalls.LINUX and not 0 <= present <= hard:
            raise
