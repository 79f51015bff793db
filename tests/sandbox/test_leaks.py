"""Many runs leave nothing behind: no process, descriptor, mount, container, control group or file, and no growth.

LLMEVAL_LEAK_RUNS sets the number of runs on each backend; `benchmarks/sandbox.py endurance` makes ten thousand.
"""

import os
import sys

import pytest

from tests.sandbox.conformance.bench import SETUPS, Setup
from tests.sandbox.leaks import endure

pytestmark = pytest.mark.alone

RUNS = int(os.environ.get("LLMEVAL_LEAK_RUNS", "400"))


@pytest.mark.skipif(sys.platform != "linux", reason="Counting what is left reads /proc.")
@pytest.mark.parametrize(
    "setup", [s for s in SETUPS if s.tier != "C" and s.landlock_abi is None], ids=lambda setup: setup.name
)
def test_many_runs_leave_nothing_behind(setup: Setup) -> None:
    assert endure(setup, RUNS).complaints() == []
