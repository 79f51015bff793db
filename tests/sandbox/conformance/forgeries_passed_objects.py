"""Forgeries that use objects which the tests passed to the code, or values that are read twice (kind F)."""

from sandbox.verdicts.results import Status
from tests.sandbox.conformance.case import FORGED
from tests.sandbox.conformance.forgeries import forgery

LENT = [
    *forgery(
        "reads-attributes-of-callback",
        "The code can read nothing but the name of a function of the tests.",
        """
        def add(a, call):
            for path in ("__globals__", "__closure__", "__code__", "__self__", "__wrapped__", "__defaults__"):
                try:
                    found = getattr(call, path)
                    if isinstance(found, dict):
                        return found["SECRET"]
                    return found[0].cell_contents if path == "__closure__" else found
                except Exception:
                    continue
            return None
        """,
        tests={
            "judged": "SECRET = 41\ndef check(candidate):\n    for n in (1, 2):\n"
            "        assert candidate(n, lambda: 0) == SECRET\n"
        },
    ),
    *forgery(
        "reads-attributes-of-object",
        "The code can read the public attributes of an object of the tests, and nothing else.",
        """
        def add(a, item):
            try:
                return item.__init__.__globals__["SECRET"]
            except Exception:
                return type(item).__init__.__globals__["SECRET"]
        """,
        tests={
            "judged": "SECRET = 41\nclass Item:\n    def __init__(self): self.n = 1\ndef check(candidate):\n"
            "    for n in (1, 2):\n        assert candidate(n, Item()) == SECRET\n"
        },
    ),
    *forgery(
        "changes-a-mock",
        "The code cannot read or change the expectations of a mock.",
        """
        def add(a, notify):
            for name in ("assert_called_once_with", "assert_called_with"):
                try:
                    setattr(notify, name, lambda *args, **kwargs: None)
                except AttributeError:
                    pass
        """,
        tests={
            "judged": "from unittest.mock import Mock\ndef check(candidate):\n    for n in (1, 2):\n"
            "        notify = Mock()\n        candidate(n, notify)\n        notify.assert_called_with(n + 1)\n"
            "        assert notify is not None\n"
        },
    ),
    *forgery(
        "catches-asserts-of-callback",
        "An assert that fails in a function of the tests ends the test, even if the code catches the exception.",
        """
        def add(a, check):
            try:
                check(a - 1)
            except AssertionError:
                pass
        """,
        tests={
            "judged": "def check(candidate):\n    def look(got):\n        assert got == wanted\n"
            "    for wanted in (2, 3):\n        candidate(wanted, look)\n"
        },
    ),
]

CHANGING = [
    *forgery(
        "changing-number",
        "A number that extends a built-in type has the same value each time the tests use it.",
        """
        class Number(int):
            def helper(self): pass
            looks = 0
            def __gt__(self, other): return True
            __lt__ = __gt__
            def __int__(self):
                Number.looks += 1
                return (1000, -1000)[Number.looks % 2]
            __index__ = __int__
        def add(a, b):
            return Number(0)
        """,
        tests={
            "judged": "def check(candidate):\n    for a, b in ((2, 3), (40, 2)):\n        got = candidate(a, b)\n"
            "        assert got > a + b - 1\n        assert got < a + b + 1\n"
        },
    ),
    *forgery(
        "suppresses-asserts",
        "A context manager of the code cannot suppress failures of asserts.",
        """
        class Resource:
            def __enter__(self): return self
            def __exit__(self, *error): return True
            def value(self, n): raise KeyError(n)
        """,
        tests={
            "judged": "def test_it():\n    assert Resource is not None\n    for n in (1, 2):\n"
            "        with Resource() as r:\n            assert r.value(n) == n + 1\n"
        },
        entry_point="Resource",
    ),
    *forgery(
        "contains-everything",
        "The __contains__ of a returned object is not called with the expected value.",
        """
        class All:
            def __contains__(self, item): return True
        def add(a, b):
            return All()
        """,
        tests={
            "judged": "def check(candidate):\n    for a, b in ((2, 3), (40, 2)):\n        assert a + b in candidate(a, b)\n"
        },
    ),
    *forgery(
        "hashes-like-expected-value",
        "The code's own __hash__ and __eq__ do not find its object in a set of the tests.",
        """
        class Any:
            def __hash__(self): return hash(5)
            def __eq__(self, other): return True
        def add(a, b):
            return Any()
        """,
        tests={
            "judged": "def check(candidate):\n    for a, b in ((2, 3), (4, 1)):\n        assert candidate(a, b) in {5: 1}\n"
        },
    ),
    *forgery(
        "named-like-helper-of-tests",
        "A class of the code with the name of a helper of the tests does not replace the helper.",
        """
        class Approx:
            def __init__(self, *args): pass
            def __eq__(self, other): return True
        def add(a, b):
            return 0
        """,
        tests={
            "judged": "def check(candidate):\n    for a, b in ((2, 3), (4, 1)):\n"
            "        assert Approx(candidate(a, b)) == Approx(a + b)\n"
        },
        statuses=FORGED | {Status.BAD_TESTS},
    ),
]

ROWS = [*LENT, *CHANGING]
