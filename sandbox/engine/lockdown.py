"""What holds a run: found out once per engine, applied in every fork.

Tier A: namespaces, Landlock and the system call filter. Tier B: no namespaces. Tier C: without Landlock or the filter
too, so only a separate process, resource limits and an unprivileged user remain.
"""

import ctypes
import glob
import os
import resource
import shutil
import struct
import tempfile
from dataclasses import dataclass, field
from typing import Any

from . import landlock, namespaces, seccomp, syscalls

_PLACEHOLDER = 0x7F31A5C9  # stands for the run's own pid in a prepared filter
_RULESET_FD = 220  # where the base keeps its ruleset, out of the way of a run's descriptors
_HIGHEST_FD = 256
INODES = 4096
_THREADS = 64
_SCRATCH = "llmeval-engine-"
_RESERVED = 2 << 30  # address space allowed beyond the data segment where packages are offered
_UNSHARED_FILES = 16  # everything written to disk, in units of the largest single file


@dataclass(frozen=True)
class Request:
    """One run as the zygote is asked for it: its session, its limits and, without namespaces, its directory."""

    session: int
    limits: dict[str, Any]
    work: str

    @property
    def disk_mb(self) -> int:
        return int(self.limits["file_mb"]) * _UNSHARED_FILES + int(self.limits.get("input_mb", 0))


