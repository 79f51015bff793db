"""Functions that find and end processes of a sandbox, also in containers. They need root and a shared kernel."""

import os
import signal
from pathlib import Path

from tests.sandbox.conformance.case import program_job
from tests.sandbox.conformance.host import processes_named
from tests.sandbox.conformance.resources import MARK, RENAME

SLEEPER = program_job(RENAME + "time.sleep(1)\nprint('slept')\n")
"""A program that gives its process the name MARK and sleeps for a second."""


def engine_above(pid: int) -> int:
    """The engine's own process among the ancestors of a run: the outermost that executes the engine's program.

    0 where the run has ended in the meantime.
    """
    found = 0
    while pid > 1:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"\0-I\0" in command and b"/engine\0" in command:  # not `pytest tests/sandbox/engine`
                found = pid
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return found


def kill_engines(times: int) -> None:
    """Wait for a run to show itself and kill its engine, so many times."""
    seen: set[int] = set()
    while len(seen) < times:
        for pid in set(processes_named(MARK)) - seen:
            engine = engine_above(pid)
            if engine:
                seen.add(pid)
                os.kill(engine, signal.SIGKILL)
