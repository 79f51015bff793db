#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "Recent",
    """
from caching.recent import Recent
c = Recent(2)
c.put("a", 0); c.put("b", None)
show([c.get("a", 5), c.get("b", 5), c.get("x", 5)])
c.put("a", 1); c.put("a", 2)
show([len(c), "b" in c, c.get("b", 7)])
c.put("c", 3)
show(["a" in c, "b" in c, "c" in c])
"b" in c
c.put("d", 4)
show(["b" in c, "c" in c, len(c)])
d = Recent(2); d.put(1, 1); d.put(2, 2); d.put(1, 3); d.put(3, 3)
show([1 in d, 2 in d, d.get(1)])
e = Recent(2); e.put(1, 1); e.put(2, 2); e.get(9); e.put(3, 3); show([1 in e, 2 in e])
""",
    [0, None, 5],
    [2, True, None],
    [False, True, True],
    [False, True, 2],
    [True, False, 3],
    [False, True],
)
expect(
    "remember",
    """
from caching.memo import remember
calls = []
@remember(3)
def f(*args, **kwargs):
    calls.append((args, kwargs))
    return args[0] if args else kwargs.get("a")
show([f(None), f(None), f(0), f(0), len(calls)])
show([f(a=1, b=2), f(b=2, a=1), f(a=1, b=3), f(a=2, b=1), len(calls)])
@remember(1)
def g(n): return n
show([g(1), g(2)]); show(f(("a", 1))); show(f(a=1))
""",
    [None, None, 0, 0, 2],
    [1, 1, 1, 2, 5],
    [1, 2],
    ["a", 1],
    1,
)
