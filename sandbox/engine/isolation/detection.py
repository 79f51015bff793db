"""Detection of the mechanisms of isolation that this machine offers."""

import os
from collections.abc import Callable

from . import landlock, namespaces, seccomp, syscalls
from .lockdown import Isolation, RunOptions


def detect(packages: tuple[str, ...], strongest: str, landlock_abi: int | None = None) -> Isolation:
    """Return the isolation that this machine offers, after trying each mechanism in a process of its own.

    strongest     "A", "B" or "C": do not use mechanisms of a stronger tier
    landlock_abi  highest Landlock version to use, to test older kernels
    """
    isolation = Isolation(namespaces.python_trees(packages), packages=bool(packages))
    if not syscalls.LINUX:
        isolation.missing = dict.fromkeys(("namespaces", "landlock", "seccomp"), "only Linux has it")
        return isolation
    if strongest in "AB":
        isolation.landlock = landlock.abi()
        if landlock_abi is not None:
            isolation.landlock = min(isolation.landlock, landlock_abi)
        if not isolation.landlock:
            isolation.missing["landlock"] = (
                "the kernel does not offer it (Linux 5.13 with landlock in its lsm= list does)"
            )
        problem = try_in_fork(_install_filter) if seccomp.works() else f"no system call table for {syscalls.MACHINE}"
        isolation.seccomp = not problem
        if problem:
            isolation.missing["seccomp"] = problem
    if strongest == "A":
        problem = try_in_fork(_enter, isolation)
        isolation.namespaces = not problem
        if problem:
            isolation.missing["namespaces"] = problem
    return isolation


def _install_filter() -> None:
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    program = seccomp.build(own_pid=os.getpid(), processes=False, metadata=False, signals=False, truncation=False)
    seccomp.installing(program)()


def _enter(isolation: Isolation) -> None:
    """Enter the namespaces and start one empty run, as the engine would. Raises OSError."""
    trial = Isolation(isolation.trees, namespaces=True, landlock=isolation.landlock, seccomp=isolation.seccomp)
    trial.enter()
    problem = try_in_fork(_start_empty_run, trial)
    if problem:
        raise OSError(problem)


def _start_empty_run(isolation: Isolation) -> None:
    isolation.prepare_zygote()
    request = RunOptions(run_id=0, disk_mb=1, processes=0)
    isolation.before_fork(request)
    problem = try_in_fork(isolation.lock_down, request)
    if problem:
        raise OSError(problem)


_MISTAKE = "mistake: "


def try_in_fork(attempt: Callable[..., None], *arguments: object) -> str:
    """Call a function in a fork. Return "" if it succeeded, else the reason why the system refused it.

    Raises RuntimeError for any other failure, so that a mistake in this program does not look like a weaker machine.
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
