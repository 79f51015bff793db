#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "order",
    """
from versions.select import *
right = ["0.9.9", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.2.x", "1.0.0-alpha.10", "1.0.0-alpha.beta", "1.0.0-beta-2", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "10.0.0"]
show(ordered(reversed(right)) == right); show(ordered(right[::3] + right[1::3] + right[2::3]) == right)
show(ordered(["1.0.0+b", "1.0.0-rc+c", "1.0.0+a", "1.0.0-rc+a"]))
""",
    True,
    True,
    ["1.0.0-rc+c", "1.0.0-rc+a", "1.0.0+b", "1.0.0+a"],
)
expect(
    "newest",
    """
from versions.select import *
show([newest(["1.0.0-rc.1"]), newest(["1.0.0-rc.1"], True), newest(["1.9.0", "2.0.0-a", "1.10.0"]), newest(["1.9.0", "2.0.0-a"], pre_releases=True), newest(["1.0.0", "1.1.0+x-y"]), newest([], True)])
from versions.parse import parse
show([outcome(parse, t) for t in ("1.0", "1.0.x", "", "1.0.0.0")])
""",
    [None, "1.0.0-rc.1", "1.10.0", "2.0.0-a", "1.1.0+x-y", None],
    ["ValueError"] * 4,
)
