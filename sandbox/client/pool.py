"""Warm engines, leased one job at a time: opened when needed, checked, replaced, closed."""

import asyncio
import atexit
import os
import threading
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Self

from sandbox.client import self_test
from sandbox.client.self_test import TIERS, SelfTest
from sandbox.connections.engine_connection import Engine
from sandbox.connections.engine_pair import Station
from sandbox.connections.transports import BACKENDS, Transport, TransportOptions, transport_class
from sandbox.errors import EngineFailed, SandboxUnavailable
from sandbox.verdicts import supervisor
from sandbox.verdicts.jobs import FunctionJob, Job, ProgramJob
from sandbox.verdicts.results import Outcome, Status
from sandbox.verdicts.statuses import InfrastructureFailed

_IDLE_CHECK_S = 30.0  # an engine that lay idle longer is asked for a sign of life first
_ATTEMPTS = 2  # for a job whose engine fails, before it is run under watch
_WATCHED = 2  # engines started for such a job that must end too, until it is to blame for that
_HARMLESS = ProgramJob("pass")  # what engines are tried with meanwhile


class _EngineLost(EngineFailed):
    """The engine ended, or stopped to answer, while it ran a job."""


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How a pool is set up.

    backend    auto, or the name of a transport
    accept     isolation tiers under which code may run
    workers    jobs at once; None means twice the processors, four at least
    strongest  leave out what makes a stronger tier, as if this machine did not have it
    landlock_abi  the highest Landlock version that engines use, to test what holds on older kernels; None for no cap
    packages   directories of packages that candidates may import besides the standard library
    required   packages that the backend's own directory must offer, by the names they are imported by
    transport  image, runtime and socket, for the backends that have them
    """

    backend: str = "auto"
    accept: frozenset[str] = frozenset("AB")
    workers: int | None = None
    strongest: str = "A"
    landlock_abi: int | None = None
    packages: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
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
        self.selftest: SelfTest
        self._transport = transport
        self._free = threading.Semaphore(options.size)
        self._lock = threading.Lock()
        self._watching = threading.Lock()
        self._idle: list[tuple[Station, float]] = []
        self._leased: set[Station] = set()
        self._closed = False
        self._threads: ThreadPoolExecutor | None = None
        self._offering: dict[tuple[str, ...], Pool] = {}
        _pools.add(self)

    @classmethod
    def open(cls, options: PoolOptions | None = None) -> Self:
        """A pool with its first engine warm and its isolation tested. Raises SandboxUnavailable.

        With backend auto: local engines, or docker's where local ones do not reach an accepted tier.
        """
        options = options or PoolOptions()
        if options.backend != "auto":
            return cls._open(options, options.backend)
        try:
            return cls._open(options, "local")
        except SandboxUnavailable as error:
            try:
                return cls._open(options, "docker")
            except SandboxUnavailable:
                raise error from None

    @classmethod
    def _open(cls, options: PoolOptions, backend: str) -> Self:
        pool = cls(options, transport_class(backend))
        try:
            pool._idle.append((pool._first_station(), time.monotonic()))
        except BaseException:
            pool.close()
            raise
        return pool

    def offering(self, required: Sequence[str]) -> "Pool":
        """The pool whose code may import the packages *required*: this one if none are, else one that ends with it.

        Raises SandboxUnavailable where a package is not installed, with how to install it.
        """
        key = tuple(sorted(required))
        if set(key) <= set(self.options.required):
            return self
        with self._lock:
            pool = self._offering.get(key)
        if pool is None:
            transport = replace(self.options.transport, offering=True)
            opened = type(self)._open(replace(self.options, required=key, transport=transport), self.backend)
            with self._lock:
                pool = self._offering.setdefault(key, opened)
            if pool is not opened:
                opened.close()
        return pool

    def _first_station(self) -> Station:
        """The first engine, attacked unless this process has done so before. Raises SandboxUnavailable."""
        station = self._new_station()
        try:
            absent = sorted(set(self.options.required) - station.engine.offered)
            if absent:
                raise SandboxUnavailable(
                    f"The environment needs {', '.join(absent)}, which the {self.backend} sandbox does not have: "
                    f"{self._transport.installation}."
                )
            tested = _tested.get(self._setup)
            if tested is None or tested.claimed != station.engine.tier:
                tested = _tested[self._setup] = self_test.attack(station.engine)
            self.selftest = tested
            self.tier = tested.tier
            if self.tier not in self.options.accept:
                raise SandboxUnavailable(_refusal(self.backend, tested, self.options.accept))
        except EngineFailed as error:
            station.close()
            raise SandboxUnavailable(f"The sandbox engine did not pass its self-test: {error}") from error
        except BaseException:
            station.close()
            raise
        return station

    @property
    def _offers(self) -> bool:
        """Whether its engines offer packages."""
        return bool(self.options.packages or self.options.required)

    @property
    def _setup(self) -> tuple[Any, ...]:
        """What decides about isolation."""
        options = self.options
        return (
            self.backend,
            options.strongest,
            options.landlock_abi,
            options.packages,
            options.required,
            options.transport,
        )

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(self, job: Job) -> Outcome:
        """Run a job and return its outcome, `infra_error` included. Blocks; any number of threads may call.

        A job whose engine fails is run again. One that every engine ends under, while they run other code, is at fault
        itself: its outcome is `tampered`.
        """
        started = time.monotonic()
        lost = 0
        status, message = Status.INFRA_ERROR, ""
        for _ in range(_ATTEMPTS):
            try:
                return self._attempt(job)
            except (EngineFailed, InfrastructureFailed, SandboxUnavailable) as error:
                lost += isinstance(error, _EngineLost)
                message = f"The sandbox failed: {error}"
        if lost == _ATTEMPTS:
            try:
                return self._watch(job)
            except _EngineLost:
                engines = _ATTEMPTS + _WATCHED
                status = Status.TAMPERED
                message = (
                    f"The code ended all {engines} sandbox engines that ran it. They ran other code before and after."
                )
            except (EngineFailed, InfrastructureFailed, SandboxUnavailable) as error:
                message = f"The sandbox failed: {error}"
        return Outcome(
            status,
            message,
            wall_ms=round((time.monotonic() - started) * 1000, 3),
            tier=self.tier,
            backend=self.backend,
            trust="in_process" if isinstance(job, FunctionJob) and job.trust == "in_process" else "isolated",
        )

    def _attempt(self, job: Job, fresh: bool = False) -> Outcome:
        """Run a job on an engine; on one started for it, and tried with harmless code, if `fresh`.

        Raises _EngineLost if the engine ends, or stops to answer, while it runs the job.
        """
        with self._free:
            station = self._lease(groups=job.limits.processes > 0, fresh=fresh)
            keep = False
            try:
                if fresh:
                    self._try_out(station)
                started = time.monotonic()
                try:
                    outcome = supervisor.run(job, station)
                except EngineFailed as error:
                    raise _EngineLost(str(error)) from error
                keep = True
            finally:
                self._give_back(station, keep)
        return replace(outcome, wall_ms=round((time.monotonic() - started) * 1000, 3))

    def _watch(self, job: Job) -> Outcome:
        """Find out whether a job is to blame for the engines that it lost, by running it on engines that work.

        Raises _EngineLost if it is: every engine ended, and each ran harmless code before, as another one does after.
        One job at a time, so that no other of these takes its engine with it.
        """
        with self._watching:
            for _ in range(_WATCHED):
                try:
                    return self._attempt(job, fresh=True)
                except _EngineLost as error:
                    lost = error
            with self._free:
                station = self._lease(groups=False, fresh=True)
                keep = False
                try:
                    self._try_out(station)
                    keep = True
                finally:
                    self._give_back(station, keep)
            raise lost

    def _try_out(self, station: Station) -> None:
        """Raise InfrastructureFailed if an engine does not run harmless code."""
        outcome = supervisor.run(_HARMLESS, station)
        if not outcome.ok:
            raise InfrastructureFailed(f"a new engine does not run harmless code: {outcome.message}")

    async def arun(self, job: Job) -> Outcome:
        """`run` for asyncio, on whatever loop is running."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.options.size, thread_name_prefix="sandbox")
        return await asyncio.wrap_future(self._threads.submit(self.run, job))

    # ---- leases -----------------------------------------------------------------------------------------------------

    def _new_station(self, groups: bool = False) -> Station:
        groups = groups or self._offers
        return Station(self._new_engine(groups), lambda judged: self._new_engine(judges=judged), groups)

    def _new_engine(self, groups: bool = False, judges: Engine | None = None) -> Engine:
        options = self.options
        transport = judges.transport.beside() if judges else self._transport(options.transport)
        offered = (transport.packages_folder,) if options.required else ()
        engine = Engine(
            transport,
            strongest=options.strongest,
            landlock_abi=options.landlock_abi,
            packages=(*options.packages, *offered),
            groups=groups,
            judges=judges,
        )
        engine.open()
        if self.tier:
            if engine.tier > self.selftest.claimed:
                engine.close()
                raise SandboxUnavailable(f"A new engine reaches tier {engine.tier} only, the first one {self.tier}.")
            engine.tier = self.tier
        return engine

    def _lease(self, groups: bool, fresh: bool = False) -> Station:
        """An engine that works: the one used last, since its pages are still warm, or a new one.

        groups: one that may use control groups, for a job with child processes. Engines that offer packages have them
        for every job; others make none, so that they leave none behind however they end.
        """
        groups = groups or self._offers
        while True:
            with self._lock:
                if self._closed:
                    raise EngineFailed("The pool is closed.")
                fitting = [] if fresh else [entry for entry in self._idle if entry[0].groups == groups]
                station, since = fitting[-1] if fitting else (None, 0.0)
                if station is not None:
                    self._idle.remove((station, since))
                    self._leased.add(station)
            if station is None:
                station = self._new_station(groups)
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
        harmless = not engine.harmed or transport.keep_after_harm
        return not engine.busy and harmless and engine.runs < transport.max_runs

    # ---- the end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End every engine, those at work too: their jobs come back as `infra_error`. May be called twice."""
        with self._lock:
            self._closed = True
            idle, self._idle = [station for station, _ in self._idle], []
            leased = list(self._leased)
            threads, self._threads = self._threads, None
            offering, self._offering = list(self._offering.values()), {}
        for pool in offering:
            pool.close()
        for station in idle:
            station.close()
        for station in leased:
            station.abort()  # whoever holds it closes it
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
        self._lock, self._watching = threading.Lock(), threading.Lock()
        self._free = threading.Semaphore(self.options.size)
        self._idle, self._leased, self._threads, self._offering = [], set(), None, {}


def _refusal(backend: str, tested: SelfTest, accept: frozenset[str]) -> str:
    """Why code does not run here, and what would change that."""
    found = f"The {backend} sandbox reaches isolation tier {tested.tier} here: {TIERS[tested.tier]}"
    why = f" ({tested.explain()})" if tested.explain() else ""
    wanted = " and ".join(sorted(accept))
    docker = "" if backend == "docker" else "Use the Docker backend (`sandbox: {backend: docker}`), or, if"
    return (
        f"{found}{why}. The configuration accepts {wanted}. {docker or 'If'} what will run is harmless, accept the "
        f"tier by name: `sandbox: {{accept: [{', '.join(sorted(accept | {tested.tier}))}]}}`. "
        "`manage.py sandbox_check` shows the details."
    )


_tested: dict[tuple[Any, ...], SelfTest] = {}  # of this process: attacking again would find the same
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
