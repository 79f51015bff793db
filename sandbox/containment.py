"""Containment of a process that handles data of bundles: no root, files, network or other processes, limited memory.

It uses the sandbox engine's own means. Data comes and goes through descriptors that were opened before.
"""

import os
import resource
from collections.abc import Iterable
from pathlib import Path

from sandbox.engine.isolation import landlock, namespaces, seccomp, syscalls

ERROR_MEMORY = 64 << 20  # bytes of address space for reporting that the limit was reached


def contain(*, memory_mb: int, cpu_s: int, readable: Iterable[str] = ()) -> str:
    """Give up all access that this process does not need; return the isolation tier. Raises OSError.

    memory_mb: address space beyond what the process has. cpu_s: its processor time. readable: folders that it may read.
    Import modules before, because no file can be opened afterwards.
    """
    contained = False
    base = resource.getpagesize() * _pages()
    os.chdir("/")
    namespaces.leave_root()
    if syscalls.LINUX:
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        version = landlock.abi()
        if version and seccomp.works():
            ruleset = landlock.ruleset(version, readable, [], [])
            landlock.restricting(ruleset)()
            os.close(ruleset)
            program = seccomp.build(
                own_pid=os.getpid(), processes=False, metadata=False, signals=False, truncation=False, shared=False
            )
            seccomp.installing(program)()
            contained = True
    for number in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK):
        resource.setrlimit(number, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    memory = base + (memory_mb << 20)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory + ERROR_MEMORY))
    return "B" if contained else "C"


def _pages() -> int:
    """Return the number of pages of address space of this process; 0 outside of Linux."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
