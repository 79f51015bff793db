"""Forgeries that read or patch objects of the interpreter which code and tests might share (kind F)."""

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
        "The calling frames of the candidate do not contain the expected answer.",
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
        "The frames of an exception's traceback do not contain the expected answer.",
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
        "No object that gc.get_objects() finds in the candidate's process contains the tests.",
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
        "A function named check in the code does not replace the check function of the tests.",
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
        "Patching TestCase.assertEqual has no effect in the test judge.",
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
        "Patching builtins has no effect in the test judge.",
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
        "A module that the code adds to sys.modules is not the one that the tests import.",
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
        "Patching the modules operator and json has no effect in the test judge.",
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
