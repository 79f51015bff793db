"""The keeper of a box: starts it, ends it when it expires, and removes what it leaves.

Reads the plan of the box as JSON from standard input. Writes the reason to standard output if the box cannot be
started. Standard output is closed when the driver runs; the keeper goes on in the background.
"""

import json
import os
import select
import shutil
import signal
import sys
import time

from ..isolation import cgroups, syscalls
from . import setup
from .setup import FAULT_FD, GO_FD, LISTEN_FD, BoxPlan

_FAULT_BYTES = 1000
_REMOVE_S = 10.0


def main() -> None:
    """Start a box and keep it. The process that was started ends when the box runs or has failed."""
    plan: BoxPlan = json.load(sys.stdin)
    if os.fork() != 0:
        os._exit(0)
    os.setsid()
    pid = 0
    try:
        pid, fault = _start(plan)
        if fault:
            os.write(1, fault)
        else:
            _detach()
            _wait(pid, time.monotonic() + plan["expires_s"])
    except BaseException as error:
        os.write(1, f"{type(error).__name__}: {error}"[:_FAULT_BYTES].encode())
    finally:
        remove(plan["state"], plan["name"], plan["groups"])
        os._exit(0)


def _start(plan: BoxPlan) -> tuple[int, bytes]:
    """Start the first process of the box. Return its id, and why it failed."""
    join = cgroups.make_box_group(plan["name"], plan["groups"], plan["memory"], plan["processes"], plan["cpus"])
    faults, fault = os.pipe()
    go, start = os.pipe()
    syscalls.call("unshare", syscalls.CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        _become_first(plan, join, fault, go)
    for fd in (*join, fault, go, LISTEN_FD):
        os.close(fd)
    first = os.read(faults, 1)
    if first == setup.WANTS_IDS:
        uid, user = plan["uid"], plan["user"]
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{pid}/{name}", "w") as file:
                file.write(f"0 {uid} 1\n{user} {uid + 1} 1\n")
        os.write(start, b"1")
    found = bytearray()
    while data := os.read(faults, _FAULT_BYTES):
        found += data
    os.close(faults)
    os.close(start)
    if not first:
        found += b"its first process was killed"
    return pid, bytes(found[:_FAULT_BYTES])


def _become_first(plan: BoxPlan, join: list[int], fault: int, go: int) -> None:
    try:
        fault, go = _above(fault), _above(go)
        os.dup2(fault, FAULT_FD, inheritable=False)
        os.dup2(go, GO_FD, inheritable=False)
        setup.become_driver(plan, [_above(fd) for fd in join])
    except BaseException as error:
        os.write(FAULT_FD, b"-" + f"{type(error).__name__}: {error}"[:_FAULT_BYTES].encode())
    finally:
        os._exit(1)


def _above(fd: int) -> int:
    """Return a copy of a descriptor above those of the box."""
    copy = os.dup(fd)
    while copy <= GO_FD:
        copy = os.dup(copy)
    return copy


def _detach() -> None:
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)


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
