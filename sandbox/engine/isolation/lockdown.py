"""What holds a run: found out once per engine, applied in every fork.

Tier A: namespaces, Landlock and the system call filter. Tier B: no namespaces. Tier C: without Landlock or the filter
too, so only a separate process, resource limits and an unprivileged user remain.
"""

import os
import resource
import struct
from typing import Any, NamedTuple

from ..protocol import channel
from . import landlock, namespaces, seccomp, syscalls
from .cgroups import Groups
from .syscalls import Prepared

_PLACEHOLDER = 0x7F31A5C9  # stands for the run's own pid in a prepared filter
_RULESET_FD = 220  # where the base keeps its ruleset, out of the way of a run's descriptors
_HIGHEST_FD = 256
INODES = 4096
THREADS = 64
_SCRATCH = "llmeval-engine-"
PLANTED = "planted"  # a file beside the runs' directories, for the start-up attacks to aim at
_LAST_WORDS = 16 << 20  # address space beyond the limit, for reporting that it was reached
# Address space allowed beyond the data segment where packages are offered. Memory made read-only after it was filled
# does not count as data, so where there is no control group this much can be taken beyond the limit. numpy and pandas,
# with one thread each, reserve 220 MiB.
_RESERVED = 512 << 20
_PENDING = 256  # queued signals and POSIX timers, each of which takes memory of the kernel
_UNSHARED_FILES = 16  # everything written to disk, in units of the largest single file


class Request(NamedTuple):
    """One run as the zygote is asked for it, before its job and its other limits are known.

    seat       the engine's name for its process
    disk_mb    everything that it may write to disk
    processes  child processes that it may have
    groups     how many control groups it has to join
    """

    seat: int
    disk_mb: int
    processes: int
    groups: int = 0


def disk_mb(limits: dict[str, Any]) -> int:
    """MiB that a run with these limits may write to disk."""
    return int(limits["file_mb"]) * _UNSHARED_FILES + int(limits.get("input_mb", 0))


