"""Attacks of an agent on its box, on both engines: what must fail, and that the box answers afterwards."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import (
    BoxLimits,
    BoxSpec,
    Handle,
    ServiceSpec,
    TooManyProcesses,
    WorkspaceEngine,
    WorkspaceLost,
)
from sandbox.workspaces.native_engine import NativeWorkspaces
from tests.processes import wait_until
from tests.sandbox import containers

pytestmark = pytest.mark.docker
LIMITS = BoxLimits(pids=48, disk_mb=16, memory_mb=128, output_kb=16)


@pytest.fixture
def box(engine: WorkspaceEngine) -> Iterator[Handle]:
    handle = engine.open(BoxSpec(image=containers.image(), limits=LIMITS, verify=True))
    yield handle
    engine.close(handle)


@pytest.fixture
def native_box(native: WorkspaceEngine) -> Iterator[Handle]:
    handle = native.open(BoxSpec(image=containers.image(), limits=LIMITS, verify=True))
    yield handle
    native.close(handle)


DENIED = {
    "mount": "import ctypes; assert ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0",
    "unmount a mask": "import ctypes; assert ctypes.CDLL(None).umount2(b'/proc/sys', 2) == 0",
    "user namespace": "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0",
    "namespace of process 1": "import os, ctypes; assert ctypes.CDLL(None).setns(os.open('/proc/1/ns/mnt', 0), 0) == 0",
    "become root": "import os; os.setuid(0)",
    "block device": "import os; os.mknod('/tmp/disk', 0o60666, os.makedev(254, 0)); open('/tmp/disk', 'rb').read(1)",
    "memory device": "import os; os.mknod('/tmp/mem', 0o20666, os.makedev(1, 1)); open('/tmp/mem', 'rb').read(1)",
    "device of the host": "open('/dev/vda', 'rb')",
    "kernel setting": "open('/proc/sys/kernel/core_pattern', 'w').write('|/app/x')",
    "system request": "open('/proc/sysrq-trigger', 'w').write('b')",
    "kernel memory": "assert open('/proc/kcore', 'rb').read(1)",
    "memory of process 1": "open('/proc/1/mem', 'rb').read(1)",
    "root of process 1": "import os; os.listdir('/proc/1/root')",
    "raw socket": "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "packet socket": "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "bpf": "import ctypes; assert ctypes.CDLL(None).syscall(321, 0, bytes(64), 64) >= 0",
    "keyring": "import ctypes; assert ctypes.CDLL(None).syscall(250, 0, -3, 0) >= 0",
    "higher priority": "import os; os.nice(-5)",
    "host name": "import socket; socket.sethostname('host')",
    "control groups": "import os; os.mkdir('/sys/fs/cgroup/memory/mine')",
    "wider limit": "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (99999, 99999))",
    "docker socket": "import socket; socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
    "write to a folder of the image that is open to all": "open('/var/tmp/attack', 'w')",
    "write to the root": "open('/etc/attack', 'w')",
}


@pytest.mark.parametrize("attack", DENIED)
def test_attack_fails(engine: WorkspaceEngine, box: Handle, attack: str) -> None:
    engine.write(box, {"attack.py": DENIED[attack].encode()})
    result = engine.execute(box, "python3 attack.py", 20)
    assert result.exit_code != 0, attack
    assert "SyntaxError" not in result.output
    assert engine.execute(box, "echo alive", 20).output == "alive\n"


def test_attacks_are_tried_for_real(native: WorkspaceEngine, native_box: Handle) -> None:
    """A control: what is not an attack works by the same means."""
    script = (
        b"import os, socket, ctypes; socket.socketpair(); os.mkfifo('p'); os.fork() or os._exit(0); os.wait(); "
        b"s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print('works')"
    )
    native.write(native_box, {"control.py": script})
    assert native.execute(native_box, "python3 control.py", 20).output == "works\n"


def test_only_harmless_devices_are_there(native: WorkspaceEngine, native_box: Handle) -> None:
    found = native.execute(native_box, "find / -xdev -type b -o -type c 2>/dev/null; find /dev -type c -o -type b", 20)
    assert sorted(found.output.split()) == [f"/dev/{name}" for name in ("null", "random", "tty", "urandom", "zero")]


def test_no_descriptor_of_the_host_reaches_a_command(native: WorkspaceEngine, native_box: Handle) -> None:
    found = native.execute(native_box, "ls -l /proc/self/fd | awk 'NR > 1 {print $NF}' | grep -v '^/proc'", 20)
    assert all(name == "/dev/null" or name.startswith("pipe:") for name in found.output.split()), found.output


def test_host_environment_and_files_do_not_reach_a_command(
    native: WorkspaceEngine, native_box: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMEVAL_SECRET", "s3cret")
    assert "s3cret" not in native.execute(native_box, "env; cat /proc/*/environ 2>/dev/null", 20).output
    assert native.execute(native_box, "ls /mnt/lower /mnt/upper 2>/dev/null; true", 20).output == ""


def test_command_survives_the_end_of_its_launcher(engine: WorkspaceEngine, box: Handle) -> None:
    """A launcher is a process of the agent's user, so programs such as pkill may end it."""
    result = engine.execute(box, "kill -9 $PPID; sleep 0.2; echo alive; exit 3", 20)
    assert (result.exit_code, result.output, result.timed_out) == (3, "alive\n", False)
    result = engine.execute(box, "kill -9 $PPID; sleep 300", 1)
    assert (result.exit_code, result.timed_out) == (137, True)
    assert engine.execute(box, "kill -9 -1; echo alive", 20).output == "alive\n"
    assert engine.execute(box, "(sleep 0.2; kill -STOP $PPID) > /dev/null & echo alive", 20).output == "alive\n"
    result = engine.execute(box, "kill -STOP $PPID; echo alive", 1)
    assert result.timed_out or result.output == "alive\n"  # the launcher may report the end before it stops
    assert engine.execute(box, "echo alive", 20).output == "alive\n"


