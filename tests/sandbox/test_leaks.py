"""Many runs leave nothing behind: no process, descriptor, mount, container, control group or file, and no growth.

LLMEVAL_LEAK_RUNS sets how many runs each backend makes; 10000 is the figure that the documentation promises.
"""

import gc
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox.jobs import Job
from sandbox.limits import Limits
from sandbox.pool import Pool
from sandbox.results import Status
from sandbox.transports.docker import OWNER_LABEL, owner
from tests.sandbox import containers
from tests.sandbox.conformance.bench import SETUPS, Setup, bench, engine_user
from tests.sandbox.conformance.case import ADD_TESTS, call_job, function_job, program_job

RUNS = int(os.environ.get("LLMEVAL_LEAK_RUNS", "400"))
GROWTH = 1.05

JOBS: list[tuple[Job, Status | None]] = [
    (function_job("def add(a, b): return a + b\n", ADD_TESTS["literal"]), Status.PASSED),
    (function_job("def add(a, b): return a + b\n", ADD_TESTS["judged"]), Status.PASSED),
    (function_job("def add(a, b): return [0] * 10**5\n", ADD_TESTS["judged"]), Status.ASSERTION),
    (function_job("def add(a, b): raise ValueError\n", ADD_TESTS["rows"]), Status.EXCEPTION),
    (program_job("open('left', 'w').write('x' * 9000)\nimport os\nos.mkdir('d')\nprint('y' * 9000)"), Status.COMPLETED),
    (program_job("import os\nos.kill(os.getpid(), 11)\nos._exit(1)"), Status.EXITED),
    (program_job("x = bytearray(1 << 30)"), Status.MEMORY_LIMIT),
    (call_job("def f(x):\n    return x\n", "f", list(range(1000))), Status.COMPLETED),
    (function_job("import os\nos.write(3, b'forged')\n", ADD_TESTS["rows"], limits=Limits(cpu_s=1, wall_s=1)), None),
]
"""Each with what must come of it; the last is a candidate that breaks its channel."""


@dataclass(frozen=True)
class Left:
    """What there is of this process's: counted before and after."""

    processes: int
    descriptors: int
    mounts: int
    groups: int
    files: int
    containers: int


def descendants(pid: int) -> int:
    """The processes below one."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            total += 1 + descendants(int(child))
    return total


def left(setup: Setup, users: set[int]) -> Left:
    """Counts of everything that a run could leave; `users` are those that the engines became."""
    gc.collect()
    found = 0
    if setup.backend == "docker":
        client = containers.daemon()
        found = len(client.api.containers(all=True, filters={"label": f"{OWNER_LABEL}={owner()}"}))
        client.close()
    return Left(
        processes=descendants(os.getpid()),
        descriptors=len(os.listdir("/proc/self/fd")),
        mounts=sum("/docker/" not in line for line in Path("/proc/self/mounts").read_text().splitlines()),
        groups=Path("/proc/self/cgroup").read_text().count("\n")
        + sum("llmeval" in str(path) for path in Path("/sys/fs/cgroup").glob("*/*")),
        files=sum(path.stat().st_uid in users for path in Path("/tmp").glob("llmeval-*")),
        containers=found,
    )


def memory_mb(pool: Pool) -> float:
    """Resident memory of this process and of a local engine's, MiB."""
    pids = [os.getpid()]
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        pids += map(int, (task / "children").read_text().split())
    pages = 0
    for pid in pids:
        pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def make_runs(pool: Pool, count: int) -> Counter[str]:
    """Run the jobs in turn; what went wrong, counted."""
    wrong: Counter[str] = Counter()
    for number in range(count):
        job, wanted = JOBS[number % len(JOBS)]
        outcome = pool.run(job)
        if outcome.status is Status.INFRA_ERROR or (wanted is not None and outcome.status is not wanted):
            wrong[f"job {number % len(JOBS)}: {outcome.status}: {outcome.message}"] += 1
    return wrong


@pytest.mark.skipif(sys.platform != "linux", reason="Counting what is left reads /proc.")
@pytest.mark.parametrize("setup", [s for s in SETUPS if s.tier != "C"], ids=lambda setup: setup.name)
def test_many_runs_leave_nothing_behind(setup: Setup) -> None:
    users: set[int] = set()
    with bench(setup) as engines:
        make_runs(engines.pool, len(JOBS))  # whatever is opened once, is open now
    before = left(setup, users)
    with bench(setup) as engines:
        if setup.backend == "local" and os.geteuid() == 0:
            users.add(engine_user())
        assert make_runs(engines.pool, max(2 * len(JOBS), RUNS // 10)) == {}
        settled = memory_mb(engines.pool)
        at_work = left(setup, users)
        assert make_runs(engines.pool, RUNS) == {}
        grown = memory_mb(engines.pool)
        assert left(setup, users) == at_work
    assert left(setup, users) == before
    assert grown <= settled * GROWTH, f"Memory grew from {settled:.1f} to {grown:.1f} MiB over {RUNS} runs."
