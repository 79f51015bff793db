"""The role that attacks its own lockdown, so that a tier is what was tried and not what was hoped for.

Every attack is harmless where it succeeds. One that returns has succeeded; one that raises has been denied.
"""

import ctypes
import os
import socket
from collections.abc import Callable
from typing import Any

from . import codec, frames, syscalls
from .channel import FD, Channel

_PARENT = os.getppid
_PTRACE_SEIZE = 0x4206  # does not stop the process, and ends with this one


def run(job: dict[str, Any], channel: Channel) -> None:
    """Try everything in turn. Reports {"attacks": [[name, denied, detail], ...]}."""
    results = []
    for name, attack in _attacks(job).items():
        try:
            attack()
            results.append([name, False, "succeeded"])
        except BaseException as error:
            results.append([name, True, f"{type(error).__name__}: {error}"[:200]])
    channel.send(frames.REPORT, codec.dumps({"attacks": results}))


def _attacks(job: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    limits = job["limits"]
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
        "open a TCP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close(),
        "open a UDP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "open a unix socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close(),
        "fork": _fork,
        "signal another process": lambda: os.kill(_PARENT() or 2, 0),
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
    import mmap  # here alone: every library that the zygote has loaded makes its forks slower

    mmap.mmap(-1, size_mb << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
