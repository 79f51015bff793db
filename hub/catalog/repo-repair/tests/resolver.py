#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "order",
    "from packs.resolver import *\nshow(install_order(['x', 'a', 'x'], {'a': ['x', 'b'], 'b': ['x']}))\nshow(install_order([], {}))\nshow(install_order(['a', 'b'], {'b': ['c', 'a']}))",
    ["x", "b", "a"],
    [],
    ["a", "c", "b"],
)
expect(
    "cycles",
    "from packs.resolver import *\nfor n in ({'a': ['a']}, {'a': ['b', 'c'], 'c': ['d'], 'd': ['c']}, {'a': ['b'], 'b': ['c'], 'c': ['b']}): show(outcome(install_order, ['a'], n))\nshow(outcome(install_order, ['z'], {'a': ['a']}))",
    "Cycle",
    "Cycle",
    "Cycle",
    ["z"],
)
expect(
    "long chains",
    "from packs.resolver import *\nn = {i: [i + 1] for i in range(20000)}\nshow(install_order([0], n) == list(range(20000, -1, -1)))\nn[20000] = [5]\nshow(outcome(install_order, [0], n))",
    True,
    "Cycle",
)
expect(
    "shared needs",
    "from packs.resolver import *\nn = {i: [i + 1, i + 2] for i in range(60)}\nshow(len(install_order([0], n)))",
    62,
)
expect(
    "plan",
    "from packs.plan import *\nshow(plan(['a', 'e'], {'a': ['b', 'c'], 'b': ['d']}, ['b']))\nshow(plan(['a'], {'a': ['b'], 'b': ['a']}, ['b']))\nshow(plan(['a'], {}, ['a']))",
    ["1. c", "2. a", "3. e"],
    ["1. a"],
    [],
)
