"""What a zygote does before its first fork: nothing that a run could notice, and a heap without gaps."""

import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest

from sandbox.connections.transports.local import ENGINE, interpreter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="How a heap is laid out is known of glibc's.")

# Run by a bare interpreter, as an engine is.
_PROGRAM = """
import json, os, random, resource, sys
settle = "settle" in sys.argv
sys.path.insert(0, sys.argv[1])
from engine.isolation import lockdown
from engine.zygote import warm_up
del sys.path[0]

def state():
    limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")]
    return [limits, os.getcwd(), os.getsid(0), sorted(os.listdir("/proc/self/fd")), len(sys.meta_path)]

warm_up.load()
before = state()
base = lockdown.Base(["/usr"], namespaces=True)
warm_up.walk_through(base)
noticed = [a for a, b in zip(state(), before) if a != b]
left = [name for name in ("solution", "tests") if name in sys.modules]
number = random.random()

def faults():
    # Page faults of a fork that runs a job
    pid = os.fork()
    if pid == 0:
        warm_up._candidate()
        os._exit(0)
    return os.wait4(pid, 0)[2].ru_minflt

if settle:
    warm_up.settle()
print(json.dumps({"noticed": noticed, "left": left, "random": number, "faults": min(faults() for _ in range(3))}))
"""


def rehearsed(*arguments: str) -> dict[str, Any]:
    command = [interpreter(), "-I", "-S", "-c", _PROGRAM, os.fspath(ENGINE.parent), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_walking_through_a_run_changes_nothing_that_a_run_could_notice() -> None:
    found = rehearsed()
    assert found["noticed"] == []
    assert found["left"] == []
    assert found["random"] == random.Random(0).random()


def test_a_fork_touches_fewer_pages_once_the_heap_is_settled() -> None:
    assert rehearsed("settle")["faults"] < 0.95 * rehearsed()["faults"]
