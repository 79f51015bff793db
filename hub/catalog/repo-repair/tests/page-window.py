#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "page_count",
    "from library.pages import *\nfor t in (0, 1, 9, 10, 11, 20, 30): show(page_count(t, 10))",
    1,
    1,
    1,
    1,
    2,
    2,
    3,
)
expect(
    "page_of",
    "from library.pages import *\nx = list(range(6))\nfor n in (1, 2, 3, 0, -1): show(outcome(page_of, x, n, 3))\nshow(page_of([], 1, 3)); show(outcome(page_of, [], 2, 3))",
    [0, 1, 2],
    [3, 4, 5],
    "ValueError",
    "ValueError",
    "ValueError",
    [],
    "ValueError",
)
expect(
    "page_bar",
    "from library.bar import *\nfor t, c, w in ((100, 1, 5), (100, 10, 5), (100, 9, 5), (30, 3, 5), (0, 1, 5), (100, 5, 3), (100, 6, 4)): show(page_bar(t, 10, c, w))",
    [1, 2, 3, 4, 5],
    [6, 7, 8, 9, 10],
    [6, 7, 8, 9, 10],
    [1, 2, 3],
    [1],
    [4, 5, 6],
    [4, 5, 6, 7],
)
