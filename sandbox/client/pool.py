"""The pool, which runs jobs from many threads at once."""

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Self

from sandbox.client.engine_pool import EnginePool
from sandbox.client.options import PoolOptions
from sandbox.client.self_test import SelfTest
from sandbox.connections.backends import get_transport_class
from sandbox.connections.engine_pair import EnginePair
from sandbox.connections.transports import Transport
from sandbox.errors import EngineFailed, InfrastructureFailed, SandboxUnavailable, SandboxUnreachable
from sandbox.verdicts.execution import run_job
from sandbox.verdicts.jobs import FunctionJob, Job, ProgramJob
from sandbox.verdicts.results import Outcome, Status

_ATTEMPTS = 2  # of a job whose engine fails
_FRESH_ATTEMPTS = 2  # further attempts, each on an engine started for it, before the job is at fault
_HARMLESS = ProgramJob("pass")  # checks that an engine works

_SANDBOX_FAILURES = (EngineFailed, InfrastructureFailed, SandboxUnavailable)


class EngineLost(EngineFailed):
    """The engine ended, or did not respond, while it ran a job."""


class Pool:
    """Runs each job on an engine of its own.

        with Pool.open(PoolOptions(backend="local")) as pool:
            outcome = pool.run(ProgramJob("print(1)"))

    Any number of threads may call `run`; at most `options.size` jobs run at once.
    """

    def __init__(self, options: PoolOptions, transport: type[Transport]) -> None:
        self.options = options
        self.backend = transport.backend
        self.engines = EnginePool(options, transport)
        self._lock = threading.Lock()
        self._blame_lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._with_packages: dict[tuple[str, ...], Pool] = {}
        _pools.add(self)

    @classmethod
    def open(cls, options: PoolOptions | None = None) -> Self:
        """Return a pool with one warm engine whose isolation was tested. Raises SandboxUnavailable.

        With backend auto, engines are local, or docker if local ones do not reach an accepted tier.
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
        pool = cls(options, get_transport_class(backend))
        try:
            pool.engines.open_first()
        except BaseException:
            pool.close()
            raise
        return pool

    @property
    def tier(self) -> str:
        """The isolation tier of its engines."""
        return self.engines.tier

    @property
    def self_test(self) -> SelfTest:
        """The self-test of its first engine."""
        return self.engines.self_test

    def with_packages(self, names: Sequence[str]) -> "Pool":
        """Return a pool whose code may import these packages: this one if it suffices, else one that it closes.

        Raises SandboxUnavailable if a package is not installed, with how to install it.
        """
        key = tuple(sorted(names))
        if set(key) <= set(self.options.required):
            return self
        with self._lock:
            pool = self._with_packages.get(key)
        if pool is None:
            transport = replace(self.options.transport, with_packages=True)
            opened = type(self)._open(replace(self.options, required=key, transport=transport), self.backend)
            with self._lock:
                pool = self._with_packages.setdefault(key, opened)
            if pool is not opened:
                opened.close()
        return pool

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(self, job: Job) -> Outcome:
        """Run a job and return its outcome, `infra_error` included. Blocks until it has one.

        A job whose engine fails is run again. A job that loses each engine, although the engines run other code, is at
        fault: its outcome is `tampered`.
        """
        started = time.monotonic()
        lost = 0
        status, message = Status.INFRA_ERROR, ""
        for _ in range(_ATTEMPTS):
            try:
                return self._attempt(job)
            except _SANDBOX_FAILURES as error:
                lost += isinstance(error, EngineLost)
                message = f"The sandbox failed: {error}"
        if lost == _ATTEMPTS:
            try:
                return self._attempt_on_fresh_engines(job)
            except EngineLost:
                status = Status.TAMPERED
                message = (
                    f"The code ended all {_ATTEMPTS + _FRESH_ATTEMPTS} sandbox engines that ran it. "
                    "They ran other code before and after."
                )
            except _SANDBOX_FAILURES as error:
                message = f"The sandbox failed: {error}"
        return Outcome(
            status,
            message,
            wall_ms=_milliseconds_since(started),
            tier=self.tier,
            backend=self.backend,
            trust="in_process" if isinstance(job, FunctionJob) and job.trust == "in_process" else "isolated",
        )

    def _attempt(self, job: Job, fresh: bool = False) -> Outcome:
        """Run a job on an engine; with `fresh`, on one that was started for it and ran harmless code.

        Raises EngineLost if the engine ends, or does not respond, while it runs the job.
        """
        with self.engines.lease(cgroups=job.limits.processes > 0, fresh=fresh) as engines:
            if fresh:
                _check_engine(engines)
            started = time.monotonic()
            try:
                outcome = run_job(job, engines)
            except EngineFailed as error:
                raise EngineLost(str(error)) from error
        return replace(outcome, wall_ms=_milliseconds_since(started))

    def _attempt_on_fresh_engines(self, job: Job) -> Outcome:
        """Run a job on engines that work, to find out whether the job ended the engines that it lost.

        Each engine is started for the job and runs harmless code before it. Raises EngineLost if the job loses all of
        these engines too, and another engine still runs harmless code afterwards: then the job is at fault. Jobs take
        turns here, so that no job ends the engine of another one.
        """
        with self._blame_lock:
            for _ in range(_FRESH_ATTEMPTS):
                try:
                    return self._attempt(job, fresh=True)
                except EngineLost as error:
                    lost = error
            with self.engines.lease(fresh=True) as engines:
                _check_engine(engines)
            raise lost

    async def arun(self, job: Job) -> Outcome:
        """`run` for asyncio, on any event loop."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.options.size, thread_name_prefix="sandbox")
        return await asyncio.wrap_future(self._threads.submit(self.run, job))

    def check(self) -> None:
        """Start an engine and run harmless code on it. Raises SandboxUnreachable if that fails."""
        try:
            with self.engines.lease(fresh=True) as engines:
                _check_engine(engines)
        except _SANDBOX_FAILURES as error:
            raise SandboxUnreachable(f"The sandbox does not work at the moment: {error}") from error

    # ---- closing ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End each engine, also those with a job, whose outcome is then `infra_error`. May be called twice."""
        with self._lock:
            threads, self._threads = self._threads, None
            pools, self._with_packages = list(self._with_packages.values()), {}
        for pool in pools:
            pool.close()
        self.engines.close()
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset_after_fork(self) -> None:
        """Release the parent's engines and threads in a forked child, which opens its own."""
        self._lock, self._blame_lock = threading.Lock(), threading.Lock()
        self._threads, self._with_packages = None, {}
        self.engines.reset_after_fork()


def _check_engine(engines: EnginePair) -> None:
    """Raise InfrastructureFailed if an engine does not run harmless code."""
    outcome = run_job(_HARMLESS, engines)
    if not outcome.ok:
        raise InfrastructureFailed(f"a new engine does not run harmless code: {outcome.message}")


def _milliseconds_since(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 3)


_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()


def _reset_after_fork() -> None:
    for pool in list(_pools):
        pool.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