def test_agent_cannot_reach_its_launcher(engine: WorkspaceEngine, box: Handle) -> None:
    for attack in ("ls /proc/$PPID/fd", "cat /proc/$PPID/environ", "head -c 1 /proc/$PPID/mem", "cat /proc/$PPID/maps"):
        result = engine.execute(box, attack, 20)
        assert result.exit_code != 0, attack
        assert "denied" in result.output, attack


def test_daemon_is_ended_before_scoring(engine: WorkspaceEngine, box: Handle) -> None:
    daemon = "import os, time\nfor _ in range(2):\n    if os.fork(): os._exit(0)\n    os.setsid()\ntime.sleep(999)\n"
    engine.write(box, {"daemon.py": daemon.encode()})
    engine.execute(box, "python3 daemon.py > /dev/null 2>&1", 20)
    list_commands = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
    wait_until(lambda: "daemon.py" in engine.execute(box, list_commands, 20).output)  # it forks after its parent ended
    engine.end_processes(box)
    assert "daemon.py" not in engine.execute(box, list_commands, 20).output


def test_path_and_preload_of_the_agent_do_not_reach_the_script_of_tests(engine: WorkspaceEngine, box: Handle) -> None:
    fake = b"#!/bin/sh\necho forged\n"
    engine.write(box, {"cat": fake, "ls": fake, "sitecustomize.py": b"print('forged')"}, mode=0o755)
    engine.execute(
        box, "export PATH=/app:$PATH LD_PRELOAD=/app/x.so PYTHONPATH=/app; echo 'PATH=/app:$PATH' > ~/.profile", 20
    )
    engine.write(box, {"/verify/test.sh": b"cat /verify/fact; python3 -c 'print(1)'"}, root=True, mode=0o700)
    engine.write(box, {"/verify/fact": b"true\n"}, root=True)
    assert engine.execute(box, "sh /verify/test.sh", 20, root=True).output == "true\n1\n"


def test_limits_that_a_box_has_reached_are_known(engine: WorkspaceEngine, box: Handle) -> None:
    assert engine.reached_limits(box) == []
    engine.execute(box, "python3 -c 'bytearray(1 << 30)'", 20)
    assert engine.reached_limits(box) == ["memory"]
    # Not with `sleep 60 &`: the shell waits 15 s for another process before it gives up.
    sleepers = "from subprocess import *\nfor _ in range(80): Popen(['sleep', '60'], stdout=DEVNULL, stderr=DEVNULL)"
    engine.execute(box, f'python3 -c "{sleepers}"', 20)
    assert engine.reached_limits(box) == ["memory", "processes"]
    engine.end_processes(box)


