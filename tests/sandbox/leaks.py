"""Counts of what runs may leave behind on the machine, used by the tests and by `benchmarks/sandbox.py endurance`."""

import gc
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox.client.pool import Pool
from sandbox.connections.transports.docker import OWNER_LABEL, owner
from sandbox.limits import Limits
from sandbox.verdicts.jobs import Job
from sandbox.verdicts.results import Status
from tests.processes import child_processes, descendants
from tests.sandbox import containers
from tests.sandbox.conformance.bench import Setup, bench, engine_user
from tests.sandbox.conformance.case import ADD_TESTS, call_job, function_job, program_job

GROWTH = 1.05
_SETTLE_S = 5.0
_HARM_EVERY = 50  # runs; after harm an engine in a container is replaced, which takes a good second

JOBS: list[tuple[Job, Status]] = [
    (function_job("def add(a, b): return a + b\n", ADD_TESTS["literal"]), Status.PASSED),
    (function_job("def add(a, b): return a + b\n", ADD_TESTS["judged"]), Status.PASSED),
    (function_job("def add(a, b): return [0] * 10**5\n", ADD_TESTS["judged"]), Status.ASSERTION),
    (function_job("def add(a, b): raise ValueError\n", ADD_TESTS["rows"]), Status.EXCEPTION),
    (program_job("open('left', 'w').write('x' * 9000)\nimport os\nos.mkdir('d')\nprint('y' * 9000)"), Status.COMPLETED),
    (program_job("import os\nos.kill(os.getpid(), 11)\nos._exit(1)"), Status.EXITED),
    (program_job("x = bytearray(1 << 30)"), Status.MEMORY_LIMIT),
    (call_job("def f(x):\n    return x\n", "f", list(range(1000))), Status.COMPLETED),
]
"""Each with what must come of it."""

HARM = function_job("import os\nos.write(3, b'forged')\n", ADD_TESTS["rows"], limits=Limits(cpu_s=1, wall_s=1))
"""A candidate that breaks its channel."""
HARMED = frozenset({Status.TAMPERED, Status.OUTPUT_LIMIT, Status.TIMEOUT})


@dataclass(frozen=True)
class Left:
    """What there is of this process's: counted before and after."""

    processes: int
    descriptors: int
    mounts: int
    groups: int
    files: int
    containers: int


def groups() -> int:
    """The control groups of engines below this process or of none that is alive: others' are their own affair."""
    own = descendants(os.getpid())
    names = [path.name.removeprefix("llmeval-") for path in Path("/sys/fs/cgroup").glob("**/llmeval-*")]
    engines = [int(name) for name in names if name.isdigit()]  # boxes of workspaces have other names
    return sum(pid in own or not Path(f"/proc/{pid}").exists() for pid in engines)


def left(setup: Setup, users: set[int]) -> Left:
    """Counts of everything that a run could leave; `users` are those that the engines became."""
    gc.collect()
    found = 0
    if setup.backend == "docker":
        client = containers.daemon()
        found = len(client.api.containers(all=True, filters={"label": f"{OWNER_LABEL}={owner()}"}))
        client.close()
    return Left(
        processes=len(descendants(os.getpid())),
        descriptors=len(os.listdir("/proc/self/fd")),
        mounts=sum("/docker/" not in line for line in Path("/proc/self/mounts").read_text().splitlines()),
        groups=groups(),
        files=sum(path.stat().st_uid in users for path in Path("/tmp").glob("llmeval-*")),
        containers=found,
    )


def memory_mb(pool: Pool) -> float:
    """Resident memory of this process and of a local engine's, MiB."""
    pages = 0
    for pid in [os.getpid(), *child_processes(os.getpid())]:
        pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def make_runs(pool: Pool, count: int, tell: Callable[[int], object] = bool) -> Counter[str]:
    """Run the jobs in turn, harm among them; what went wrong, counted. `tell` hears the number of each run."""
    wrong: Counter[str] = Counter()
    for number in range(count):
        job, wanted = JOBS[number % len(JOBS)]
        allowed = frozenset({wanted})
        if number % _HARM_EVERY == _HARM_EVERY - 1:
            job, allowed = HARM, HARMED
        outcome = pool.run(job)
        if outcome.status not in allowed:
            wrong[f"wanted {', '.join(allowed)}, got {outcome.status}: {outcome.message}"] += 1
        tell(number)
    for job, _ in JOBS[:2] * 2:  # an engine, a judge's too, and the spare run in it
        pool.run(job)
    return wrong


def settled(setup: Setup, users: set[int], wanted: Left) -> Left:
    """What is left once it is as wanted, or after a while: a killed run may be on its way out."""
    deadline = time.monotonic() + _SETTLE_S
    while (found := left(setup, users)) != wanted and time.monotonic() < deadline:
        pass
    return found


@dataclass(frozen=True)
class Endurance:
    """What `endure` found: what was there before, at work and after; outcomes that were not as they should be."""

    before: Left
    at_work: Left
    then: Left
    after: Left
    wrong: Counter[str]
    settled_mb: float
    grown_mb: float

    def complaints(self) -> list[str]:
        """Every way in which something was left behind."""
        found = [f"{count} runs: {what}" for what, count in self.wrong.items()]
        if self.then != self.at_work:
            found.append(f"While at work {self.at_work} became {self.then}.")
        if self.after != self.before:
            found.append(f"Before there was {self.before}, afterwards {self.after}.")
        if self.grown_mb > self.settled_mb * GROWTH:
            found.append(f"Memory grew from {self.settled_mb:.1f} to {self.grown_mb:.1f} MiB.")
        return found


def endure(setup: Setup, runs: int, tell: Callable[[int], object] = bool) -> Endurance:
    """Make so many runs on one backend, after a tenth as many to warm up, and count what they leave."""
    users: set[int] = set()
    with bench(setup) as engines:
        make_runs(engines.pool, len(JOBS))  # whatever is opened once, is open now
    before = left(setup, users)
    with bench(setup) as engines:
        if setup.backend == "local" and os.geteuid() == 0:
            users.add(engine_user())
        wrong = make_runs(engines.pool, max(_HARM_EVERY, runs // 10))
        settled_mb = memory_mb(engines.pool)
        at_work = left(setup, users)
        wrong += make_runs(engines.pool, runs, tell)
        then, grown_mb = settled(setup, users, at_work), memory_mb(engines.pool)
    return Endurance(before, at_work, then, settled(setup, users, before), wrong, settled_mb, grown_mb)
