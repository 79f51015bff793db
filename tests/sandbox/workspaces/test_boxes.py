"""Boxes of workspaces: what commands can do, what hostile ones cannot, and what scoring sees."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import (
    ArtifactsTooLarge,
    BoxLimits,
    BoxSpec,
    CommandResult,
    Handle,
    TooManyProcesses,
    WorkspaceEngine,
    WorkspaceError,
    WorkspaceLost,
)
from sandbox.workspaces.connection import Connection, Reply
from sandbox.workspaces.docker_engine import DockerWorkspaces
from tests.sandbox import containers

pytestmark = pytest.mark.docker
LIMITS = BoxLimits(pids=48, disk_mb=16, memory_mb=128, output_kb=4)


def spec(**values: object) -> BoxSpec:
    return BoxSpec(**{"image": containers.image(), "limits": LIMITS, **values})  # type: ignore[arg-type]


@pytest.fixture
def box(engine: WorkspaceEngine) -> Iterator[Handle]:
    handle = engine.open(spec())
    yield handle
    engine.close(handle)


@pytest.fixture
def verify_box(engine: WorkspaceEngine) -> Iterator[Handle]:
    handle = engine.open(spec(verify=True))
    yield handle
    engine.close(handle)


def run(engine: WorkspaceEngine, box: Handle, command: str, seconds: float = 20) -> CommandResult:
    return engine.execute(box, command, seconds)


# ---- commands --------------------------------------------------------------------------------------------------------


def test_command_returns_output_exit_code_and_work_folder(engine: WorkspaceEngine, box: Handle) -> None:
    result = run(engine, box, "pwd; echo wrong >&2; exit 3")
    assert (result.exit_code, result.output, result.timed_out) == (3, "/app\nwrong\n", False)


def test_files_and_background_processes_outlive_a_command(engine: WorkspaceEngine, box: Handle) -> None:
    run(engine, box, "echo kept > file; sleep 300 & echo $! > pid")
    assert run(engine, box, "cat file; test -d /proc/$(cat pid) && echo alive").output == "kept\nalive\n"


def test_long_output_keeps_both_ends_and_states_how_much_is_cut(engine: WorkspaceEngine, box: Handle) -> None:
    result = run(engine, box, "echo first; head -c 100000 /dev/zero | tr '\\0' x; echo; echo last")
    assert result.output.startswith("first\n")
    assert result.output.endswith("last\n")
    assert f"[{result.cut:,} bytes of output cut here]" in result.output
    assert result.cut == 100_000 + len("first\n\nlast\n") - 4096


def test_output_that_is_not_cut_keeps_characters_of_several_bytes(engine: WorkspaceEngine, box: Handle) -> None:
    result = run(engine, box, "printf x; for i in $(seq 1500); do printf é; done")
    assert (result.cut, result.output) == (0, "x" + "é" * 1500)


def test_command_beyond_its_time_is_killed_with_its_group_also_if_it_ignores_signals(
    engine: WorkspaceEngine, box: Handle
) -> None:
    result = run(engine, box, "trap '' TERM INT HUP; (sleep 299; :) & echo $$ > pid; while :; do :; done", seconds=1)
    assert (result.timed_out, result.exit_code) == (True, 137)
    # A killed process ends once it is scheduled, which takes a moment on a busy machine.
    alive = "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -qx sleep"
    assert run(engine, box, f"while {alive}; do :; done", seconds=20).exit_code == 0


def test_files_are_read_and_written_by_path(engine: WorkspaceEngine, box: Handle) -> None:
    content = os.urandom(3_000_000)
    engine.write(box, {"deep/er/file.bin": content})
    assert engine.read(box, "/app/deep/er/file.bin", 4_000_000) == content
    with pytest.raises(WorkspaceError, match="No such file"):
        engine.read(box, "missing", 10)
    run(engine, box, "mkfifo pipe")
    with pytest.raises(WorkspaceError, match="not a regular file"):
        engine.read(box, "pipe", 10)
    with pytest.raises(WorkspaceError, match="pipe/file: File exists"):
        engine.write(box, {"first": b"1", "pipe/file": b"2"})
    assert engine.read(box, "first", 10) == b"1"


def test_many_files_are_written_with_few_requests(engine: WorkspaceEngine, box: Handle) -> None:
    files = {f"{i % 7}/{i} \N{GRINNING FACE}": bytes([i % 256]) * (i % 2000) for i in range(2500)}
    with count_requests() as requests:
        engine.write(box, {**files, "large": b"x" * 3_000_000}, mode=0o640)
    assert requests["write"] < 15
    assert run(engine, box, "find . -type f -perm 640 | wc -l; cat large | wc -c").output == "2501\n3000000\n"
    found = engine.export_artifacts(box, ["/app"], 16)
    with count_requests() as requests:
        fresh = engine.open_from(spec(image=box.image, verify=True), found)
    assert requests["write"] < 15
    try:
        again = engine.export_artifacts(fresh, ["/app"], 16)
    finally:
        engine.close(fresh)
    assert {item.path: (item.mode, item.content) for item in again.entries} == {
        item.path: (item.mode, item.content) for item in found.entries
    }
    assert sum(item.content is not None for item in again.entries) == 2501


@contextmanager
def count_requests() -> Iterator[Counter[str]]:
    """Count the requests to drivers by operation."""
    counted: Counter[str] = Counter()
    call = Connection.call

    def counting(connection: Connection, operation: str, timeout: float = 60.0, /, **arguments: object) -> Reply:
        counted[operation] += 1
        return call(connection, operation, timeout, **arguments)

    with patch.object(Connection, "call", counting):
        yield counted


def test_missing_image_is_reported_with_its_remedy(engine: WorkspaceEngine) -> None:
    with pytest.raises(SandboxUnavailable, match="no-such-image:1 of the workspace is not on this Docker engine"):
        engine.open(spec(image="no-such-image:1"))


# ---- hostile commands ------------------------------------------------------------------------------------------------


def test_agent_has_no_capabilities_and_cannot_reach_the_driver(engine: WorkspaceEngine, box: Handle) -> None:
    status = run(engine, box, "grep -E '^(CapEff|CapPrm|CapInh|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status").output
    found = dict(line.split(":\t") for line in status.splitlines())
    assert {found[name] for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {"0" * 16}
    assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")
    attacks = "kill -9 1; echo x > /proc/1/fd/1; cat /proc/1/environ; head -c 1 /proc/1/mem; ls /proc/1/fd"
    for attack in attacks.split("; "):
        assert run(engine, box, attack).exit_code != 0, attack
    assert run(engine, box, "echo alive").output == "alive\n"


def test_programs_of_the_image_cannot_be_replaced(engine: WorkspaceEngine, box: Handle) -> None:
    for path in ("/bin/sh", "/usr/local/bin/python3", "/etc/ld.so.preload", "/etc/profile", "/root/x"):
        assert run(engine, box, f"echo evil > {path}").exit_code != 0, path


def test_box_has_no_network(engine: WorkspaceEngine, box: Handle) -> None:
    attempt = "python3 -c \"import socket; socket.create_connection(('1.1.1.1', 53), 3)\""
    assert "unreachable" in run(engine, box, attempt).output
    assert run(engine, box, "tail -n +3 /proc/net/dev | grep -vc ' lo:'").output.strip() == "0"


def test_fork_bomb_stays_inside_the_limit_and_the_box_answers_afterwards(engine: WorkspaceEngine, box: Handle) -> None:
    try:
        run(engine, box, "bomb() { bomb | bomb & }; bomb; sleep 60", seconds=3)
    except TooManyProcesses:
        pass
    for _ in range(3):  # the first may report that all processes were ended
        try:
            result = run(engine, box, "echo alive")
        except TooManyProcesses:
            continue
        break
    assert result.output == "alive\n"


def test_disk_and_memory_are_limited_and_the_box_answers_afterwards(engine: WorkspaceEngine, box: Handle) -> None:
    assert "No space left" in run(engine, box, "head -c 50M /dev/zero > big").output
    assert int(run(engine, box, "stat -c %s big; rm big").output) == 16 * 1024 * 1024
    assert run(engine, box, "for i in $(seq 70000); do : > f$i || exit 9; done", seconds=60).exit_code != 0
    assert run(engine, box, "rm -f f*; python3 -c 'x = bytearray(2_000_000_000)'").exit_code != 0
    assert run(engine, box, "echo alive").output == "alive\n"


# ---- artifacts and scoring boxes -------------------------------------------------------------------------------------


def test_artifacts_leave_out_links_devices_and_what_is_not_declared(engine: WorkspaceEngine, box: Handle) -> None:
    run(engine, box, "mkdir out; echo a > out/a; chmod 640 out/a; ln -s /etc/passwd out/link; mkfifo out/pipe")
    run(engine, box, "ln -s /etc folder; echo b > b; ln -s out/a top")
    found = engine.export_artifacts(box, ["/app/out", "/app/folder", "/app/top", "/app/none"], 1)
    assert [(item.path, item.mode, item.content) for item in found.entries] == [
        ("/app/out", 0o755, None),
        ("/app/out/a", 0o640, b"a\n"),
    ]
    assert sorted(found.refused) == ["/app/folder", "/app/out/link", "/app/out/pipe", "/app/top"]
    assert found.missing == ["/app/none"]


def test_artifacts_in_very_deep_folders_are_copied(engine: WorkspaceEngine, box: Handle) -> None:
    run(engine, box, "path=$(printf 'd/%.0s' $(seq 1500)); mkdir -p $path; echo x > ${path}f")
    found = engine.export_artifacts(box, ["/app"], 1)
    assert len(found.entries) == 1502
    fresh = engine.open_from(spec(image=box.image, verify=True), found)
    try:
        assert run(engine, fresh, "find . -name f | xargs cat").output == "x\n"
    finally:
        engine.close(fresh)


def test_artifacts_that_their_owner_may_not_read_are_copied_with_their_modes(
    engine: WorkspaceEngine, box: Handle
) -> None:
    run(engine, box, "mkdir -p a/b; echo x > a/b/f; echo y > g")
    run(engine, box, "chmod 0 a/b/f g; chmod 100 a/b; chmod 0 a; chmod 0 /app")
    for _ in range(2):  # the first copy has left the modes as they were
        found = engine.export_artifacts(box, ["/app"], 1)
        assert [(item.path, item.mode, item.content) for item in found.entries] == [
            ("/app", 0, None),
            ("/app/a", 0, None),
            ("/app/a/b", 0o100, None),
            ("/app/a/b/f", 0, b"x\n"),
            ("/app/g", 0, b"y\n"),
        ]
        assert not found.refused
    fresh = engine.open_from(spec(image=box.image, verify=True), found)
    try:
        assert run(engine, fresh, "pwd; stat -c '%a %n' . a g").output == "/app\n555 .\n0 a\n0 g\n"
    finally:
        engine.close(fresh)


def test_command_says_if_the_work_folder_cannot_be_entered(engine: WorkspaceEngine, box: Handle) -> None:
    run(engine, box, "chmod 0 /app")
    assert run(engine, box, "pwd").output == "[/app cannot be entered: Permission denied. This command runs in /.]\n/\n"


def test_artifacts_whose_path_is_too_long_are_left_out(engine: WorkspaceEngine, box: Handle) -> None:
    deep = "import os\nfor _ in range(25): os.mkdir('d' * 200); os.chdir('d' * 200)"
    run(engine, box, f'echo x > f; python3 -c "{deep}"')
    found = engine.export_artifacts(box, ["/app"], 1)
    assert [item.path for item in found.entries if item.content is not None] == ["/app/f"]
    assert [len(path) > 4096 for path in found.refused] == [True]


@pytest.mark.exhaustive
def test_artifacts_are_copied_whole_if_the_host_is_slow(engine: WorkspaceEngine, box: Handle) -> None:
    """Other file operations have 30 seconds. A copy also waits for the host, which is no fault of the agent."""
    run(engine, box, "head -c 14M /dev/zero > big")
    receive, waits = Connection._receive, [33.0]

    def receive_late(connection: Connection, deadline: float) -> bytes:
        data = receive(connection, deadline)
        time.sleep(waits.pop() if waits else 0)
        return data

    with patch.object(Connection, "_receive", receive_late):
        found = engine.export_artifacts(box, ["/app/big"], 16)
    assert [len(entry.content or b"") for entry in found.entries] == [14 * 2**20]


def test_artifacts_beyond_their_limit_are_refused(engine: WorkspaceEngine, box: Handle) -> None:
    run(engine, box, "head -c 2M /dev/zero > big")
    with pytest.raises(ArtifactsTooLarge):
        engine.export_artifacts(box, ["/app"], 1)


def test_fresh_box_has_the_artifacts_and_nothing_else_of_the_live_box(engine: WorkspaceEngine, box: Handle) -> None:
    run(engine, box, "mkdir -p a/b; echo x > a/b/f; chmod 2750 a; chmod 500 a/b; chmod 400 a/b/f; echo t > /tmp/trace")
    run(engine, box, "setsid sh -c 'while :; do echo forged > /app/a/b/f; done' > /dev/null 2>&1 &")
    fresh = engine.open_from(spec(image=box.image, verify=True), engine.export_artifacts(box, ["/app"], 4))
    try:
        found = run(engine, fresh, "stat -c '%a %n' a a/b a/b/f; cat a/b/f; ls /tmp")
        assert found.output == "2750 a\n500 a/b\n400 a/b/f\nx\n"
    finally:
        engine.close(fresh)


def test_agent_cannot_read_or_write_below_verify(engine: WorkspaceEngine, verify_box: Handle) -> None:
    engine.write(verify_box, {"/verify/tests/test.sh": b"secret"}, root=True, mode=0o700)
    for attempt in ("cat /verify/tests/test.sh", "ls /verify", "echo 1 > /verify/reward.json", "mv /verify /tmp/v"):
        result = run(engine, verify_box, attempt)
        assert result.exit_code != 0, attempt
        assert "secret" not in result.output


# ---- life ------------------------------------------------------------------------------------------------------------


def test_closed_box_is_reported_as_lost(engine: WorkspaceEngine) -> None:
    handle = engine.open(spec())
    engine.close(handle)
    engine.close(handle)
    with pytest.raises(WorkspaceLost):
        run(engine, handle, "true")


def test_box_of_another_generation_is_reported_as_lost(engine: WorkspaceEngine, box: Handle) -> None:
    other = Handle(host=box.host, id=box.id, generation="other", image=box.image)
    with pytest.raises(WorkspaceLost, match="started again"):
        run(engine, other, "true")


_OPEN_AND_WAIT = """
import dataclasses, json, sys, time
from sandbox.connections.owners import owner
from sandbox.workspaces.base import BoxSpec
from tests.sandbox.workspaces.engines import make_engine
handle = make_engine(sys.argv[2]).open(BoxSpec(image=sys.argv[1], owner=owner()))
make_engine(sys.argv[2]).execute(handle, "setsid sleep 9876 > /dev/null 2>&1 &", 5)
print(json.dumps(dataclasses.asdict(handle)), flush=True)
time.sleep(300)
"""


def test_sweep_removes_boxes_of_a_killed_process_and_no_others(engine: WorkspaceEngine, box: Handle) -> None:
    name = "docker" if isinstance(engine, DockerWorkspaces) else "native"
    process = subprocess.Popen(
        [sys.executable, "-c", _OPEN_AND_WAIT, containers.image(), name], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    left_behind = Handle(**json.loads(process.stdout.readline()))
    engine.sweep()
    assert run(engine, left_behind, "echo alive").output == "alive\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    engine.sweep()  # its return value is not compared, since other processes sweep too
    with pytest.raises(WorkspaceLost):
        run(engine, left_behind, "true")
    assert run(engine, box, "echo alive").output == "alive\n"
    assert not commands_with("sleep\0009876")


def commands_with(text: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text())
    return [line for line in found if text in line]


@pytest.mark.exhaustive
def test_box_ends_by_itself_when_it_expires(engine: WorkspaceEngine) -> None:
    handle = engine.open(spec(limits=BoxLimits(episode_s=3)))
    deadline = time.monotonic() + 30  # the box ends by itself, also if no process sweeps
    with pytest.raises(WorkspaceLost):
        while time.monotonic() < deadline:
            run(engine, handle, "true")
            time.sleep(0.2)
    engine.sweep()
    with pytest.raises(WorkspaceLost):
        run(engine, handle, "true")