@pytest.mark.exhaustive
def test_memory_spread_over_processes_is_limited(engine: WorkspaceEngine, box: Handle) -> None:
    program = (
        b"import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        x = bytearray(90 << 20); time.sleep(3)\n"
    )
    engine.write(box, {"spread.py": program + b"        print('kept', flush=True); os._exit(0)\ntime.sleep(5)\n"})
    try:
        kept = engine.execute(box, "python3 spread.py", 20).output.count("kept")
    except TooManyProcesses:
        kept = 0
    assert kept < 6
    assert engine.execute(box, "echo alive", 20).output == "alive\n"


def test_boxes_do_not_share_users(native: WorkspaceEngine, native_box: Handle) -> None:
    other = native.open(BoxSpec(image=containers.image(), limits=LIMITS))
    try:
        maps = {native.execute(handle, "cat /proc/self/uid_map", 20).output for handle in (native_box, other)}
        assert len(maps) == 2
        assert " 0 " not in " ".join(" ".join(line.split()[1:2]) for text in maps for line in text.splitlines())
    finally:
        native.close(other)


def test_one_box_finds_nothing_of_another_or_of_the_host_in_its_driver(native: WorkspaceEngine) -> None:
    """Drivers are forks of one process. A script of tests runs as root of its box and may read its driver's memory."""
    first = native.open(BoxSpec(image=containers.image(), limits=LIMITS, verify=True))
    secret = "f1rst" + "secret"
    native.execute(first, f"echo {secret}", 5, root=True)
    second = native.open(BoxSpec(image=containers.image(), limits=LIMITS, verify=True))
    try:
        native.write(second, {"/verify/scan.py": _SCAN}, root=True)
        wanted = ["host", secret[::-1], first.generation[::-1], second.generation[::-1], os.environ["PATH"][::-1]]
        found = native.execute(second, f"python3 /verify/scan.py {' '.join(wanted)}", 20, root=True)
        assert found.output.split() == ["0", "0", "0", "1", "0"], found.output
        arguments = native.execute(second, "tr '\\0' ' ' < /proc/1/cmdline", 5).output.split()
        assert arguments == ["llmeval-workspace"]
    finally:
        native.close(first)
        native.close(second)


# Whether each argument, reversed so that it is not in the request, is in the memory of process 1.
_SCAN = b"""
import sys
found = set()
with open("/proc/1/maps") as maps, open("/proc/1/mem", "rb", 0) as memory:
    for line in maps:
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if " rw" in line:
            memory.seek(start)
            data = memory.read(end - start)
            found |= {word for word in sys.argv[2:] if word[::-1].encode() in data}
print("0", *(int(word in found) for word in sys.argv[2:]))
"""


def test_driver_imports_nothing_from_its_box(native: WorkspaceEngine, native_box: Handle) -> None:
    """Taking a snapshot needs tarfile, and a name that is not ASCII an encoding. Both are loaded before."""
    for name in ("tarfile", "encodings", "zlib"):
        native.write(native_box, {f"/tmp/{name}.py": b"open('/tmp/imported', 'w')", f"{name}.py": b"1/0"})
    native.write(native_box, {"/app/\u00fc\u4e2d.txt": b"1"})
    facts = native.snapshot(native_box, "/app", io.BytesIO(), 4)
    assert (facts.processes, list(facts.left_out)) == (0, [])
    assert native.execute(native_box, "ls /tmp/imported", 5).exit_code != 0


def test_boxes_outlive_their_zygote_and_the_next_box_gets_another(native: WorkspaceEngine, native_box: Handle) -> None:
    assert isinstance(native, NativeWorkspaces)
    native.execute(native_box, "echo kept > file", 5)
    status = Path(f"/proc/{native.zygote.pid}/status")
    os.kill(native.zygote.pid, signal.SIGKILL)
    wait_until(lambda: "State:\tZ" in status.read_text())  # its socket is closed
    other = native.open(BoxSpec(image=containers.image(), limits=LIMITS))
    try:
        assert native.execute(other, "echo alive", 5).output == "alive\n"
        assert native.execute(native_box, "cat file", 5).output == "kept\n"
    finally:
        native.close(other)