@dataclass
class Base:
    """The means of isolation that this machine gives, and why it does not give the others."""

    namespaces: bool = False
    landlock: int = 0
    seccomp: bool = False
    missing: dict[str, str] = field(default_factory=dict)
    trees: list[str] = field(default_factory=list)
    packages: bool = False  # numpy and its like reserve far more address space than they use
    private_user: bool = False  # no process but this engine's runs as its user
    scratch: str = ""  # without namespaces: the directory that holds the runs' own
    _filters: dict[bool, bytes] = field(default_factory=dict)
    _own_pidfd: int = -1

    @property
    def tier(self) -> str:
        if not (self.landlock and self.seccomp):
            return "C"
        return "A" if self.namespaces else "B"

    # ---- once per engine --------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Move this process into the base, and prepare what the runs share. Raises OSError."""
        was_root = os.geteuid() == 0
        _sweep_scratch()
        if self.namespaces:
            namespaces.enter(self.trees)
            self.private_user = True  # the namespace counts its own processes
        else:
            if was_root and syscalls.LINUX:
                namespaces.open_up(self.trees)
            namespaces.leave_root()
            self.private_user = was_root and os.geteuid() != 65534
            self.scratch = tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-")
        if syscalls.LINUX:
            for signals in (False, True):
                self._filters[signals] = self._filter(processes=signals) if self.seccomp else b""

    def _filter(self, processes: bool) -> bytes:
        contained = self.namespaces or self.landlock >= 6
        return seccomp.build(
            own_pid=_PLACEHOLDER, processes=processes, metadata=self.namespaces, signals=processes and contained
        )

    def prepare_zygote(self) -> None:
        """What the zygote needs besides: a handle of its own pid namespace, and the ruleset of the read-only root."""
        if self.namespaces:
            self._own_pidfd = namespaces.pidfd_of_self()
            if self.landlock:
                ruleset = landlock.ruleset(self.landlock, ["/"], [namespaces.BOX], _DEVICES)
                os.dup2(ruleset, _RULESET_FD, inheritable=False)
                os.close(ruleset)

    def leave(self) -> None:
        """Remove what the engine kept on disk."""
        if self.scratch:
            remove_tree(self.scratch)

    def work_directory(self, session: int) -> str:
        """Where a run's files lie, as the run sees it."""
        return namespaces.WORK if self.namespaces else f"{self.scratch}/{session}"

    # ---- once per run -----------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """In the zygote: the next fork starts a pid namespace of its own."""
        if self.namespaces:
            namespaces.fresh_pid_namespace(self._own_pidfd)

    def close_descriptors(self) -> None:
        """In the fork: close everything above the pipe but the ruleset."""
        for first, last in ((4, _RULESET_FD - 1), (_RULESET_FD + 1, 2**31 - 1)):
            try:
                syscalls.call("close_range", first, last, 0)
            except OSError:
                os.closerange(first, min(last, _HIGHEST_FD) + 1)

    def lock_down(self, request: Request) -> None:
        """In the fork: everything but the resource limits. Raises OSError; nothing may run then."""
        os.setsid()
        if syscalls.LINUX and not self.namespaces:
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, 9)
        if self.namespaces:
            namespaces.mount_work(request.disk_mb, INODES)
        else:
            os.mkdir(request.work, 0o700)
        os.chdir(request.work)
        os.environ.update(HOME=request.work, TMPDIR=request.work)
        if not syscalls.LINUX:
            return
        if self.namespaces:
            syscalls.drop_capabilities()
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        if self.landlock:
            self._restrict_files(request)
        if self.seccomp:
            pid = struct.pack("=I", os.getpid())
            prepared = self._filters[request.limits["processes"] > 0]
            seccomp.install(prepared.replace(struct.pack("=I", _PLACEHOLDER), pid))

    def _restrict_files(self, request: Request) -> None:
        if self.namespaces:
            ruleset = _RULESET_FD
        else:
            ruleset = landlock.ruleset(self.landlock, self.trees, [request.work], _DEVICES)
        landlock.restrict(ruleset)
        os.close(ruleset)

    def limit(self, request: Request) -> None:
        """In the fork, after its files are written: the resource limits, which nothing can raise again."""
        limits = request.limits
        cpu = -int(-limits["cpu_s"] // 1)
        memory = int(limits["memory_mb"]) << 20
        # Process 1 of a pid namespace ignores SIGXCPU; the hard limit's SIGKILL comes either way.
        wanted = {"CPU": cpu, "FSIZE": int(limits["file_mb"]) << 20, "NOFILE": int(limits["descriptors"]), "CORE": 0}
        wanted |= {"DATA": memory, "AS": memory + _RESERVED} if self.packages else {"AS": memory}
        wanted |= {"MEMLOCK": 0, "MSGQUEUE": 0}
        if self.private_user:
            wanted["NPROC"] = _THREADS + int(limits["processes"])
        for name, value in wanted.items():
            number = getattr(resource, f"RLIMIT_{name}", None)
            if number is not None:
                _lower(number, value)


_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


def _lower(number: int, value: int) -> None:
    _, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    try:
        resource.setrlimit(number, (value, value))
    except (OSError, ValueError):
        if syscalls.LINUX:
            raise
        # macOS refuses some limits, among them the address space; tier C says so


def _sweep_scratch() -> None:
    """Remove what engines that were killed left on disk.

    Only directories of this user, or for root of a private one: what another living user owns could change under root's
    hands into a link to something else.
    """
    own = os.geteuid()
    for path in glob.glob(f"{tempfile.gettempdir()}/{_SCRATCH}*"):
        try:
            owner = os.lstat(path).st_uid
            pid = int(os.path.basename(path)[len(_SCRATCH) :].split("-")[0])
        except (OSError, ValueError):
            continue
        if (owner == own or (own == 0 and owner >= namespaces.UID_BASE)) and not _alive(pid):
            remove_tree(path)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def survey(packages: tuple[str, ...], strongest: str) -> Base:
    """What this machine gives, by trying each means in a process of its own.

    strongest  "A", "B" or "C": leave out what makes a stronger tier, for tests and for refusing to rely on it
    """
    base = Base(trees=namespaces.python_trees(packages), packages=bool(packages))
    if not syscalls.LINUX:
        base.missing = dict.fromkeys(("namespaces", "landlock", "seccomp"), "only Linux has it")
        return base
    if strongest in "AB":
        base.landlock = landlock.abi()
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
    seccomp.install(seccomp.build(own_pid=os.getpid(), processes=False, metadata=False, signals=False))


def _nest(base: Base) -> None:
    """Enter the base and start one empty run in it, as the engine would. Raises OSError."""
    trial = Base(namespaces=True, trees=base.trees)
    trial.enter()
    problem = _try(_nested_run, trial)
    if problem:
        raise OSError(problem)


def _nested_run(base: Base) -> None:
    base.prepare_zygote()
    base.before_fork()
    problem = _try(namespaces.mount_work, 1, 16)
    if problem:
        raise OSError(problem)


def _try(attempt: Any, *arguments: Any) -> str:
    """Make the attempt in a fork; "" where it succeeded, else why not."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            attempt(*arguments)
            os._exit(0)
        except BaseException as error:
            os.write(write, str(error).encode()[:500])
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        problem = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
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
            shutil.rmtree(folder, ignore_errors=True)


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends. Linux only, else nothing."""
    if syscalls.LINUX:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, 9)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ended. Linux only, else nothing."""
    if syscalls.LINUX:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)


def trim_heap() -> None:
    """Give unused heap back before forking starts, so that forks share less of it."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        pass
