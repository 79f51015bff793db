#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "fill",
    r"""
from mail.fill import fill
show(fill("{{a}}{{  b_2 }}{{ a}}", {"a": "{{ b_2 }}", "b_2": "{{a}}"}))
show(fill("{ a } {{}} {{ a b }} {{{a}}} }}", {"a": 1}))
show(fill(r"{{ a }}", {"a": r"\1 \g<0> \n"})); show(fill("x", {"a": 1})); show(outcome(fill, "{{ a }} {{ c }}", {"a": 1, "b": 2})); show(fill("{{ a }}", {"a": None}))
""",
    "{{ b_2 }}{{a}}{{ b_2 }}",
    "{ a } {{}} {{ a b }} {1} }}",
    "\\1 \\g<0> \\n",
    "x",
    "KeyError",
    "None",
)
expect(
    "html",
    r"""
from mail.html import *
show(fill_html("<p title='{{ t }}'>{{ a }} & {{ n }}</p>", {"t": "\"it's\"", "a": "&lt;", "n": 5}))
inner = fill_html("<i>{{ x }}</i>", {"x": "<&>"})
show(isinstance(inner, Safe)); show(fill_html("<b>{{ i }}</b>", {"i": inner})); show(fill_html("{{ a }}", {"a": "{{ b }}", "b": "x"}))
""",
    "<p title='&quot;it&#x27;s&quot;'>&amp;lt; & 5</p>",
    True,
    "<b><i>&lt;&amp;&gt;</i></b>",
    "{{ b }}",
)
