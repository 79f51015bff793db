"""The pool: many threads and event loops, replacement of engines, closing, rejection of weak isolation."""

import asyncio
import os
import signal
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from sandbox.client import self_test
from sandbox.client.options import PoolOptions
from sandbox.client.pool import EngineLost, Pool
from sandbox.client.shared_pools import close_shared_pools, get_shared_pool
from sandbox.connections.engine_connection import EngineConnection
from sandbox.connections.transports.local import LocalTransport
from sandbox.errors import EngineFailed, SandboxUnavailable
from sandbox.limits import Limits
from sandbox.verdicts.jobs import FunctionJob, Job, ProgramJob
from sandbox.verdicts.results import Outcome, Status

GOOD = FunctionJob("def f(x): return x + 1", "f", ["assert f(1) == 2"])
LOCAL = PoolOptions(backend="local", accept=frozenset("ABC"), workers=2)


def pids(pool: Pool) -> list[int]:
    transports = [pair.candidate.transport for pair, _ in pool.engines.idle]
    return [transport.pid for transport in transports if isinstance(transport, LocalTransport)]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_many_threads_share_few_engines() -> None:
    with Pool.open(LOCAL) as pool, ThreadPoolExecutor(8) as threads:
        jobs = [FunctionJob(f"def f(x): return {n}", "f", [f"assert f(0) == {n}"]) for n in range(60)]
        assert {outcome.status for outcome in threads.map(pool.run, jobs)} == {Status.PASSED}
        assert len(pool.engines.idle) <= 2


def test_closing_the_pool_ends_a_running_job_with_infra_error() -> None:
    with Pool.open(LOCAL) as pool, ThreadPoolExecutor(1) as threads:
        heavy = threads.submit(pool.run, ProgramJob("while True: pass", limits=Limits(cpu_s=600)))
        assert pool.run(GOOD).ok
        assert not heavy.done()
        while not pool.engines.leased:
            pass
        pool.close()
        assert heavy.result().status is Status.INFRA_ERROR


def test_engine_that_opens_while_the_pool_is_closed_runs_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, closed = threading.Event(), threading.Event()
    open_engine = EngineConnection.open

    def open_slowly(engine: EngineConnection) -> None:
        open_engine(engine)
        opened.set()
        closed.wait(30)

    options = PoolOptions(backend="local", accept=frozenset("ABC"), workers=1)
    with Pool.open(options) as pool, ThreadPoolExecutor(1) as thread:
        monkeypatch.setattr(EngineConnection, "open", open_slowly)
        # A job with child processes needs another engine than the one that is idle.
        run = thread.submit(pool.run, ProgramJob("while True: pass", limits=Limits(cpu_s=40, wall_s=40, processes=1)))
        assert opened.wait(30)
        pool.close()
        closed.set()
        assert run.result(20).status is Status.INFRA_ERROR


def test_arun_works_in_consecutive_event_loops() -> None:
    async def both(pool: Pool) -> list[Status]:
        return [outcome.status for outcome in await asyncio.gather(pool.arun(GOOD), pool.arun(GOOD))]

    with Pool.open(LOCAL) as pool:
        for _ in range(3):
            assert asyncio.run(both(pool)) == [Status.PASSED, Status.PASSED]


def test_closed_pool_has_no_engine_and_returns_infra_error() -> None:
    pool = Pool.open(LOCAL)
    assert pool.run(GOOD).ok
    (engine,) = pids(pool)
    pool.close()
    pool.close()
    assert not is_alive(engine)
    outcome = pool.run(GOOD)
    assert outcome.status is Status.INFRA_ERROR
    assert "closed" in outcome.message


def test_idle_engine_that_died_is_replaced() -> None:
    with Pool.open(LOCAL) as pool:
        (engine,) = pids(pool)
        os.kill(engine, signal.SIGKILL)
        assert pool.run(GOOD).ok
        assert pids(pool) != [engine]


def test_engine_is_replaced_after_tampering_and_kept_otherwise() -> None:
    with Pool.open(LOCAL) as pool:
        (engine,) = pids(pool)
        assert not pool.run(FunctionJob("def f(x): return 5", "f", ["assert f(1) == 2"])).ok
        assert pids(pool) == [engine]
        tamperer = FunctionJob(
            "import os\nos.write(3, b'\\0\\0\\0\\1V1' * 9)\ndef f(x): return 2", "f", ["assert f(1) == 2"]
        )
        assert pool.run(tamperer).status is Status.TAMPERED
        assert pids(pool) == []
        assert pool.run(GOOD).ok


def test_engine_is_replaced_after_enough_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalTransport, "max_runs", 3)
    with Pool.open(LOCAL) as pool:
        seen = set()
        for _ in range(7):
            assert pool.run(GOOD).ok
            seen.update(pids(pool))
        assert len(seen) == 3  # the self-test was the first run of the first engine


class Dying(LocalTransport):
    """Loses its engine the first `deaths` times that it gets a job of the role `of`."""

    deaths: ClassVar[int] = 0
    of: ClassVar[bytes] = b"candidate"

    def write(self, data: bytes) -> None:
        if b'"role":"%b"' % Dying.of in data and Dying.deaths:
            Dying.deaths -= 1
            raise EngineFailed("The engine stopped reading.")
        super().write(data)