def test_native_engine_refuses_what_only_docker_does(native: WorkspaceEngine) -> None:
    spec = {"image": containers.image(), "limits": LIMITS}
    with pytest.raises(SandboxUnavailable, match=r"services.*only the Docker engine"):
        native.open(BoxSpec(**spec, services=[ServiceSpec(name="db", image="postgres:17")]))  # type: ignore[arg-type]
    with pytest.raises(SandboxUnavailable, match=r"hosts outside.*only the Docker engine"):
        native.open(BoxSpec(**spec, allowed=["example.org:443"]))  # type: ignore[arg-type]
    with pytest.raises(SandboxUnavailable, match=r"Dockerfile.*LLMEVAL_WORKSPACES=docker"):
        native.build({"Dockerfile": b"FROM scratch"}, "/app", 10, allowed=True)


def test_facts_about_the_kernel_are_masked(native: WorkspaceEngine, native_box: Handle) -> None:
    command = (
        "cat /proc/keys /proc/config.gz /proc/timer_list /proc/kallsyms 2>/dev/null | wc -c; ls -A /sys /proc/acpi"
    )
    assert native.execute(native_box, command, 20).output.split() == ["0", "/proc/acpi:", "/sys:"]
    mounts = native.execute(native_box, "grep -E ' (/|/proc/sys|/sys|/dev) ' /proc/self/mounts", 20).output
    assert {line.split()[1]: line.split()[3].split(",")[0] for line in mounts.splitlines()} == dict.fromkeys(
        ("/", "/proc/sys", "/sys", "/dev"), "ro"
    )


def test_io_uring_is_denied(native: WorkspaceEngine, native_box: Handle) -> None:
    """Older Docker engines allow it."""
    attack = "import ctypes; assert ctypes.CDLL(None).syscall(425, 1, bytes(120)) >= 0"
    native.write(native_box, {"attack.py": attack.encode()})
    assert native.execute(native_box, "python3 attack.py", 20).exit_code != 0


_CHECK = """
import os, sys
from pathlib import Path
from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.native_engine import NativeWorkspaces
os.setgid(65534); os.setuid(65534)
try:
    NativeWorkspaces(Path("/nonexistent")).check()
except SandboxUnavailable as error:
    print(error)
"""


def test_native_engine_refuses_to_start_without_root(native: WorkspaceEngine) -> None:
    found = subprocess.run([sys.executable, "-c", _CHECK], capture_output=True, text=True, check=True)
    assert "must be root" in found.stdout
    assert "LLMEVAL_WORKSPACES=docker" in found.stdout


@pytest.mark.parametrize("name", ["../..", "/etc", "", "0" * 32])
def test_handle_of_no_box_is_lost(native: WorkspaceEngine, name: str) -> None:
    assert isinstance(native, NativeWorkspaces)
    with pytest.raises(WorkspaceLost):
        native.execute(Handle(host="", id=name, generation=name, image=""), "true", 5)


@pytest.mark.exhaustive
def test_box_ends_with_its_keeper_and_is_swept(native: WorkspaceEngine) -> None:
    limits = BoxLimits(pids=48, disk_mb=16, memory_mb=128, episode_s=6)
    handle = native.open(BoxSpec(image=containers.image(), limits=limits))
    native.execute(handle, "setsid sleep 98765 > /dev/null 2>&1 &", 5)
    os.kill(_keeper(handle), signal.SIGKILL)
    deadline = time.monotonic() + 20
    with pytest.raises(WorkspaceLost):
        while time.monotonic() < deadline:
            native.execute(handle, "true", 5)
            time.sleep(0.05)
    wait_until(lambda: not [path for path in Path("/proc").glob("[0-9]*") if _has(path / "cmdline", "98765")])
    folders = Path(settings.BASE_DIR, "var", "test-workspaces")
    assert list(folders.rglob(handle.id))
    wait_until(lambda: not list(folders.rglob(handle.id)), each_second=native.sweep)
    assert not list(Path("/sys/fs/cgroup").rglob(f"llmeval-box-{handle.id}"))


def _keeper(box: Handle) -> int:
    """Return the parent of the first process of a native box."""
    group = next(Path("/sys/fs/cgroup").rglob(f"llmeval-box-{box.id}"))
    first = min(int(pid) for pid in (group / "cgroup.procs").read_text().split())
    return int(Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[1])


def _has(path: Path, text: str) -> bool:
    try:
        return text in path.read_text(errors="replace")
    except OSError:
        return False
