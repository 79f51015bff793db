"""Runs with child processes: limited in number, ended with the run, with one memory limit in control groups."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.limits import Limits
from sandbox.verdicts.jobs import ProgramJob
from sandbox.verdicts.results import Status

FEW = Limits(cpu_s=5, wall_s=10, memory_mb=128, processes=6)


@pytest.fixture(scope="module", params=["A", "B"])
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    options = PoolOptions(backend="local", strongest=request.param, accept=frozenset("ABC"), workers=1)
    with Pool.open(options) as opened:
        yield opened


def groups() -> list[Path]:
    return [path for path in Path("/sys/fs/cgroup").glob("**/llmeval-[0-9]*") if path.is_dir()]


def test_child_processes_are_denied_by_default(pool: Pool) -> None:
    if pool.tier == "C":
        pytest.skip("Tier C cannot refuse a fork.")
    outcome = pool.run(ProgramJob("import os\nos.fork()"))
    assert outcome.status is Status.EXCEPTION
    assert "PermissionError" in outcome.message


def test_child_processes_run_if_allowed(pool: Pool) -> None:
    code = "import subprocess\nprint(subprocess.run(['/bin/echo', 'child'], capture_output=True, text=True).stdout)"
    assert pool.run(ProgramJob(code, limits=FEW)).stdout == "child\n\n"


def test_child_process_ends_with_its_run(pool: Pool) -> None:
    code = """
import os
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(reader)
        os.execv("/bin/sleep", ["sleep", "86399"])
    os._exit(0)
os.wait()
os.close(writer)
os.set_inheritable(reader, False)
print(os.read(reader, 1))  # returns once the daemon has become another program
"""
    outcome = pool.run(ProgramJob(code, limits=FEW))
    assert outcome.ok, outcome
    assert [path for path in Path("/proc").glob("[0-9]*/cmdline") if _is_the_daemon(path)] == []


def _is_the_daemon(cmdline: Path) -> bool:
    try:
        return cmdline.read_bytes() == b"sleep\x0086399\x00"
    except OSError:
        return False


@pytest.mark.skipif(os.geteuid() != 0, reason="Control groups are made by root, or not at all.")
def test_memory_limit_covers_all_child_processes_and_control_group_is_removed() -> None:
    before = groups()
    code = """
import os
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        taken = b"x" * (70 << 20)
        os._exit(0 if os.read(0, 1) == b"" else 1)
    children.append(pid)
print(sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
hold = b"x" * (70 << 20)
"""
    with Pool.open(PoolOptions(backend="local", accept=frozenset("ABC"), workers=1)) as pool:
        outcome = pool.run(ProgramJob(code, limits=FEW))
        if not groups():
            pytest.skip("This machine offers no control groups for memory and processes.")
        assert outcome.peak_mb > 70
        assert outcome.peak_mb <= FEW.memory_mb + 20
    assert [group for group in groups() if group not in before] == []