def run_dying(deaths: int, of: bytes = b"candidate") -> Outcome:
    with Pool.open(LOCAL) as pool:
        pool.engines.transport = Dying
        for pair, _ in pool.engines.idle:
            pair.close()
        pool.engines.idle.clear()
        Dying.deaths, Dying.of = deaths, of
        try:
            return pool.run(GOOD)
        finally:
            Dying.deaths = 0


@pytest.mark.parametrize("deaths", [1, 2, 3])
def test_job_is_retried_when_its_engine_fails(deaths: int) -> None:
    assert run_dying(deaths).status is Status.PASSED


def test_job_that_loses_every_engine_is_tampered() -> None:
    outcome = run_dying(4)
    assert outcome.status is Status.TAMPERED
    assert outcome.conclusive
    assert "all 4 sandbox engines" in outcome.message


@pytest.mark.parametrize("deaths", [1, 1000])
def test_job_is_infra_error_if_engines_lose_harmless_code_too(deaths: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Pool._attempt

    def attempt(self: Pool, job: Job, fresh: bool = False) -> Outcome:
        """The first two attempts lose their engine; after that engines lose harmless code."""
        if not fresh:
            raise EngineLost("It ended.")
        return run(self, job, fresh)

    monkeypatch.setattr(Pool, "_attempt", attempt)
    outcome = run_dying(deaths, b"program")
    assert outcome.status is Status.INFRA_ERROR
    assert not outcome.conclusive


@pytest.mark.parametrize("code", ["def f(x): return x + 1", "import time\ntime.sleep(1)\ndef f(x): return x + 1"])
def test_right_answer_whose_test_judge_does_not_start_is_infra_error(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = EngineConnection.start

    def start_malformed(self: EngineConnection, job: Mapping[str, object], *args: Any, **options: Any) -> int:
        return start(self, {**job, "files": ["a"]} if job["role"] == "test_judge" else job, *args, **options)

    monkeypatch.setattr(EngineConnection, "start", start_malformed)
    tests = "def check(candidate):\n    for n in (1, 2):\n        assert candidate(n) == n + 1\n"
    with Pool.open(LOCAL) as pool:
        assert pool.run(FunctionJob(code, "f", tests)).status is Status.INFRA_ERROR


KILLER = """
import os, signal
def f(x):
    os.kill(os.getppid(), signal.SIGKILL)
    return 2
"""


def test_code_that_kills_its_engine_is_tampered() -> None:
    options = PoolOptions(backend="local", strongest="C", accept=frozenset("C"), workers=1)
    with Pool.open(options) as pool:
        outcome = pool.run(FunctionJob(KILLER, "f", ["assert f(1) == 2"]))
        assert outcome.status is Status.TAMPERED, outcome
        assert pool.run(GOOD).ok


def test_job_passes_after_its_engine_is_killed_from_outside() -> None:
    slow = FunctionJob("import time\ndef f(x):\n    time.sleep(1)\n    return x + 1", "f", ["assert f(1) == 2"])
    with Pool.open(LOCAL) as pool, ThreadPoolExecutor(1) as threads:
        (engine,) = pids(pool)
        running = threads.submit(pool.run, slow)
        while not pool.engines.leased:
            pass
        os.kill(engine, signal.SIGKILL)
        assert running.result().status is Status.PASSED


def test_shared_pool_is_reused_until_closed() -> None:
    first = get_shared_pool(LOCAL)
    assert get_shared_pool(LOCAL) is first
    close_shared_pools()
    again = get_shared_pool(LOCAL)
    assert again is not first
    assert again.run(GOOD).ok
    close_shared_pools()


def test_weak_tier_is_rejected_with_reason_and_remedy() -> None:
    with pytest.raises(SandboxUnavailable) as refusal:
        Pool.open(PoolOptions(backend="local", strongest="C"))
    for part in ("tier C", "accepts A and B", "{backend: docker}", "accept: [A, B, C]", "sandbox_check"):
        assert part in str(refusal.value)


def test_accepted_weak_tier_runs_and_is_recorded() -> None:
    with Pool.open(PoolOptions(backend="local", strongest="C", accept=frozenset("C"))) as pool:
        outcome = pool.run(GOOD)
    assert (outcome.status, outcome.tier) == (Status.PASSED, "C")


def test_successful_attack_lowers_the_tier() -> None:
    breach = self_test.Attack("open a TCP socket", denied=False, detail="succeeded")
    glimpse = self_test.Attack("see that a host file exists", denied=False, detail="succeeded")
    assert self_test.SelfTest("A", {}, [breach]).tier == "C"
    assert self_test.SelfTest("A", {}, [glimpse]).tier == "B"
    assert self_test.SelfTest("B", {"namespaces": "no"}, [glimpse]).tier == "B"
    assert self_test.SelfTest("A", {}, []).tier == "A"
    assert "open a TCP socket" in self_test.SelfTest("A", {}, [breach]).explain()


@pytest.mark.parametrize("tier", "AB")
def test_required_attacks_are_denied(tier: str) -> None:
    try:
        pool = Pool.open(PoolOptions(backend="local", strongest=tier, accept=frozenset(tier)))
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    with pool:
        assert pool.self_test.find_breaches(tier) == []
        assert len(pool.self_test.attacks) > 25


def test_invalid_pool_options_raise_value_error() -> None:
    for options in ({"accept": frozenset("AX")}, {"accept": frozenset()}, {"workers": 0}, {"backend": "cloud"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            PoolOptions(**options)  # type: ignore[arg-type]
