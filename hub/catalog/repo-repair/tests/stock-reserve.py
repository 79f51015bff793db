#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "orders",
    """
from stock.orders import Orders
from stock.shelf import Shelf, Shortage
given = {"a": 5, "b": 3}
s = Shelf(given); o = Orders(s)
show(outcome(o.reserve, 1, [("a", 3), ("b", 1), ("a", 3)])); show(s.free)
show(outcome(o.reserve, 1, [("a", 3), ("x", 1)])); show(s.free)
show(outcome(o.reserve, 1, [("a", 3), ("b", 0)])); show(outcome(o.reserve, 1, [("a", 3), ("b", -1)])); show(s.free)
lines = [("a", 3), ("a", 2)]
show(outcome(o.reserve, 1, lines)); lines.append(("b", 3)); show(s.free); show(outcome(o.reserve, 1, [("b", 1)])); show(s.free)
o.release(2); o.release(1); show(s.free); o.release(1); show(s.free)
show(outcome(o.reserve, 1, iter([("b", 3)]))); show(s.free); o.release(1); show(s.free); show(given)
""",
    "Shortage",
    {"a": 5, "b": 3},
    "Shortage",
    {"a": 5, "b": 3},
    "ValueError",
    "ValueError",
    {"a": 5, "b": 3},
    None,
    {"a": 0, "b": 3},
    "ValueError",
    {"a": 0, "b": 3},
    {"a": 5, "b": 3},
    {"a": 5, "b": 3},
    None,
    {"a": 5, "b": 0},
    {"a": 5, "b": 3},
    {"a": 5, "b": 3},
)
