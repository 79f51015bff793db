#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "days",
    "from planner.clock import *\nfor t, o in (('2024-03-01T18:15:00Z', 330), ('2024-03-01T18:35:00Z', 330), ('2024-03-01T03:10:00Z', -210), ('2024-03-01T03:40:00Z', -210), ('2024-12-31T23:59:59+00:00', 1), ('2024-03-01T01:00:00+09:00', 540), ('2024-03-01T01:00:00+09:00', 0)): show(local_day(parse_moment(t), o))",
    "2024-03-01",
    "2024-03-02",
    "2024-02-29",
    "2024-03-01",
    "2025-01-01",
    "2024-03-01",
    "2024-02-29",
)
expect(
    "moments",
    "from planner.clock import *\nm = parse_moment('2024-03-01T10:00:00+05:30')\nshow(m.utcoffset() is not None and m.timestamp())\nshow(parse_moment('2024-03-01T04:30:00Z') == m)",
    1709267400.0,
    True,
)
expect(
    "agenda",
    "from planner.agenda import *\nx = [('2024-03-01T10:00:00+05:00', 'a'), ('2024-03-01T06:00:00Z', 'c'), ('2024-03-01T00:30:00-05:00', 'b'), ('2024-03-02T01:00:00+02:00', 'd')]\nshow(list(agenda(x, 0).items())); show(list(agenda(x, 60).items()))",
    [["2024-03-01", ["a", "b", "c", "d"]]],
    [["2024-03-01", ["a", "b", "c"]], ["2024-03-02", ["d"]]],
)
