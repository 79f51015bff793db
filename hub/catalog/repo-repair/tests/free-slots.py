#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "merged",
    "from agenda.busy import merged\nx = [(5, 9), (1, 3), (2, 8), (9, 10), (4, 4), (20, 30), (22, 23), (29, 31), (12, 12)]\nshow(merged(x)); show(x[0]); show(merged([])); show(merged(iter([(2, 3), (1, 2)])))",
    [[1, 10], [20, 31]],
    [5, 9],
    [],
    [[1, 3]],
)
expect(
    "free",
    """
from agenda.slots import free
for times in ([], [(0, 1000)], [(0, 100)], [(90, 110)], [(190, 300)], [(100, 200)], [(250, 300), (10, 20)], [(120, 180), (130, 140), (170, 175)], [(150, 160), (140, 150)], [(150, 150)], [(0, 120), (50, 90), (180, 500)]):
    show(free(times, 100, 200))
""",
    [[100, 200]],
    [],
    [[100, 200]],
    [[110, 200]],
    [[100, 190]],
    [],
    [[100, 200]],
    [[100, 120], [180, 200]],
    [[100, 140], [160, 200]],
    [[100, 200]],
    [[120, 180]],
)
expect(
    "first_slot",
    "from agenda.slots import first_slot\nx = [(110, 120), (0, 100), (125, 200)]\nshow([first_slot(x, 100, 230, n) for n in (1, 10, 11, 30, 31)])\nshow(first_slot([], 5, 5, 1))",
    [100, 100, 200, 200, None],
    None,
)
