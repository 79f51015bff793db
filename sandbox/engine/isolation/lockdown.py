"""Isolation of runs: prepared once per engine, applied in every fork.

Tier A: namespaces, Landlock and the system call filter. Tier B: no namespaces. Tier C: Landlock or the filter is
missing too, so only a separate process, resource limits and an unprivileged user remain.
"""

import os
import struct
from typing import NamedTuple

from ..protocol import channel
from . import landlock, limits, namespaces, scratch, seccomp, syscalls
from .cgroups import Groups
from .limits import RunLimits
from .syscalls import Prepared

_PLACEHOLDER = 0x7F31A5C9  # replaced by the run's own pid in a prepared filter
_RULESET_FD = 220  # descriptor of the ruleset, above those of a run
_HIGHEST_FD = 256


class RunOptions(NamedTuple):
    """A run as the zygote starts it, before its job and its other limits are known.

    run_id     number of its process
    disk_mb    MiB that it may write to disk
    processes  number of child processes that it may have
    groups     number of control groups that it has to join
    """

    run_id: int
    disk_mb: int
    processes: int
    groups: int = 0


class Isolation:
    """The mechanisms of isolation in use, and the reasons why others are missing."""

    def __init__(
        self,
        trees: list[str],
        *,
        namespaces: bool = False,
        landlock: int = 0,
        seccomp: bool = False,
        packages: bool = False,
    ) -> None:
        """
        trees     directories that runs may read
        landlock  version of Landlock in use, 0 for none
        packages  packages are offered, which reserve far more address space than they use
        """
        self.trees, self.packages = trees, packages
        self.namespaces, self.landlock, self.seccomp = namespaces, landlock, seccomp
        self.missing: dict[str, str] = {}
        self.cgroups = False  # whether to use control groups if they are available
        self.groups = Groups()
        self.private_user = False  # whether only processes of this engine run as its user
        self.scratch = ""  # without namespaces: the directory of the runs' working directories
        self._filters: dict[bool, bytes] = {}
        self._close: dict[bool, list[Prepared]] = {}  # by whether the run has a link
        self._before_fork: list[Prepared] = []
        self._steps: dict[tuple[int, bool], list[Prepared]] = {}

    @property
    def tier(self) -> str:
        if not (self.landlock and self.seccomp):
            return "C"
        return "A" if self.namespaces else "B"

    # ---- once per engine --------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Leave root, enter the namespaces, and prepare what all runs share. Raises OSError."""
        was_root = os.geteuid() == 0
        if self.cgroups and syscalls.LINUX:
            self.groups.acquire(namespaces.future_user())
        scratch.sweep()
        if self.namespaces:
            namespaces.enter(self.trees)
            self.private_user = True  # the namespace counts its own processes
        else:
            if was_root and syscalls.LINUX:
                namespaces.make_reachable(self.trees)
            namespaces.leave_root()
            if syscalls.LINUX:  # at tier C nothing else prevents a run from tracing the engine or a judge
                syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
            self.private_user = was_root and os.geteuid() != 65534
            self.scratch = scratch.create()
        if syscalls.LINUX:
            for signals in (False, True):
                self._filters[signals] = self._filter(processes=signals) if self.seccomp else b""

    def _filter(self, processes: bool) -> bytes:
        contained = self.namespaces or self.landlock >= 6
        return seccomp.build(
            own_pid=_PLACEHOLDER,
            processes=processes,
            metadata=self.namespaces,
            signals=processes and contained,
            truncation=self.namespaces or self.landlock >= 3,
            shared=not self.packages,
        )

    def prepare_zygote(self) -> None:
        """Prepare the zygote: new pid namespaces for its children, and the ruleset of the read-only root."""
        if syscalls.LINUX:
            above = Prepared("close_range", _RULESET_FD + 1, 2**31 - 1, 0)
            for linked in (False, True):
                first = (channel.LINK if linked else channel.FD) + 1
                self._close[linked] = [Prepared("close_range", first, _RULESET_FD - 1, 0), above]
        if self.namespaces:
            self._before_fork = namespaces.fresh_pid_namespace(namespaces.pidfd_of_self())
            os.environ.update(HOME=namespaces.WORK, TMPDIR=namespaces.WORK)
        if self.namespaces and self.landlock:
            ruleset = landlock.ruleset(self.landlock, ["/"], [namespaces.BOX], _DEVICES)
            os.dup2(ruleset, _RULESET_FD, inheritable=False)
            os.close(ruleset)

    def leave(self) -> None:
        """Remove the control groups and the directory of the engine."""
        self.groups.release()
        if self.scratch:
            scratch.remove_tree(self.scratch)

    def work_directory(self, run_id: int) -> str:
        """Return the working directory of a run, as the run sees it."""
        return namespaces.WORK if self.namespaces else f"{self.scratch}/{run_id}"

    @property
    def stdin_path(self) -> str | None:
        """The file that /dev/stdin leads to in a run; None if it leads to descriptor 0, which takes /proc."""
        return namespaces.STDIN if self.namespaces else None

    # ---- once per run -----------------------------------------------------------------------------------------------

    def before_fork(self, request: RunOptions) -> None:
        """In the zygote: give the next fork a pid namespace of its own, and prepare its system calls."""
        if self.namespaces:
            for step in self._before_fork:
                step()
            self._namespaced_steps(request)

    def _namespaced_steps(self, request: RunOptions) -> list[Prepared]:
        """Return the calls that lock down a run of tier A; prepared once, since they are the same for most runs."""
        key = request.disk_mb, request.processes > 0
        steps = self._steps.get(key)
        if steps is None:
            steps = namespaces.private_work(request.disk_mb, limits.INODES)
            steps += [Prepared("chdir", namespaces.WORK.encode()), syscalls.dropped_capabilities()]
            steps += [Prepared("prctl", syscalls.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)]
            if self.landlock:
                steps += [landlock.restricting(_RULESET_FD), Prepared("close", _RULESET_FD)]
            if self.seccomp:
                steps += [seccomp.installing(self._filter_for(key[1], pid=1))]
            self._steps = {key: steps}
        return steps

    def _filter_for(self, processes: bool, pid: int) -> bytes:
        return self._filters[processes].replace(struct.pack("=I", _PLACEHOLDER), struct.pack("=I", pid))

    def close_descriptors(self, linked: bool) -> None:
        """In the fork: close all descriptors above the run's pipes, except the ruleset."""
        try:
            for close in self._close[linked]:
                close()
        except (OSError, KeyError):  # a kernel before 5.9, or not Linux
            os.closerange((channel.LINK if linked else channel.FD) + 1, _HIGHEST_FD)

    def lock_down(self, request: RunOptions) -> None:
        """In the fork: apply everything except the resource limits. Raises OSError; the run must not continue then."""
        if self.namespaces:
            for step in self._namespaced_steps(request):
                step()
            return
        work = self.work_directory(request.run_id)
        os.mkdir(work, 0o700)
        os.chdir(work)
        os.environ.update(HOME=work, TMPDIR=work)
        if syscalls.LINUX:
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, 9)
            syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        if self.landlock:
            ruleset = landlock.ruleset(self.landlock, self.trees, [work], _DEVICES)
            landlock.restricting(ruleset)()
            os.close(ruleset)
        if self.seccomp:
            seccomp.installing(self._filter_for(request.processes > 0, pid=os.getpid()))()

    def limit(self, run_limits: RunLimits) -> None:
        """In the fork, after its files are written: set the resource limits, which nothing can raise again."""
        for number, soft, hard in self._resource_limits(run_limits):
            limits.lower(number, soft, hard)

    def _resource_limits(self, run_limits: RunLimits) -> list[tuple[int, int, int]]:
        return limits.resource_limits(run_limits, packages=self.packages, private_user=self.private_user)


_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends. Does nothing on other systems than Linux."""
    if syscalls.LINUX:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, 9)


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ended. Does nothing on other systems than Linux."""
    if syscalls.LINUX:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
