"""Warm engines, leased one job at a time: opened when needed, checked, replaced, closed."""

import asyncio
import atexit
import os
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Self

from sandbox import supervisor
from sandbox.engines import Engine
from sandbox.errors import EngineFailed, SandboxUnavailable
from sandbox.jobs import FunctionJob, Job
from sandbox.results import Outcome, Status
from sandbox.station import Station
from sandbox.transports import BACKENDS, Transport, TransportOptions, transport_class
from sandbox.verdicts import InfrastructureFailed

_IDLE_CHECK_S = 30.0  # an engine that lay idle longer is asked for a sign of life first
_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How a pool is set up.

    backend    auto, or the name of a transport
    accept     isolation tiers under which code may run
    workers    jobs at once; None means twice the processors, four at least
    strongest  leave out what makes a stronger tier, as if this machine did not have it
    packages   directories of packages that candidates may import besides the standard library
    transport  image, runtime and socket, for the backends that have them
    """

    backend: str = "auto"
    accept: frozenset[str] = frozenset("AB")
    workers: int | None = None
    strongest: str = "A"
    packages: tuple[str, ...] = ()
    transport: TransportOptions = field(default_factory=TransportOptions)

    def __post_init__(self) -> None:
        if self.backend != "auto" and self.backend not in BACKENDS:
            raise ValueError(f"backend must be auto, {', '.join(sorted(BACKENDS))}, not {self.backend!r}.")
        if not self.accept or not self.accept <= set("ABC"):
            raise ValueError(f"accept must name isolation tiers out of A, B and C, not {sorted(self.accept)}.")
        if self.workers is not None and self.workers < 1:
            raise ValueError("workers must be at least 1.")

    @property
    def size(self) -> int:
        return self.workers or max(4, 2 * (os.cpu_count() or 1))


class Pool:
    """Runs jobs from many threads at once, each on an engine of its own."""

    def __init__(self, options: PoolOptions, transport: type[Transport]) -> None:
        self.options = options
        self.backend = transport.backend
        self.tier = ""
        self._transport = transport
        self._free = threading.Semaphore(options.size)
        self._lock = threading.Lock()
        self._idle: list[tuple[Station, float]] = []
        self._leased: set[Station] = set()
        self._closed = False
        self._threads: ThreadPoolExecutor | None = None
        _pools.add(self)

    @classmethod
    def open(cls, options: PoolOptions | None = None) -> Self:
        """A pool with its first engine warm and its isolation tested. Raises SandboxUnavailable."""
        options = options or PoolOptions()
        pool = cls(options, transport_class("local" if options.backend == "auto" else options.backend))
        try:
            station = pool._new_station()
            pool.tier = station.engine.tier
            pool._idle.append((station, time.monotonic()))
        except BaseException:
            pool.close()
            raise
        return pool

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(self, job: Job) -> Outcome:
        """Run a job and return its outcome, `infra_error` included. Blocks; any number of threads may call."""
        started = time.monotonic()
        problem = ""
        for _ in range(_ATTEMPTS):
            try:
                return self._attempt(job)
            except (EngineFailed, InfrastructureFailed, SandboxUnavailable) as error:
                problem = str(error)
        return Outcome(
            Status.INFRA_ERROR,
            f"The sandbox failed: {problem}",
            wall_ms=round((time.monotonic() - started) * 1000, 3),
            tier=self.tier,
            backend=self.backend,
            trust=job.trust if isinstance(job, FunctionJob) else "isolated",
        )

    def _attempt(self, job: Job) -> Outcome:
        with self._free:
            station = self._lease()
            keep = False
            try:
                started = time.monotonic()
                outcome = supervisor.run(job, station)
                keep = True
            finally:
                self._give_back(station, keep)
        return replace(outcome, wall_ms=round((time.monotonic() - started) * 1000, 3))

    async def arun(self, job: Job) -> Outcome:
        """`run` for asyncio, on whatever loop is running."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.options.size, thread_name_prefix="sandbox")
        return await asyncio.wrap_future(self._threads.submit(self.run, job))

    # ---- leases -----------------------------------------------------------------------------------------------------

    def _new_station(self) -> Station:
        return Station(self._new_engine(), self._new_engine)

    def _new_engine(self) -> Engine:
        engine = Engine(self._transport(self.options.transport), strongest=self.options.strongest, packages=self.options.packages)
        engine.open()
        return engine

    def _lease(self) -> Station:
        """An engine that works: the one used last, since its pages are still warm, or a new one."""
        while True:
            with self._lock:
                if self._closed:
                    raise EngineFailed("The pool is closed.")
                station, since = self._idle.pop() if self._idle else (None, 0.0)
                if station is not None:
                    self._leased.add(station)
            if station is None:
                station = self._new_station()
                with self._lock:
                    self._leased.add(station)
                return station
            if time.monotonic() - since < _IDLE_CHECK_S or all(engine.healthy() for engine in station.engines):
                return station
            self._give_back(station, keep=False)

    def _give_back(self, station: Station, keep: bool) -> None:
        keep = keep and all(self._reusable(engine) for engine in station.engines)
        with self._lock:
            self._leased.discard(station)
            keep = keep and not self._closed
            if keep:
                self._idle.append((station, time.monotonic()))
        if not keep:
            station.close()

    def _reusable(self, engine: Engine) -> bool:
        transport = engine.transport
        return not engine.busy and engine.runs < transport.max_runs and (transport.keep_after_harm or not engine.harmed)

    # ---- the end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End every engine, those at work too: their jobs come back as `infra_error`. May be called twice."""
        with self._lock:
            self._closed = True
            idle, self._idle = [station for station, _ in self._idle], []
            threads, self._threads = self._threads, None
        for station in idle:
            station.close()
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _after_fork(self) -> None:
        """In a forked child: the engines are the parent's; this pool starts over when it is used."""
        for station in [station for station, _ in self._idle] + list(self._leased):
            station.forget()
        self._lock = threading.Lock()
        self._free = threading.Semaphore(self.options.size)
        self._idle, self._leased, self._threads = [], set(), None


_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()
_shared: dict[PoolOptions, Pool] = {}
_shared_lock = threading.Lock()


def shared(options: PoolOptions | None = None) -> Pool:
    """The process's pool for these options, opened at the first call and closed at exit. Raises SandboxUnavailable."""
    options = options or PoolOptions()
    with _shared_lock:
        pool = _shared.get(options)
        if pool is None:
            pool = _shared[options] = Pool.open(options)
        return pool


def close_shared() -> None:
    """Close every shared pool; the next `shared` opens a new one."""
    with _shared_lock:
        pools = list(_shared.values())
        _shared.clear()
    for pool in pools:
        pool.close()


def _after_fork() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()
    for pool in list(_pools):
        pool._after_fork()


atexit.register(close_shared)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
