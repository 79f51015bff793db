"""The driver of a box, outside of one."""

import subprocess
import sys

STOPPED = """
import os, signal
from sandbox.workspaces.inside.files import RequestRefused
from sandbox.workspaces.inside.processes import as_user

try:
    as_user(True, lambda: os.kill(os.getpid(), signal.SIGSTOP) or {}, seconds=1)
except RequestRefused as refusal:
    print(refusal)
"""


def test_file_operation_that_the_agent_stops_is_ended_after_its_time() -> None:
    ended = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, timeout=20, check=True)
    assert ended.stdout == "the operation took too long or used too much memory\n"
