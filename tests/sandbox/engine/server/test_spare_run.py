"""The spare run: started by an engine in advance, so that a job does not wait for a fork."""

import os
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.limits import Limits
from sandbox.verdicts.jobs import ProgramJob
from sandbox.verdicts.results import Status
from tests.processes import child_processes
from tests.sandbox.conformance.case import program_job

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Looking for a process's children reads /proc.")
PATIENCE_S = 20.0
HELLO = program_job("print('hello')")
ON_MORE_DISK = program_job("print('hello')", Limits(cpu_s=1, wall_s=2, file_mb=4))


@pytest.fixture(params=["A", "B"])
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    with Pool.open(PoolOptions(strongest=request.param, accept=frozenset("ABC"), backend="local", workers=1)) as opened:
        yield opened


def spare(pool: Pool) -> int:
    """The process that waits for the next job, as soon as it is the only run of the pool's only engine."""
    ((pair, _),) = pool.engines.idle
    (zygote,) = child_processes(pair.candidate.transport.pid)  # type: ignore[attr-defined]
    deadline = time.monotonic() + PATIENCE_S
    while len(waiting := child_processes(zygote)) != 1:
        assert time.monotonic() < deadline, f"The zygote has the runs {waiting}."
    return waiting[0]


def run(pool: Pool, job: ProgramJob) -> None:
    assert pool.run(job).stdout == "hello\n"


def test_job_uses_spare_run_and_a_new_one_is_forked(pool: Pool) -> None:
    run(pool, HELLO)
    run(pool, HELLO)
    first = spare(pool)
    run(pool, HELLO)
    assert spare(pool) != first


def test_job_with_larger_disk_replaces_spare_run_the_second_time(pool: Pool) -> None:
    run(pool, HELLO)
    run(pool, HELLO)
    first = spare(pool)
    run(pool, ON_MORE_DISK)
    assert spare(pool) == first
    run(pool, ON_MORE_DISK)
    assert spare(pool) != first


def test_spare_run_gets_limits_of_its_job(pool: Pool) -> None:
    run(pool, HELLO)
    run(pool, HELLO)
    grows = "x = bytearray(200 << 20)\nprint('hello')"
    assert pool.run(program_job(grows, Limits(memory_mb=128))).status is Status.MEMORY_LIMIT
    run(pool, program_job(grows, Limits(memory_mb=512)))


@pytest.mark.skipif(os.geteuid() != 0, reason="Killing another user's process takes root.")
def test_job_passes_after_spare_run_died(pool: Pool) -> None:
    run(pool, HELLO)
    run(pool, HELLO)
    os.kill(spare(pool), signal.SIGKILL)
    run(pool, HELLO)
    run(pool, HELLO)
    assert spare(pool)
