"""State of the zygote before its first fork."""

import os
import random
import subprocess

from sandbox.client.pool import Pool
from sandbox.connections.transports.local import ENGINE, interpreter
from tests.sandbox.conformance.case import program_job

# Run by a bare interpreter, as an engine is.
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from engine.zygote import preload
preload.load()
print("numpy" in sys.modules, "random" in sys.modules, "solution" in sys.modules)
"""


def test_preload_imports_common_modules_only() -> None:
    command = [interpreter(), "-I", "-S", "-c", _PROGRAM, os.fspath(ENGINE.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


def test_every_run_draws_the_same_random_numbers(pool: Pool) -> None:
    expected = f"{random.Random(0).random()}\n"
    program = program_job("import random\nprint(random.random())")
    assert [pool.run(program).stdout for _ in range(3)] == [expected] * 3
