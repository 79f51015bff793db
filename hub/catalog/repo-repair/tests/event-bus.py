#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "ends",
    """
from bus.core import Bus
b, seen = Bus(), []
f = lambda v: seen.append(v)
first = b.subscribe("a", f); second = b.subscribe("a", f); b.subscribe("a", lambda v: seen.append("z"))
b.send("a", 1); show(seen)
second(); second(); second(); seen.clear(); show(b.send("a", 2)); show(seen)
first(); first(); seen.clear(); show(b.send("a", 3)); show(seen); show(b.send("none", 0))
""",
    [1, 1, "z"],
    2,
    [2, "z"],
    1,
    ["z"],
    0,
)
expect(
    "during events",
    """
from bus.core import Bus
b, seen = Bus(), []
def adding(v):
    b.subscribe("a", lambda v: seen.append("new"), once=True)
b.subscribe("a", adding, once=True)
ends = {}
b.subscribe("a", lambda v: (seen.append("x"), ends["y"]()))
ends["y"] = b.subscribe("a", lambda v: seen.append("y"))
b.subscribe("a", lambda v: seen.append("w"))
show(b.send("a", 0)); show(seen); seen.clear(); show(b.send("a", 0)); show(seen)
c, log = Bus(), []
c.subscribe("a", lambda v: (log.append(v), v < 3 and c.send("a", v + 1)), once=True)
show(c.send("a", 0)); show(log); show(c.send("a", 0))
o, got = Bus(), []
end = o.subscribe("a", got.append, once=True); o.subscribe("a", got.append); o.send("a", 5); end(); o.send("a", 6); show(got)
""",
    3,
    ["x", "w"],
    3,
    ["x", "w", "new"],
    1,
    [0],
    0,
    [5, 5, 6],
)
expect(
    "errors",
    """
from bus.core import Bus
from bus.log import record
b, seen = Bus(), []
b.subscribe("a", lambda v: {}["first"], once=True); b.subscribe("a", lambda v: 1 / 0); b.subscribe("a", lambda v: seen.append(v))
show(outcome(b.send, "a", 1)); show(seen); show(outcome(b.send, "a", 2)); show(seen)
c = Bus(); log = record(c, ["x", "y", "z"]); c.send("y", 1); c.send("x", 2); show(log)
""",
    "KeyError",
    [1],
    "ZeroDivisionError",
    [1, 2],
    [["y", 1], ["x", 2]],
)
