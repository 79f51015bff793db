#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "merge",
    """
from settings.merge import merge
show(merge({"a": {"b": 1, "c": {"d": 2}}}, {"a": {"c": {"e": 3}}}))
show(merge({"a": 1}, {"a": {"b": 2}})); show(merge({"a": {"b": 2}}, {"a": 1}))
show(merge({"a": {"b": 2}}, {"a": {"b": None, "c": 0}})); show(merge({}, {"a": {"b": None}, "c": None})); show(merge({"a": {"b": 1}}, {"a": {}}))
show(merge({"a": 1}, {"a": {"b": None, "c": False}}))
""",
    {"a": {"b": 1, "c": {"d": 2, "e": 3}}},
    {"a": {"b": 2}},
    {"a": 1},
    {"a": {"c": 0}},
    {"a": {}},
    {"a": {"b": 1}},
    {"a": {"c": False}},
)
expect(
    "changes",
    """
from settings.merge import merge
from settings.profile import load, DEFAULTS
base, over = {"a": {"b": [1]}, "x": {"y": 1}}, {"c": {"d": [2]}, "a": {"e": 1}}
found = merge(base, over)
found["a"]["b"].append(9); found["c"]["d"].append(9); found["x"]["y"] = 9; found["c"]["z"] = 9
show(base); show(over)
one = load(); one["log"]["targets"].append("mail"); one["cache"]["size"] = 1
show(load()); show(DEFAULTS)
show(load({"cache": None}, {"cache": {"ttl": 5}})["cache"])
""",
    {"a": {"b": [1]}, "x": {"y": 1}},
    {"c": {"d": [2]}, "a": {"e": 1}},
    *[{"log": {"level": "info", "targets": ["file"]}, "cache": {"size": 64}}] * 2,
    {"ttl": 5},
)
