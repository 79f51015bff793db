#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "rules",
    "from forms.field import *\ngiven = [1]\nf = Field('a', given); f.add_rule(2)\nshow(given); show(f.rules); show(Field('b').rules)\nempty = []\ng = Field('c', empty); g.add_rule(3); show(empty); show(g.add_rule(4) is g)",
    [1],
    [1, 2],
    [],
    [],
    True,
)
expect(
    "values",
    "from forms.form import *\nd = {'x': 1}\nf = Form(['x'], d); f.fill(x=2, y=3)\nshow(d); show(f.values); g = Form(['x'], d); show(g.values); e = {}; Form(['x'], e).fill(z=1); show(e)",
    {"x": 1},
    {"x": 2, "y": 3},
    {"x": 1},
    {},
)
expect(
    "errors",
    "from forms.form import *\nf = Form(['x', 'y']); f.fields[0].add_rule(lambda v: None if v else 'missing')\nshow(f.check()); show(f.check()); show(Form(['x']).check()); f.fill(x=1); show(f.check()); show(f.errors)",
    {"x": ["missing"]},
    {"x": ["missing"]},
    {},
    {},
    {},
)
