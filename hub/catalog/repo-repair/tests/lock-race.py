#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "processes",
    """
import subprocess, tempfile
path = tempfile.mkdtemp() + "/n"
code = "import sys; from store.counter import increase; [increase(sys.argv[1]) for _ in range(8)]"
codes = [p.wait() for p in [subprocess.Popen([sys.executable, "-B", "-c", code, path]) for _ in range(5)]]
show(codes); show(open(path).read()); show(os.path.exists(path + ".lock"))
""",
    [0, 0, 0, 0, 0],
    "40",
    False,
)
expect(
    "lock",
    """
import tempfile
from store.lock import Lock
path = tempfile.mkdtemp() + "/l"
def nested():
    with Lock(path, timeout=0.1):
        pass
with Lock(path):
    show(outcome(nested)); show(os.path.exists(path)); show(outcome(nested))
show(os.path.exists(path)); show(outcome(nested))
def failing():
    with Lock(path):
        raise KeyError
show(outcome(failing)); show(outcome(nested))
""",
    "TimeoutError",
    True,
    "TimeoutError",
    False,
    None,
    "KeyError",
    None,
)
