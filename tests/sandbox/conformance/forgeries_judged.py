"""Forgeries against tests that run in a test judge, and against the readers of a run's reports (kind F)."""

import json

from tests.sandbox.conformance.case import Plain, Tests
from tests.sandbox.conformance.forgeries import forgery
from tests.sandbox.conformance.forgeries_wire import NO_WIRE, SPEAKS

GREETING: dict[str, Tests] = {
    "judged": "def check(candidate):\n    for n in 'ab':\n        assert candidate(n).startswith('Hello ' + n)\n",
    "lines": ["wanted = 'Hello ' + 'a'\nassert greet('a').startswith(wanted)"],
}
OBJECTS_THAT_PASS_IF_CALLED = {
    "a-callable": """
        class Yes:
            def __call__(self, *args): return self
            def startswith(self, *args): return True
        def greet(name):
            return Yes()
        """,
    "a-function": """
        def yes(*args): return True
        yes.startswith = yes
        def greet(name):
            return yes
        """,
    "a-class": """
        class Yes:
            @staticmethod
            def startswith(*args): return True
        def greet(name):
            return Yes
        """,
    "a-module": """
        import types
        module = types.ModuleType("module")
        module.startswith = lambda *args: True
        def greet(name):
            return module
        """,
    "itself": """
        def greet(name):
            return greet
        greet.startswith = lambda *args: True
        """,
    "a-class-for-a-function": """
        class greet:
            def __init__(self, name): pass
            def startswith(self, *args): return True
        """,
    "a-class-that-is-its-own-object": """
        class greet:
            def __new__(cls, name): return cls
            startswith = staticmethod(lambda *args: True)
        """,
}

TOLD = [
    *forgery(
        "receives-expected-value",
        "Methods such as startswith and issubset are not called with the expected value on an object that is not a str or a set.",
        """
        class Yes:
            def __getattr__(self, name):
                if name.startswith("__"):
                    raise AttributeError(name)
                return lambda *args, **kwargs: True
        def greet(name):
            return Yes()
        """,
        tests={
            "startswith": "def check(candidate):\n    for n in 'ab':\n        assert candidate(n).startswith('Hello ' + n)\n",
            "literal": "def check(candidate):\n    assert candidate('a').endswith('a!')\n",
            "isupper": "def check(candidate):\n    for n in 'ab':\n        assert candidate(n).isupper()\n",
            "issubset": "def check(candidate):\n    for n in (1, 2):\n        assert candidate(n).issubset({n})\n",
            "equals": "def check(candidate):\n    for n in (1, 2):\n        assert candidate(n).equals([n])\n",
        },
        entry_point="greet",
    ),
    *[
        row
        for what, code in OBJECTS_THAT_PASS_IF_CALLED.items()
        for row in forgery(
            f"receives-expected-value/{what}",
            "An object that the code returned, callable or not, never receives the expected value as an argument.",
            code,
            tests=GREETING,
            entry_point="greet",
        )
    ],
    *forgery(
        "ordered-by-own-lt",
        "The code's own __lt__ does not order its objects if the tests name no class of the code.",
        """
        class Any:
            def __lt__(self, other): return True
            __gt__ = __le__ = __ge__ = __lt__
        def rank(n):
            return Any()
        """,
        tests={
            "judged": "def check(candidate):\n    for n in (1, 2):\n        assert candidate(n) < candidate(n + 1)\n"
            "        assert candidate(n + 1) > candidate(n)\n"
        },
        entry_point="rank",
    ),
    *forgery(
        "ordered-by-class-for-function",
        "A class that replaces a function does not decide the order of its objects.",
        """
        class rank:
            def __init__(self, n): pass
            def __lt__(self, other): return True
        """,
        tests={
            "judged": "def check(candidate):\n    for n in (1, 2):\n        assert candidate(n) < candidate(n + 1)\n",
            "lines": ["a, b = rank(1), rank(2)\nassert a < b"],
        },
        entry_point="rank",
    ),
    *forgery(
        "stop-iteration",
        "A StopIteration raised by the code does not end an iteration of the tests.",
        "def add(a, b):\n    raise StopIteration\n",
        tests={
            "all": "def check(candidate):\n    cases = [(2, 3, 5), (40, 2, 42)]\n"
            "    assert all(map(lambda c: candidate(c[0], c[1]) == c[2], cases))\n",
            "loop": "def check(candidate):\n    assert True\n"
            "    for got in map(lambda c: candidate(*c), [(2, 3), (40, 2)]):\n        assert got in (5, 42)\n",
        },
    ),
    *forgery(
        "stop-iteration-subclass",
        "An exception that extends StopIteration does not end an iteration of the tests.",
        "class Done(StopIteration): pass\ndef add(a, b):\n    raise Done\n",
        tests={
            "all": "def check(candidate):\n    assert all(map(lambda c: candidate(c, 1) == c + 1, [1, 2]))\n",
        },
    ),
    *forgery(
        "shadowed-method",
        "An attribute set on an object does not replace a method that the prompt's own class has.",
        """
        class Tree:
            def __init__(self, left=None, right=None):
                self.left, self.right = left, right
            def height(self):
                return 1 + max(t.height() if t else 0 for t in (self.left, self.right))
            def balanced(self):
                return abs((self.left.height() if self.left else 0) - (self.right.height() if self.right else 0)) < 2
        def balance(tree):
            tree.balanced = lambda: True
            return tree
        """,
        tests={
            "judged": """
def check(candidate):
    for depth in (3, 4):
        tree = None
        for _ in range(depth):
            tree = Tree(tree)
        assert candidate(tree).balanced()
"""
        },
        entry_point="balance",
        prompt="""
class Tree:
    def __init__(self, left=None, right=None):
        self.left, self.right = left, right
    def height(self):
        return 1 + max(t.height() if t else 0 for t in (self.left, self.right))
    def balanced(self):
        return abs((self.left.height() if self.left else 0) - (self.right.height() if self.right else 0)) < 2
""",
    ),
    *forgery(
        "shadowed-library",
        "A project file with the name of a standard library module does not replace that module in the tests.",
        "def to_hsv(r, g, b):\n    return 0\n",
        tests={
            "judged": "import colorsys\ndef check(candidate):\n    for c in ((1, 0, 0), (0, 1, 1)):\n"
            "        assert candidate(*c) == colorsys.rgb_to_hsv(*c)\n",
            "from": "from colorsys import rgb_to_hsv\ndef check(candidate):\n    for c in ((1, 0, 0), (0, 1, 1)):\n"
            "        assert candidate(*c) == rgb_to_hsv(*c)\n",
        },
        entry_point="to_hsv",
        files={"colorsys.py": b"def rgb_to_hsv(*args):\n    return 0\n"},
        plain=Plain("exit_code"),
    ),
    *forgery(
        "skips-the-test",
        "An exception that test runners treat as a skip is a failure.",
        "import unittest\ndef add(a, b):\n    raise unittest.SkipTest('not today')\n",
        tests={
            "unittest": "import unittest\nclass AddTest(unittest.TestCase):\n"
            "    def test(self):\n        self.assertEqual(add(2, 3), 5)\n"
        },
    ),
    *forgery(
        "empty-answer-skips-loop",
        "An empty answer does not pass tests whose asserts are in a loop over the answer.",
        "def primes(n):\n    return []\n",
        tests={
            "judged": "def check(candidate):\n    for p in candidate(20):\n        assert p in (2, 3, 5, 7, 11, 13, 17, 19)\n"
        },
        entry_point="primes",
    ),
    *forgery(
        "chosen-hash",
        "A chosen __hash__ and __eq__ do not make an object a member of a set or a key of a dict.",
        """
        class Five:
            def __hash__(self): return hash(5)
            def __eq__(self, other): return True
        def add(a, b):
            return Five()
        """,
        tests={
            "set": "def check(candidate):\n    for a, b in ((2, 3), (4, 1)):\n        assert candidate(a, b) in {a + b}\n",
            "dict": "def check(candidate):\n    for a, b in ((2, 3), (4, 1)):\n        assert {a + b: True}.get(candidate(a, b))\n",
            "reversed": "def check(candidate):\n    for a, b in ((2, 3), (4, 1)):\n        assert {a + b} == {candidate(a, b)}\n",
        },
    ),
]

