#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "parse",
    r"""
from logs.records import parse
x = ["noise\n", "2024-01-01 10:00:00 ERROR a \n", "\n", "\tb b c d  \n", "see 2024-01-01 10:00:00 INFO x\r\n", "at 10:00 ERROR no start\n", "2024-01-01 10:00:01 INFO \n", "12-01-01 10:00:01 INFO y\n", "2024-01-01 10:00:02 DEBUG z"]
for record in parse(iter(x)): show(record)
show(list(parse([]))); show(list(parse(["a b c d"])))
""",
    ["2024-01-01 10:00:00", "ERROR", "a \n\n\tb b c d  \nsee 2024-01-01 10:00:00 INFO x\nat 10:00 ERROR no start"],
    ["2024-01-01 10:00:01", "INFO", "\n12-01-01 10:00:01 INFO y"],
    ["2024-01-01 10:00:02", "DEBUG", "z"],
    [],
    [],
)
expect(
    "count",
    r"""
from logs.summary import count
x = [f"2024-01-01 10:00:00 {level} x" for level in ("ERROR", "INFO", "WARNING", "DEBUG", "INFO")]
for level in ("DEBUG", "INFO", "WARNING", "ERROR"): show(list(count(x, level).items()))
show(list(count(x[:2]).items()))
""",
    [["DEBUG", 1], ["INFO", 2], ["WARNING", 1], ["ERROR", 1]],
    [["INFO", 2], ["WARNING", 1], ["ERROR", 1]],
    [["WARNING", 1], ["ERROR", 1]],
    [["ERROR", 1]],
    [["INFO", 1], ["ERROR", 1]],
)
