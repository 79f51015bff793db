"""Tests that light jobs end before heavy ones. They compare the order, not times, which depend on the machine."""

import time
from concurrent.futures import ThreadPoolExecutor

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.limits import Limits
from sandbox.verdicts.jobs import ProgramJob
from tests.sandbox.conformance.case import ADD_TESTS, function_job

LIGHT = [function_job("def add(a, b): return a + b\n", tests) for tests in ADD_TESTS.values()]
LONG = Limits(cpu_s=290, wall_s=300)
HEAVY = [
    ProgramJob("while True: pass", limits=LONG),
    ProgramJob("x = bytearray(b'x') * (200 << 20)\nwhile True: sum(x[::4096])", limits=LONG),
    ProgramJob(
        "import threading\ndef f():\n    while True: pass\nfor _ in range(20): threading.Thread(target=f).start()",
        limits=LONG,
    ),
]


def test_light_jobs_end_before_heavy_jobs_started_earlier() -> None:
    options = PoolOptions(backend="local", accept=frozenset("ABC"), workers=len(HEAVY) + 1)
    with Pool.open(options) as pool, ThreadPoolExecutor(len(HEAVY)) as threads:
        heavy = [threads.submit(pool.run, job) for job in HEAVY]
        while len(pool.engines.leased) < len(HEAVY):
            assert not any(run.done() for run in heavy)
            time.sleep(0.01)
        for job in LIGHT * 4:
            assert pool.run(job).ok
        assert not any(run.done() for run in heavy)
        pool.close()
