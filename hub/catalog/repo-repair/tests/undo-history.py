#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "history",
    """
from editor.history import History
x = ["a"]
h = History(x); x.append("!"); show(h.state)
y = ["b"]; h.change(y); y.append("!"); show(h.state); h.state.append("?"); show(h.state)
show([h.undo(), h.undo(), h.state, h.redo(), h.redo(), h.state])
h.change(["b"]); show([h.undo(), h.state]); h.change(["a"]); show([h.redo(), h.state]); 
h.undo(); h.change(["c"]); show([h.redo(), h.undo(), h.state, h.undo()])
""",
    ["a"],
    ["b"],
    ["b"],
    [True, False, ["a"], True, False, ["b"]],
    [True, ["a"]],
    [True, ["b"]],
    [False, True, ["a"], False],
)
expect(
    "limit",
    """
from editor.history import History
h = History(["0"], 2)
for n in "1234": h.change([n])
show([h.undo(), h.undo(), h.undo(), h.state, h.redo(), h.redo(), h.redo(), h.state])
""",
    [True, True, False, ["2"], True, True, False, ["4"]],
)
expect(
    "document",
    """
from editor.document import Document
d = Document(["a"], limit=2)
d.insert(0, "b"); d.insert(0, "c"); d.delete(2); show(d.lines)
d.lines.append("?"); show(d.lines)
show([d.history.undo(), d.lines, d.history.undo(), d.lines, d.history.undo(), d.lines]); show(outcome(d.delete, 7)); show([d.lines, d.history.redo(), d.lines])
""",
    ["c", "b"],
    ["c", "b"],
    [True, ["c", "b", "a"], True, ["b", "a"], False, ["b", "a"]],
    "IndexError",
    [["b", "a"], True, ["c", "b", "a"]],
)