class Base:
    """The means of isolation that this machine gives, and why it does not give the others."""

    def __init__(
        self,
        trees: list[str],
        *,
        namespaces: bool = False,
        landlock: int = 0,
        seccomp: bool = False,
        packages: bool = False,
    ) -> None:
        """`packages`: numpy and its like are offered, which reserve far more address space than they use."""
        self.trees, self.packages = trees, packages
        self.namespaces, self.landlock, self.seccomp = namespaces, landlock, seccomp
        self.missing: dict[str, str] = {}
        self.cgroups = False  # whether to have them if they can be had
        self.groups = Groups()
        self.private_user = False  # no process but this engine's runs as its user
        self.scratch = ""  # without namespaces: the directory that holds the runs' own
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
        """Move this process into the base, and prepare what the runs share. Raises OSError."""
        was_root = os.geteuid() == 0
        if self.cgroups and syscalls.LINUX:
            self.groups.acquire(namespaces.future_user())
        _sweep_scratch()
        if self.namespaces:
            namespaces.enter(self.trees)
            self.private_user = True  # the namespace counts its own processes
        else:
            if was_root and syscalls.LINUX:
                namespaces.open_up(self.trees)
            namespaces.leave_root()
            if syscalls.LINUX:  # at tier C nothing else keeps a run from tracing the engine or a judge
                syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
            self.private_user = was_root and os.geteuid() != 65534
            self.scratch = f"{_temporary()}/{_SCRATCH}{os.getpid()}-{os.urandom(6).hex()}"
            os.mkdir(self.scratch, 0o700)
            _plant(f"{self.scratch}/{PLANTED}")
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
        """What the zygote needs besides: a way into new pid namespaces, and the ruleset of the read-only root."""
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

    def rehearse(self, limits: dict[str, Any]) -> None:
        """In the zygote: walk through what a fork does with its base, by calls that change nothing."""
        for number, _, _ in self._resources(limits):
            _lower(number, *resource.getrlimit(number))
        if self.namespaces:
            harmless = Prepared("getppid")
            trial = Base(self.trees, namespaces=True)
            trial._close = {False: [harmless] * 2}
            trial._steps = {(0, False): [harmless] * 9}
            trial.close_descriptors(linked=False)
            trial.lock_down(Request(seat=0, disk_mb=0, processes=0))

    def leave(self) -> None:
        """Remove what the engine made outside of itself."""
        self.groups.release()
        if self.scratch:
            remove_tree(self.scratch)

    def work_directory(self, seat: int) -> str:
        """Where a run's files lie, as the run sees it."""
        return namespaces.WORK if self.namespaces else f"{self.scratch}/{seat}"

    # ---- once per run -----------------------------------------------------------------------------------------------

    def before_fork(self, request: Request) -> None:
        """In the zygote: the next fork starts a pid namespace of its own, and finds everything worked out."""
        if self.namespaces:
            for step in self._before_fork:
                step()
            self._namespaced_steps(request)

    def _namespaced_steps(self, request: Request) -> list[Prepared]:
        """The calls that lock down a run of tier A; the same for most runs, so made once."""
        key = request.disk_mb, request.processes > 0
        steps = self._steps.get(key)
        if steps is None:
            steps = namespaces.private_work(request.disk_mb, INODES)
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
        """In the fork: close everything above the run's pipes but the ruleset."""
        try:
            for close in self._close[linked]:
                close()
        except (OSError, KeyError):  # a kernel before 5.9, or none of Linux
            os.closerange((channel.LINK if linked else channel.FD) + 1, _HIGHEST_FD)

    def lock_down(self, request: Request) -> None:
        """In the fork: everything but the resource limits. Raises OSError; nothing may run then."""
        if self.namespaces:
            for step in self._namespaced_steps(request):
                step()
            return
        work = self.work_directory(request.seat)
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

    def limit(self, limits: dict[str, Any]) -> None:
        """In the fork, after its files are written: the resource limits, which nothing can raise again."""
        for number, soft, hard in self._resources(limits):
            _lower(number, soft, hard)

    def _resources(self, limits: dict[str, Any]) -> list[tuple[int, int, int]]:
        """(limit, soft, hard) for each."""
        cpu = -int(-limits["cpu_s"] // 1)
        memory = int(limits["memory_mb"]) << 20
        # Process 1 of a pid namespace ignores SIGXCPU; the hard limit's SIGKILL comes either way.
        wanted = [(resource.RLIMIT_CPU, cpu), (resource.RLIMIT_FSIZE, int(limits["file_mb"]) << 20)]
        wanted += [(resource.RLIMIT_NOFILE, int(limits["descriptors"])), (resource.RLIMIT_CORE, 0)]
        wanted += [(resource.RLIMIT_MEMLOCK, 0)]
        if syscalls.LINUX:
            wanted += [(resource.RLIMIT_SIGPENDING, _PENDING)]
        if self.packages:
            wanted += [(resource.RLIMIT_DATA, memory)]
            memory += _RESERVED
        if self.private_user:
            wanted += [(resource.RLIMIT_NPROC, THREADS + int(limits["processes"]))]
        found = [(number, value, value) for number, value in wanted]
        return [*found, (resource.RLIMIT_AS, memory, memory + _LAST_WORDS)]


_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


def _lower(number: int, soft: int, hard: int) -> None:
    try:
        resource.setrlimit(number, (soft, hard))
    except (OSError, ValueError):
        # Already lower, as inside a container; or macOS, which refuses some limits, and tier C says so.
        present = resource.getrlimit(number)[1]
        if syscalls.LINUX and not 0 <= present <= hard:
            raise


def _plant(path: str) -> None:
    with open(path, "wb") as file:
        file.write(b"?")


def _sweep_scratch() -> None:
    """Remove what engines that were killed left on disk.

    Only directories of this user, or for root of a private one: what another living user owns could change under root's
    hands into a link to something else.
    """
    own = os.geteuid()
    folder = _temporary()
    for path in [f"{folder}/{name}" for name in os.listdir(folder) if name.startswith(_SCRATCH)]:
        try:
            owner = os.lstat(path).st_uid
            pid = int(os.path.basename(path)[len(_SCRATCH) :].split("-")[0])
        except (OSError, ValueError):
            continue
        if (owner == own or (own == 0 and owner >= namespaces.UID_BASE)) and not _alive(pid):
            remove_tree(path)


def _temporary() -> str:
    """A directory for scratch files; not `tempfile`'s, since every library that is loaded makes forks slower."""
    return next(path for path in ("/tmp", "/var/tmp", ".") if os.access(path, os.W_OK | os.X_OK))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def survey(packages: tuple[str, ...], strongest: str, landlock_abi: int | None = None) -> Base:
    """What this machine gives, by trying each means in a process of its own.

    strongest     "A", "B" or "C": leave out what makes a stronger tier, for tests and for refusing to rely on it
    landlock_abi  highest Landlock version to use, to test what holds on older kernels
    """
    base = Base(namespaces.python_trees(packages), packages=bool(packages))
    if not syscalls.LINUX:
        base.missing = dict.fromkeys(("namespaces", "landlock", "seccomp"), "only Linux has it")
        return base
    if strongest in "AB":
        base.landlock = landlock.abi()
        if landlock_abi is not None:
            base.landlock = min(base.landlock, landlock_abi)
        if not base.landlock:
            base.missing["landlock"] = "the kernel does not offer it (Linux 5.13 with landlock in its lsm= list does)"
        problem = _try(_install_filter) if seccomp.works() else f"no system call table for {syscalls.MACHINE}"
        base.seccomp = not problem
        if problem:
            base.missing["seccomp"] = problem
    if strongest == "A":
        problem = _try(_nest, base)
        base.namespaces = not problem
        if problem:
            base.missing["namespaces"] = problem
    return base


def _install_filter() -> None:
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    program = seccomp.build(own_pid=os.getpid(), processes=False, metadata=False, signals=False, truncation=False)
    seccomp.installing(program)()


def _nest(base: Base) -> None:
    """Enter the base and start one empty run in it, as the engine would. Raises OSError."""
    trial = Base(base.trees, namespaces=True, landlock=base.landlock, seccomp=base.seccomp)
    trial.enter()
    problem = _try(_nested_run, trial)
    if problem:
        raise OSError(problem)


def _nested_run(base: Base) -> None:
    base.prepare_zygote()
    request = Request(seat=0, disk_mb=1, processes=0)
    base.before_fork(request)
    problem = _try(base.lock_down, request)
    if problem:
        raise OSError(problem)


_MISTAKE = "mistake: "


def _try(attempt: Any, *arguments: Any) -> str:
    """Make the attempt in a fork; "" where it succeeded, else why the system did not let it.

    Raises RuntimeError for any other failure: a mistake made here must not pass for a machine that gives less.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            attempt(*arguments)
            os._exit(0)
        except OSError as error:
            os.write(write, str(error).encode()[:500] or b"OSError")
        except BaseException as error:
            os.write(write, f"{_MISTAKE}{type(error).__name__}: {error}".encode()[:500])
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        problem = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    if problem.startswith(_MISTAKE):
        raise RuntimeError(problem.removeprefix(_MISTAKE))
    return problem or ("" if status == 0 else f"the attempt died, wait status {status}")


def remove_tree(path: str) -> None:
    """Remove a directory whatever lies in it: folders nested too deeply for recursion, folders without permission."""
    folders = [path]
    for folder in folders:  # grows while it is walked; every folder found is moved up, so that no path gets long
        try:
            os.chmod(folder, 0o700)
            with os.scandir(folder) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            try:
                if entry.is_dir(follow_symlinks=False):
                    moved = f"{path}/.remove-{len(folders)}"
                    os.rename(entry.path, moved)
                    folders.append(moved)
                else:
                    os.unlink(entry.path)
            except OSError:
                continue
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            continue


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends. Linux only, else nothing."""
    if syscalls.LINUX:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, 9)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ended. Linux only, else nothing."""
    if syscalls.LINUX:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
