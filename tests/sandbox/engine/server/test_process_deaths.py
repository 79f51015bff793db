"""Processes that die: an engine during a run, the process that owns the pool, a forked child of it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from sandbox.verdicts.results import Status
from tests.sandbox.conformance.bench import SETUPS, Bench, bench
from tests.sandbox.conformance.case import ADD_TESTS, function_job
from tests.sandbox.conformance.host import processes_named
from tests.sandbox.conformance.resources import MARK
from tests.sandbox.processes import SLEEPER, kill_engines

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux",
    reason="Finding and killing engines of other users takes root on Linux.",
)
CORRECT = function_job("def add(a, b): return a + b\n", ADD_TESTS["judged"])


@pytest.fixture(scope="module", params=[s for s in SETUPS if s.tier != "C"], ids=lambda setup: setup.name)
def engines(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with bench(request.param) as opened:
        yield opened


def test_job_is_retried_after_engine_is_killed(engines: Bench) -> None:
    killer = threading.Thread(target=kill_engines, args=(1,))
    killer.start()
    outcome = engines.pool.run(SLEEPER)
    killer.join()
    assert (outcome.status, outcome.stdout) == (Status.COMPLETED, "slept\n")
    assert engines.pool.run(CORRECT).status is Status.PASSED


def test_job_passes_after_two_engines_are_killed(engines: Bench) -> None:
    killer = threading.Thread(target=kill_engines, args=(2,))
    killer.start()
    outcome = engines.pool.run(SLEEPER)
    killer.join()
    assert (outcome.status, outcome.stdout) == (Status.COMPLETED, "slept\n")
    assert engines.host.processes_left(MARK) == []
    assert engines.pool.run(CORRECT).status is Status.PASSED


OWNER = """
import os, sys
from sandbox.verdicts.jobs import ProgramJob
from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.connections.transports import TransportOptions
from tests.sandbox.processes import SLEEPER
backend, tier, image, path = sys.argv[1:]
transport = TransportOptions(image=image or None, socket=path)
pool = Pool.open(PoolOptions(backend=backend, strongest=tier, workers=1, transport=transport))
while True:
    pool.run(SLEEPER)
"""


def test_killed_owner_leaves_no_process(engines: Bench) -> None:
    options = engines.pool.options
    arguments = [options.backend, engines.setup.tier, options.transport.image or "", options.transport.socket]
    owner = subprocess.Popen([sys.executable, "-c", OWNER, *arguments])
    while not processes_named(MARK):
        assert owner.poll() is None, "The owner ended by itself."
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert engines.host.processes_left(MARK) == []


def test_end_of_forked_child_keeps_engines_of_parent(engines: Bench) -> None:
    assert engines.pool.run(CORRECT).status is Status.PASSED
    before = [pair.candidate for pair, _ in engines.pool.engines.idle]
    child = os.fork()
    if child == 0:
        outcome = engines.pool.run(CORRECT)
        os.write(2, b"" if outcome.status is Status.PASSED else repr(outcome).encode())
        os._exit(0 if outcome.status is Status.PASSED else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "The child could not run a job of its own."
    assert engines.pool.run(CORRECT).status is Status.PASSED
    assert [pair.candidate for pair, _ in engines.pool.engines.idle] == before
