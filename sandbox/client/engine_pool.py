"""Engines that are kept warm and leased to one job at a time."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sandbox.client.options import TIERS, PoolOptions
from sandbox.client.self_test import SelfTest, run_self_test
from sandbox.connections.engine_connection import EngineConnection
from sandbox.connections.engine_pair import EnginePair
from sandbox.connections.transports import Transport
from sandbox.errors import EngineFailed, SandboxUnavailable

_IDLE_CHECK_S = 30.0  # an engine that was idle for longer is checked before it gets a job


class EnginePool:
    """The engines of a pool: opened when needed, checked, replaced, closed.

    self_test  the self-test of the first engine
    tier       the isolation tier that it reached; "" before `open_first`
    idle       engines without a job, and since when
    leased     engines with a job
    """

    def __init__(self, options: PoolOptions, transport: type[Transport]) -> None:
        self.options = options
        self.transport = transport
        self.tier = ""
        self.self_test: SelfTest
        self.idle: list[tuple[EnginePair, float]] = []
        self.leased: set[EnginePair] = set()
        self._slots = threading.Semaphore(options.size)
        self._lock = threading.Lock()
        self._closed = False

    def open_first(self) -> None:
        """Open the first engine and test its isolation. Raises SandboxUnavailable."""
        pair = self._open_pair()
        try:
            self._check_packages(pair.candidate)
            self._check_isolation(pair.candidate)
        except EngineFailed as error:
            pair.close()
            raise SandboxUnavailable(f"The sandbox engine did not pass its self-test: {error}") from error
        except BaseException:
            pair.close()
            raise
        self.idle.append((pair, time.monotonic()))

    def _check_packages(self, engine: EngineConnection) -> None:
        absent = sorted(set(self.options.required) - engine.available_packages)
        if absent:
            raise SandboxUnavailable(
                f"The environment needs {', '.join(absent)}, not installed for the {self.transport.backend} sandbox: "
                f"{self.transport.install_hint}."
            )

    def _check_isolation(self, engine: EngineConnection) -> None:
        options, backend = self.options, self.transport.backend
        key = (
            backend,
            options.strongest,
            options.landlock_abi,
            options.packages,
            options.required,
            options.transport,
        )
        tested = _self_tests.get(key)
        if tested is None or tested.claimed != engine.tier:
            tested = _self_tests[key] = run_self_test(engine)
        self.self_test, self.tier = tested, tested.tier
        if self.tier not in options.accept:
            raise SandboxUnavailable(_explain_refusal(backend, tested, options.accept))

    @contextmanager
    def lease(self, *, cgroups: bool = False, fresh: bool = False) -> Iterator[EnginePair]:
        """Wait for a free slot and lease an engine. If the block raises, the engine is closed.

        cgroups  the engine may use control groups, which a job with child processes needs. An engine that offers
                 packages always may. Any other engine may only if it is leased with this option, because an engine that
                 is killed leaves its control groups behind
        fresh    start an engine for this lease

        Raises EngineFailed or SandboxUnavailable if no engine can be opened.
        """
        with self._slots:
            pair = self._take(cgroups or self.options.offers_packages, fresh)
            reusable = False
            try:
                yield pair
                reusable = True
            finally:
                self._release(pair, reusable)

    def _take(self, cgroups: bool, fresh: bool) -> EnginePair:
        """Return the idle engine that was used last, whose memory pages are still warm, or a new one."""
        while True:
            with self._lock:
                if self._closed:
                    raise EngineFailed("The pool is closed.")
                fitting = [] if fresh else [entry for entry in self.idle if entry[0].cgroups == cgroups]
                pair, since = fitting[-1] if fitting else (None, 0.0)
                if pair is not None:
                    self.idle.remove((pair, since))
                    self.leased.add(pair)
            if pair is None:
                pair = self._open_pair(cgroups)
                with self._lock:
                    # If the pool was closed while the engine was opened, `close` did not disconnect it.
                    closed = self._closed
                    if not closed:
                        self.leased.add(pair)
                if closed:
                    pair.close()
                    raise EngineFailed("The pool is closed.")
                return pair
            if time.monotonic() - since < _IDLE_CHECK_S or all(engine.is_responsive() for engine in pair.engines):
                return pair
            self._release(pair, reusable=False)

    def _release(self, pair: EnginePair, reusable: bool) -> None:
        reusable = reusable and all(_is_reusable(engine) for engine in pair.engines)
        with self._lock:
            self.leased.discard(pair)
            reusable = reusable and not self._closed
            if reusable:
                self.idle.append((pair, time.monotonic()))
        if not reusable:
            pair.close()

    def _open_pair(self, cgroups: bool = False) -> EnginePair:
        cgroups = cgroups or self.options.offers_packages
        return EnginePair(
            self._open_engine(cgroups), lambda candidate: self._open_engine(candidate_engine=candidate), cgroups
        )

    def _open_engine(self, cgroups: bool = False, candidate_engine: EngineConnection | None = None) -> EngineConnection:
        options = self.options
        if candidate_engine is None:
            transport = self.transport(options.transport)
        else:
            transport = candidate_engine.transport.create_test_judge_transport()
        installed = (transport.packages_folder,) if options.required else ()
        engine = EngineConnection(
            transport,
            strongest=options.strongest,
            landlock_abi=options.landlock_abi,
            packages=(*options.packages, *installed),
            cgroups=cgroups,
            candidate_engine=candidate_engine,
        )
        engine.open()
        if self.tier:
            if engine.tier > self.self_test.claimed:
                engine.close()
                raise SandboxUnavailable(f"A new engine reaches only tier {engine.tier}, the first one {self.tier}.")
            engine.tier = self.tier
        return engine

    def close(self) -> None:
        """Close idle engines and disconnect leased ones, whose jobs then fail. May be called twice."""
        with self._lock:
            self._closed = True
            idle, self.idle = [pair for pair, _ in self.idle], []
            leased = list(self.leased)
        for pair in idle:
            pair.close()
        for pair in leased:
            pair.abort()  # the thread that leased it closes it

    def reset_after_fork(self) -> None:
        """Release the parent's engines in a forked child, which opens its own."""
        for pair in [*(pair for pair, _ in self.idle), *self.leased]:
            pair.detach_after_fork()
        self.idle, self.leased = [], set()
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(self.options.size)


_self_tests: dict[tuple[object, ...], SelfTest] = {}  # by options; the result stays the same within a process


def _is_reusable(engine: EngineConnection) -> bool:
    return not engine.busy and not engine.suspect and engine.runs < engine.transport.max_runs


def _explain_refusal(backend: str, tested: SelfTest, accept: frozenset[str]) -> str:
    """Return the message for a tier that the configuration does not accept, with ways to change that."""
    reason = f" ({tested.explain()})" if tested.explain() else ""
    use_docker = "" if backend == "docker" else "Use the Docker backend (`sandbox: {backend: docker}`). "
    return (
        f"The {backend} sandbox reaches isolation tier {tested.tier} here: {TIERS[tested.tier]}{reason}. "
        f"The configuration accepts {' and '.join(sorted(accept))}. {use_docker}If the code is harmless, "
        f"accept the tier by name: `sandbox: {{accept: [{', '.join(sorted(accept | {tested.tier}))}]}}`. "
        "`manage.py sandbox_check` shows the details."
    )
