#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "Window",
    """
from limits.window import Window
w = Window(2, 10)
show([w.allow(t) for t in (0, 3, 9.9, 10, 12.9, 13, 19.9, 20)])
v = Window(2, 10)
show([v.wait(0), v.allow(0), v.wait(1), v.allow(4), v.wait(5), v.wait(9.5), v.wait(10)])
show([v.allow(10), v.wait(11), v.wait(14)])
""",
    [True, True, False, True, False, True, False, True],
    [0.0, True, 0.0, True, 5, 0.5, 0.0],
    [True, 3, 0.0],
)
expect(
    "Clients",
    """
from limits.clients import Clients
c = Clients(2, 10, {"vip": 3, "blocked": 0})
show([c.allow(n, t) for n, t in (("a", 0), ("vip", 0), ("vip", 1), ("a", 1), ("a", 2), ("vip", 2), ("vip", 3), ("blocked", 0), ("all", 2), ("a", 10))])
""",
    [True, True, True, True, False, True, False, False, True, True],
)
