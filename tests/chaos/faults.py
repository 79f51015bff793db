"""The faults of a chaos run. Which of them happen, where and when is decided by the seed."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.chaos.services import Cluster, command_of, terminate_connections
from tests.chaos.workload import CountingScript
from tests.processes import child_processes, descendants

OUTAGE_S = 10.0  # of the endpoint
PAUSE_S = 65.0  # of a worker; its leases lapse after 60


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault that happened, at the time *at* by the clock of the machine.

    kills     calls in flight were lost
    restarts  a worker was told to end
    outage    the endpoint rejects requests for OUTAGE_S, and they are repeated
    """

    at: float
    description: str
    kills: bool
    restarts: bool = False
    outage: bool = False


@dataclass(slots=True)
class Chaos:
    """Causes faults in *cluster*. full: also those whose effects last longer than a minute.

    holders: returns the processes that hold leases.
    """

    cluster: Cluster
    script: CountingScript
    chooser: random.Random
    full: bool
    holders: Callable[[], set[int]]
    happened: list[Fault] = field(default_factory=list)
    _paused: dict[str, list[int]] = field(default_factory=dict)

    def schedule(self, number: int) -> list[tuple[float, Callable[[], Fault]]]:
        """Return *number* faults, each with the share of stored responses at which it happens. All kinds occur."""
        kinds = [
            self.kill_worker,
            self.restart_redis,
            self.terminate_connections,
            self.kill_sandbox,
            self.stop_endpoint,
            self.restart_worker,
            self.kill_worker,
        ]
        kinds += [self.pause_worker] if self.full else []
        chosen = [*kinds, *self.chooser.choices(kinds, k=max(0, number - len(kinds)))]
        self.chooser.shuffle(chosen)
        shares = sorted(self.chooser.uniform(0.0, 0.97) for _ in chosen)
        return list(zip(shares, chosen, strict=True))

    def cause(self, fault: Callable[[], Fault]) -> Fault:
        time.sleep(self.chooser.uniform(0.0, 1.0))
        happened = fault()
        self.happened.append(happened)
        return happened

    def kill_worker(self) -> Fault:
        """Kill a worker that executes the run: all of its processes, its main process or a process of its pool."""
        # Leases of the third worker lapse after a minute, since nobody else sees its lock files.
        workers = self.cluster.workers if self.full else self.cluster.workers[:2]
        executing = self.holders()
        busy = [worker for worker in workers if executing & {worker.pid, *child_processes(worker.pid)}]
        worker = self.chooser.choice(busy or workers)
        pool = [pid for pid in child_processes(worker.pid) if "celery" in command_of(pid)]
        kind = self.chooser.choice(["all", "main", "pool"]) if pool else "all"
        at = time.time()
        if kind == "pool":
            os.kill(self.chooser.choice(pool), signal.SIGKILL)
        else:
            worker.kill(also=pool if kind == "all" else [])
        return Fault(at, f"kill -9 of the {worker.name} worker ({kind})", kills=True)

    def restart_worker(self) -> Fault:
        """Stop a worker with SIGTERM, so that it stores the replies of its calls in flight; it is started again."""
        worker = self.chooser.choice([worker for worker in self.cluster.workers if worker.name not in self._paused])
        at = time.time()
        worker.kill(number=signal.SIGTERM)
        return Fault(at, f"restart of the {worker.name} worker", kills=False, restarts=True)

    def pause_worker(self) -> Fault:
        """Stop all processes of a worker that executes the run for longer than its leases live, then continue them."""
        executing = self.holders()
        busy = [w for w in self.cluster.workers if executing & {w.pid, *child_processes(w.pid)}]
        worker = self.chooser.choice(busy or self.cluster.workers)
        processes = [worker.pid, *child_processes(worker.pid)]
        at = time.time()
        self._paused[worker.name] = processes
        _signal_all(processes, signal.SIGSTOP)
        threading.Timer(PAUSE_S, self.go_on, [worker.name]).start()
        return Fault(at, f"pause of the {worker.name} worker for {PAUSE_S:.0f} s", kills=True)

    def go_on(self, name: str = "") -> None:
        """Continue the paused processes of a worker, or of all."""
        for paused in [name] if name else list(self._paused):
            _signal_all(self._paused.pop(paused, []), signal.SIGCONT)

    def restart_redis(self) -> Fault:
        empty, down_s = self.chooser.random() < 0.5, self.chooser.uniform(0.5, 3.0)
        at = time.time()
        self.cluster.restart_redis(empty=empty, down_s=down_s)
        return Fault(at, f"restart of Redis{', which lost its data' if empty else ''}", kills=False)

    def terminate_connections(self) -> Fault:
        number = terminate_connections(self.cluster.environment["DATABASE_URL"])
        return Fault(time.time(), f"end of {number} connections to PostgreSQL", kills=False)

    def kill_sandbox(self) -> Fault:
        """Kill the sandbox service, and an engine of a worker that has its own."""
        at = time.time()
        self.cluster.sandbox.kill()
        engines = [pid for worker in self.cluster.workers for pid in descendants(worker.pid) if _is_engine(pid)]
        engine = self.chooser.choice(engines) if engines else None
        if engine is not None:
            with suppress(ProcessLookupError):
                os.kill(engine, signal.SIGKILL)
        return Fault(at, f"kill -9 of the sandbox service{' and of an engine' if engine else ''}", kills=False)

    def stop_endpoint(self) -> Fault:
        self.script.down_until = time.time() + OUTAGE_S
        return Fault(time.time(), f"endpoint down for {OUTAGE_S:.0f} s", kills=False, outage=True)


def _signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _is_engine(pid: int) -> bool:
    return "sandbox/engine" in command_of(pid)
