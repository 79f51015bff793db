"""The keeper of a box: starts it, ends it when it expires, and removes what it leaves. A fork of the zygote."""

import json
import os
import select
import shutil
import signal
import socket
import time
from collections.abc import Callable

from ..isolation import cgroups, syscalls
from . import setup
from .setup import FAULT_FD, GO_FD, LISTEN_FD, BoxPlan

_FAULT_BYTES = 1000
_REMOVE_S = 10.0


def keep(listener: int, plan_socket: int, run_driver: Callable[[str], None], box_filter: bytes) -> None:
    """Start a box and keep it until it ends. Never returns.

    listener     socket that the driver accepts connections from
    plan_socket  socket with the plan as JSON. The reason is written to it if the box cannot be started; it is closed
                 when the driver runs
    """
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        with socket.socket(fileno=plan_socket) as plans:
            plan: BoxPlan = json.loads(_read_all(plans.fileno()))
            pid, fault = _try_start(plan, listener, run_driver, box_filter)
            if fault:
                plans.sendall(fault)
        try:
            if not fault:
                _wait(pid, time.monotonic() + plan["expires_s"])
        finally:
            remove(plan["state"], plan["name"], plan["groups"])
    finally:
        os._exit(0)


def _try_start(plan: BoxPlan, listener: int, run_driver: Callable[[str], None], box_filter: bytes) -> tuple[int, bytes]:
    try:
        return _start(plan, listener, run_driver, box_filter)
    except BaseException as error:
        return 0, f"{type(error).__name__}: {error}"[:_FAULT_BYTES].encode()


def _start(plan: BoxPlan, listener: int, run_driver: Callable[[str], None], box_filter: bytes) -> tuple[int, bytes]:
    """Start the first process of the box. Return its id, and why it failed."""
    join = cgroups.make_box_group(plan["name"], plan["groups"], plan["memory"], plan["processes"], plan["cpus"])
    faults, fault = os.pipe()
    go, start = os.pipe()
    syscalls.call("unshare", syscalls.CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        _become_first(plan, [*join, listener, fault, go], run_driver, box_filter)
    for fd in (*join, listener, fault, go):
        os.close(fd)
    first = os.read(faults, 1)
    if first == setup.WANTS_IDS:
        uid, user = plan["uid"], plan["user"]
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{pid}/{name}", "w") as file:
                file.write(f"0 {uid} 1\n{user} {uid + 1} 1\n")
        os.write(start, b"1")
    found = _read_all(faults)
    os.close(faults)
    os.close(start)
    if not first:
        found += b"its first process was killed"
    return pid, found[:_FAULT_BYTES]


def _become_first(plan: BoxPlan, descriptors: list[int], run_driver: Callable[[str], None], box_filter: bytes) -> None:
    try:
        *join, listener, fault, go = [_above(fd) for fd in descriptors]
        for fd, low in ((listener, LISTEN_FD), (fault, FAULT_FD), (go, GO_FD)):
            os.dup2(fd, low, inheritable=False)
        setup.become_first_process(plan, join, box_filter)
        os.close(FAULT_FD)
    except BaseException as error:
        os.write(FAULT_FD, b"-" + f"{type(error).__name__}: {error}"[:_FAULT_BYTES].encode())
        os._exit(1)
    try:
        run_driver(plan["driver"])
    finally:
        os._exit(1)


def _above(fd: int) -> int:
    """Return a copy of a descriptor above those of the box."""
    copy = os.dup(fd)
    while copy <= GO_FD:
        copy = os.dup(copy)
    return copy


def _read_all(fd: int) -> bytes:
    found = bytearray()
    while data := os.read(fd, 65536):
        found += data
    return bytes(found)


def _wait(pid: int, expires: float) -> None:
    process = os.pidfd_open(pid)
    while (left := expires - time.monotonic()) > 0:
        if select.select([process], [], [], left)[0]:
            break
    signal.pidfd_send_signal(process, signal.SIGKILL)
    os.waitpid(pid, 0)


def remove(state: str, name: str, groups: dict[str, str]) -> bool:
    """Kill the processes of a box, then remove its control group and its folder. Return whether nothing is left."""
    until = time.monotonic() + _REMOVE_S
    while not cgroups.end_box_group(name, groups):
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    shutil.rmtree(state, ignore_errors=True)
    return True
