#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "to_slug",
    """
from articles.slug import to_slug
for t, n in ((" --Hello,   World-- ", 40), ("ÀÉÎõü Ñ", 40), ("日本", 40), ("", 40), ("abc def", 4), ("abc def", 5), ("...", 40), ("10 % off_now", 40), ("e\u0301te\u0301", 40), ("x" * 50, 40), ("日本 2024", 40)):
    show(to_slug(t, n))
""",
    "hello-world",
    "aeiou-n",
    "page",
    "page",
    "abc",
    "abc-d",
    "page",
    "10-off-now",
    "ete",
    "x" * 40,
    "2024",
)
expect(
    "Registry",
    """
from articles.registry import Registry
r = Registry(["a", "a-3"])
show([r.add("A"), r.add("a!"), r.add("A 2"), r.add("A"), r.add("A 3"), r.add("B 2"), r.add("B"), r.add("b"), r.add("日本"), r.add("Page")])
s = Registry(); show([s.add("abcd ef", 6) for _ in range(3)] + [s.add("x" * 9, 6) for _ in range(11)][-2:]); show([s.add("abc de", 5), s.add("abc de", 5)])
""",
    ["a-2", "a-4", "a-2-2", "a-5", "a-3-2", "b-2", "b", "b-3", "page", "page-2"],
    ["abcd-e", "abcd-2", "abcd-3", "xxx-10", "xxx-11"],
    ["abc-d", "abc-2"],
)