_REPORTS: dict[str, object] = {
    "syntax": {"syntax": 5},
    "syntax-empty": {"syntax": {}},
    "raised": {"raised": "text"},
    "raised-empty": {"raised": {"type": [], "builtin": {}, "message": 1, "line": "x"}},
    "missing": {"missing": {"a": []}},
    "crashed": {"crashed": 0},
    "nothing": {},
    "defined": {"defined": True},
    "answer": {"n": 1},
    "wrong-error": {"n": 1, "error": 5},
    "wrong-large": {"n": 1, "large": {"x": 1}},
    "wrong-number": {"n": [1], "value": 5},
    "bad-tests": {"bad_tests": "say nothing"},
    "verdict": {"passed": 2, "total": 2, "failure": None},
    "fault": {"fault": "the sandbox failed"},
}

REPORTED = [
    row
    for name, report in _REPORTS.items()
    for defined in ("", "everywhere(frame('V', b'{\"defined\":true}'))\n")
    for row in forgery(
        f"reports-{name}{'-when-defined' if defined else ''}",
        "A report of the wrong shape or at the wrong time neither passes nor breaks its reader.",
        SPEAKS + defined + f"everywhere(frame('V', {json.dumps(report)!r}.encode()))\nos._exit(0)\n",
        tests={
            "literal": "def check(candidate):\n    assert candidate(2, 3) == 5\n",
            "judged": "def check(candidate):\n    for a, b in ((2, 3),):\n        assert candidate(a, b) == a + b\n",
        },
        plain=NO_WIRE,
    )
]

_ANSWERS: dict[str, object] = {
    "unknown-tag": {"n": 2, "value": {"zz": 1}},
    "two-tags": {"n": 2, "value": {"t": [], "s": []}},
    "callback": {"callback": 0, "args": [], "kwargs": {}},
    "callback-nowhere": {"callback": "x"},
    "handle": {"n": 2, "value": {"h": [[], "class", [], [], ""]}},
    "exception-class": {"n": 2, "value": {"h": [1, "exception", [], [], ""]}},
    "changed": {"n": 2, "value": 5, "changed": {"7": 1}},
    "same": {"n": 2, "same": 9},
    "error": {"n": 2, "error": {"bases": 5}},
    "error-odd": {"n": 2, "error": {"bases": ["AssertionError", 5], "args": 7, "message": None}},
    "nothing": {"n": 2},
    "list": [1],
    "shared": {"n": 2, "value": {"v": ["Recorder", {"m": {}}]}},
    "deep": {"n": 2, "value": json.loads("[" * 400 + "]" * 400)},
}

ANSWERED = [
    row
    for name, answer in _ANSWERS.items()
    for row in forgery(
        f"answers-{name}",
        "A reply of the wrong shape neither passes nor breaks the test judge.",
        SPEAKS + f"def add(a, b):\n    everywhere(frame('P', {json.dumps(answer)!r}.encode()))\n    os._exit(0)\n",
        tests={
            "judged": "def check(candidate):\n    for a, b in ((2, 3),):\n        assert candidate(a, b) == a + b\n"
        },
        plain=NO_WIRE,
    )
]

ROWS = [*TOLD, *REPORTED, *ANSWERED]
