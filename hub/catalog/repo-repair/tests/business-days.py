#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "days",
    """
from datetime import date, timedelta
from delivery.days import *
h = [date(2024, 5, 1), date(2024, 5, 9)]
for d, n in ((3, 0), (4, 0), (5, 0), (1, 0), (4, 1), (5, -1), (4, -2), (2, -1), (8, 1), (8, 10), (9, 0), (10, -5), (31, -21)): show(add_working_days(date(2024, 5, d), n, h).isoformat())
show([is_working(date(2024, 5, d), h) for d in (1, 3, 4, 5, 6)])
show(add_working_days(date(2024, 5, 3), 0, [date(2024, 5, 3), date(2024, 5, 6)]).isoformat())
""",
    "2024-05-03",
    "2024-05-06",
    "2024-05-06",
    "2024-05-02",
    "2024-05-06",
    "2024-05-03",
    "2024-05-02",
    "2024-04-30",
    "2024-05-10",
    "2024-05-23",
    "2024-05-10",
    "2024-05-02",
    "2024-04-30",
    [False, True, False, False, True],
    "2024-05-07",
)
expect(
    "promise",
    """
from datetime import date, datetime
from delivery.promise import promise
h = [date(2024, 5, 1), date(2024, 5, 9)]
for m, d, hour, minute, n in ((5, 3, 14, 59, 1), (5, 3, 15, 0, 1), (5, 4, 10, 0, 1), (5, 4, 18, 0, 1), (5, 8, 15, 30, 1), (5, 9, 9, 0, 0), (5, 9, 16, 0, 2), (4, 30, 23, 0, 0), (5, 7, 9, 0, 0)):
    show(promise(datetime(2024, m, d, hour, minute), n, h).isoformat())
""",
    "2024-05-06",
    "2024-05-07",
    "2024-05-07",
    "2024-05-07",
    "2024-05-13",
    "2024-05-10",
    "2024-05-14",
    "2024-05-02",
    "2024-05-07",
)
