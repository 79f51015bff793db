"""The role that attacks its own isolation, so that a tier is granted only if the attacks on it fail.

Every attack is harmless if it succeeds. An attack that returns has succeeded; one that raises was denied.
"""

import ctypes
import os
import socket
import struct
from collections.abc import Callable
from typing import TypedDict

from ..protocol import codec, frames
from ..protocol.channel import FD, Channel
from . import scratch, syscalls
from .limits import RunLimits

_PARENT = os.getppid
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_SETLEASE, _F_NOTIFY = 8, 10, 15, 1024, 1026
_PTRACE_SEIZE = 0x4206  # does not stop the process, and ends with this one


class AttackInput(TypedDict):
    """The job of the self-test."""

    limits: RunLimits


def run(job: AttackInput, channel: Channel) -> None:
    """Try each attack in turn. Reports {"attacks": [[name, denied, detail], ...]}."""
    results: list[tuple[str, bool, str]] = []
    for name, attack in _attacks(job["limits"]).items():
        try:
            attack()
            results.append((name, False, "succeeded"))
        except BaseException as error:
            results.append((name, True, f"{type(error).__name__}: {error}"[:200]))
    channel.send(frames.REPORT, codec.dumps({"attacks": [list(result) for result in results]}))


def _attacks(limits: RunLimits) -> dict[str, Callable[[], object]]:
    return {
        "read a host file": lambda: _read("/etc/passwd"),
        "list the host's settings": lambda: os.listdir("/etc"),
        "see that a host file exists": lambda: os.stat("/etc/passwd"),
        "read the environment of process 1": lambda: _read("/proc/1/environ"),
        "read its own process directory": lambda: os.listdir("/proc/self/fd"),
        "write beside the system libraries": lambda: _create("/usr/.llmeval-attack"),
        "write to the host's temporary directory": lambda: _create("/tmp/.llmeval-attack"),
        "write to shared memory": lambda: _create("/dev/shm/.llmeval-attack"),
        "change the mode of a host file": lambda: os.chmod("/usr", 0o755),
        "change the time of a host file": lambda: os.utime("/tmp"),
        "truncate a host file": lambda: os.truncate(_target_file(), 0),
        "truncate a host file by opening it": _truncate_by_opening,
        "open a TCP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close(),
        "open a UDP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "open a unix socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close(),
        "fork": _fork,
        "signal another process": lambda: os.kill(_PARENT() or 2, 0),
        "have another process signalled": _own_by_another,
        "choose the signal of a descriptor": lambda: _fcntl(FD, _F_SETSIG, 0),
        "lock a shared file": _lock,
        "hold up the writers of a file": lambda: _command("leased", _F_SETLEASE),
        "watch a shared directory": lambda: _command("/usr", _F_NOTIFY),
        "make a POSIX timer": lambda: syscalls.call("timer_create", 1, None, ctypes.byref(ctypes.c_int())),
        "trace": lambda: syscalls.call("ptrace", _PTRACE_SEIZE, _PARENT() or 2, 0, 0),
        "read another process's memory": _read_memory,
        "take another process's descriptor": lambda: syscalls.call("pidfd_getfd", FD, 0, 0),
        "limit another process": lambda: syscalls.call("prlimit64", _PARENT() or 2, 7, None, None),
        "pin another process": lambda: syscalls.call("sched_setaffinity", _PARENT() or 2, 8, b"\x01" + bytes(7)),
        "make a user namespace": lambda: syscalls.call("unshare", syscalls.CLONE_NEWUSER),
        "mount": lambda: syscalls.mount("none", ".", "tmpfs"),
        "become root": lambda: os.setuid(0),
        "use io_uring": lambda: syscalls.call("io_uring_setup", 1, bytes(120)),
        "use bpf": lambda: syscalls.call("bpf", 0, bytes(64), 64),
        "use userfaultfd": lambda: syscalls.call("userfaultfd", 1),
        "use the keyring": lambda: syscalls.call("keyctl", 0, -3, 0),
        "watch performance counters": lambda: syscalls.call("perf_event_open", bytes(128), 0, -1, -1, 0),
        "share System V memory": lambda: syscalls.call("shmget", 0, 4096, 0o600),
        "use a descriptor that is not its own": _foreign_descriptor,
        "write a file larger than allowed": lambda: _grow(int(limits["file_mb"]) + 1),
        "reserve more memory than allowed": lambda: _reserve(int(limits["memory_mb"])),
    }


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(1)


def _create(path: str) -> None:
    with open(path, "xb"):
        pass
    os.unlink(path)


def _fcntl(fd: int, command: int, argument: int | bytes) -> None:
    import fcntl  # not at module level: every library in the zygote makes its forks slower

    fcntl.fcntl(fd, command, argument)


def _command(path: str, command: int) -> None:
    """Apply an fcntl command to a file or a directory; create a missing file."""
    fd = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDONLY | os.O_CREAT)
    try:
        _fcntl(fd, command, 0)
    finally:
        os.close(fd)


def _target_file() -> str:
    """Return a file of the engine's user outside of the run's directory; it does not exist if the host's are hidden."""
    return f"{os.path.dirname(os.getcwd())}/{scratch.TARGET}"


def _truncate_by_opening() -> None:
    """Try every access mode; mode 3 gives no access but needs both permissions."""
    refused = OSError()
    for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, 3):
        try:
            os.close(os.open(_target_file(), mode | os.O_TRUNC))
        except OSError as error:
            refused = error
        else:
            return
    raise refused


def _own_by_another() -> None:
    """Make another process the owner of a descriptor, so that it gets a signal whenever data arrives."""
    reader, writer = os.pipe()
    try:
        _fcntl(reader, _F_SETOWN, _PARENT() or 2)
    except OSError:
        _fcntl(reader, _F_SETOWN_EX, struct.pack("ii", 1, _PARENT() or 2))
    finally:
        os.close(reader)
        os.close(writer)


def _lock() -> None:
    """Lock a file that every run reads.

    If a second descriptor gets the same lock, the lock has no effect, so it is denied.
    """
    import fcntl

    with open(os.__file__, "rb") as first, open(os.__file__, "rb") as second:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
    raise OSError("granted without effect")


def _fork() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _read_memory() -> None:
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    syscalls.call("process_vm_readv", _PARENT() or 2, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0)


def _foreign_descriptor() -> None:
    for fd in range(FD + 1, 256):
        try:
            os.fstat(fd)
        except OSError:
            continue
        return
    raise OSError("none is open")


def _grow(size_mb: int) -> None:
    with open("grown", "wb") as file:
        file.truncate(size_mb << 20)


def _reserve(size_mb: int) -> None:
    import mmap  # see `_fcntl`

    mmap.mmap(-1, size_mb << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
