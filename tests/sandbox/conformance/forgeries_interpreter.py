"""Forgeries by walking and patching the interpreter that code and tests might share (kind F)."""

from tests.sandbox.conformance.case import ADD_TESTS, Plain
from tests.sandbox.conformance.forgeries import LOOKS_EQUAL, forgery

PEEK = """
import dis, gc, sys

def after(code, offset):
    for step in dis.get_instructions(code):
        if step.offset > offset and step.opname == "LOAD_CONST":
            return step.argval
"""

ROWS = [
    *forgery(
        "frame-walk",
        "The frames above a candidate do not hold the expected answer.",
        PEEK
        + """
def add(a, b):
    frame = sys._getframe(1)
    while frame is not None:
        found = after(frame.f_code, frame.f_lasti)
        if isinstance(found, int):
            return found
        frame = frame.f_back
""",
    ),
    *forgery(
        "traceback-walk",
        "The frames of an exception's traceback do not hold the expected answer.",
        PEEK
        + """
def add(a, b):
    try:
        raise ValueError
    except ValueError as error:
        frame = error.__traceback__.tb_frame.f_back
        while frame is not None:
            found = after(frame.f_code, frame.f_lasti)
            if isinstance(found, int):
                return found
            frame = frame.f_back
""",
    ),
    *forgery(
        "gc-walk",
        "No object that the collector knows in the candidate's process holds the tests.",
        """
        import dis, gc, types
        def add(a, b):
            for thing in gc.get_objects():
                if isinstance(thing, types.FunctionType) and thing.__name__.startswith(("check", "test")):
                    seen = [s.argval for s in dis.get_instructions(thing) if s.opname == "LOAD_CONST"]
                    for i in range(len(seen) - 2):
                        if seen[i:i + 2] == [a, b]:
                            return seen[i + 2]
        """,
    ),
    *forgery(
        "settrace",
        "A trace function sees the candidate's own frames only.",
        LOOKS_EQUAL
        + """
import sys
def tracer(frame, event, arg):
    if "candidate" in frame.f_locals:
        frame.f_locals["candidate"] = lambda *args: Any()
    return tracer
sys.settrace(tracer)
def add(a, b):
    return 0
""",
    ),
    *forgery(
        "redefined-check",
        "A candidate's own check is not the check that judges it.",
        """
        def check(candidate): pass
        def add(a, b): return 0
        class AddTest:
            pass
        """,
        plain=Plain(tests_first=True),
    ),
    *forgery(
        "patched-testcase",
        "A patched TestCase.assertEqual patches nothing in the judge.",
        """
        import unittest
        for name in ("assertEqual", "assertTrue", "fail"):
            setattr(unittest.TestCase, name, lambda *args, **kwargs: None)
        unittest.TestResult.wasSuccessful = lambda self: True
        def add(a, b):
            return 0
        """,
        tests={"unittest": ADD_TESTS["unittest"]},
    ),
    *forgery(
        "patched-builtins",
        "Patched builtins are not the judge's builtins.",
        """
        import builtins
        builtins.abs = lambda x: 0
        builtins.isinstance = lambda x, kind: True
        builtins.all = builtins.any = lambda items: True
        def double(x):
            return 99.0
        """,
        tests={
            "literal": "def check(candidate):\n    assert abs(candidate(1.0) - 2.0) < 1e-6\n    assert isinstance(candidate(1.0), str)\n",
            "judged": "def check(candidate):\n    for x in (1.0, 4.0):\n        assert abs(candidate(x) - 2 * x) < 1e-6\n",
            "all": "def check(candidate):\n    assert all(candidate(x) == 2 * x for x in (1.0, 4.0))\n",
        },
        entry_point="double",
    ),
    *forgery(
        "poisoned-modules",
        "A module put into sys.modules is not what the tests import.",
        """
        import sys, types
        fake = types.ModuleType("math")
        fake.isclose = lambda a, b, **options: True
        sys.modules["math"] = fake
        def double(x):
            return 99.0
        """,
        tests={
            "judged": "import math\ndef check(candidate):\n    for x in (1.0, 4.0):\n        assert math.isclose(candidate(x), 2 * x)\n",
            "literal": "import math\ndef check(candidate):\n    assert math.isclose(candidate(1.0), 2.0)\n",
        },
        entry_point="double",
    ),
    *forgery(
        "patched-operators",
        "Patched operator and json modules judge nothing.",
        """
        import json, operator, sys
        operator.eq = lambda a, b: True
        json.dumps = lambda *args, **kwargs: "5"
        def add(a, b):
            return 0
        """,
        tests={"judged": "import operator\ndef check(candidate):\n    assert operator.eq(candidate(2, 3), 5)\n"},
    ),
]
