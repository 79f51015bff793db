#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "delays",
    "from net.policy import *\nfor n, f, l in ((1, 1.0, 30.0), (4, 1.0, 30.0), (8, 1.0, 30.0), (3, 50.0, 30.0), (4, 0.5, 1.5)): show(delays(n, f, l))",
    [],
    [1.0, 2.0, 4.0],
    [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0],
    [30.0, 30.0],
    [0.5, 1.0, 1.5],
)
expect(
    "retries",
    """
from net.retry import *
def run(faults, attempts, first=1.0):
    waits, left = [], list(faults)
    def function():
        if left:
            raise left.pop(0)
        return "done"
    try:
        found = call_with_retries(function, attempts, waits.append, first)
    except BaseException as error:
        found = type(error).__name__ + str(error)
    return [found, waits, len(left)]
T = Temporary
show(run([], 1)); show(run([T()], 1)); show(run([T("a"), T("b")], 2)); show(run([T(), T()], 3))
show(run([T(after=7), T(after=1)], 5)); show(run([T(after=100)], 5)); show(run([T(), ValueError("x")], 5))
show(run([KeyboardInterrupt()], 5)); show(run([T(), T(), T()], 4, 0.25)); show(run([T(after=0)], 2))
show(call_with_retries(lambda: None, 3, None))
""",
    ["done", [], 0],
    ["Temporary", [], 0],
    ["Temporaryb", [1.0], 0],
    ["done", [1.0, 2.0], 0],
    ["done", [7, 2.0], 0],
    ["done", [100], 0],
    ["ValueErrorx", [1.0], 0],
    ["KeyboardInterrupt", [], 0],
    ["done", [0.25, 0.5, 1.0], 0],
    ["done", [1.0], 0],
    None,
)
