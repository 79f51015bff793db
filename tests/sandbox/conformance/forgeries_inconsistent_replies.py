"""Forgeries by objects whose contents change each time the tests read them (kind F)."""

from sandbox.verdicts.results import Status
from tests.sandbox.conformance.case import Tests, function_job
from tests.sandbox.conformance.forgeries import forgery
from tests.sandbox.conformance.legitimate import named

CHANGING = """
class Changing:
    def __init__(self, *replies): self._replies, self._at = replies, 0
    def _next(self):
        self._at += 1
        return self._replies[(self._at - 1) % len(self._replies)]
"""


def in_three_styles(condition: str, *others: str) -> dict[str, Tests]:
    """Return tests of the conditions about `r` in one statement, in several, and as a unittest case."""
    conditions = [condition, *others]
    return {
        "chained": f"def check(candidate):\n    r = candidate(3)\n    assert {' and '.join(conditions)}\n",
        "statements": "def check(candidate):\n    r = candidate(3)\n"
        + "".join(f"    assert {each}\n" for each in conditions),
        "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        r = f(3)\n"
        + "".join(f"        self.assertTrue({each})\n" for each in conditions),
    }


_FORMS = {
    "iter": ("def __iter__(self): return iter([self._next()])", "9, 1", ["max(r) > 3", "max(r) < 3"]),
    "generator": ("def __iter__(self):\n        yield self._next()", "9, 1", ["max(r) > 3", "max(r) < 3"]),
    "iterator-longer": (
        "def __iter__(self): return iter([2] * self._next())",
        "5, 2",
        ["sum(1 for _ in r) > 4", "sum(r) < 5"],
    ),
    "len": ("def __len__(self): return self._next()", "4, 1", ["len(r) > 3", "len(r) < 2"]),
    "getitem": ("def __getitem__(self, at): return self._next()", "1, 2", ["r[0] == 1", "r[0] == 2"]),
    "getitem-iterated": (
        "def __getitem__(self, at):\n        if at > 0: raise IndexError\n        return self._next()",
        "9, 1",
        ["max(r) > 3", "max(r) < 3"],
    ),
    "property": ("@property\n    def x(self): return self._next()", "1, 2", ["r.x == 1", "r.x == 2"]),
    "getattr": (
        "def __getattr__(self, name):\n        if name[0] == '_': raise AttributeError(name)\n        return self._next()",
        "1, 2",
        ["r.x == 1", "r.x == 2"],
    ),
    "str": ("def __str__(self): return self._next()", "'a', 'b'", ["str(r) == 'a'", "f'{r}' == 'b'", "str(r) == 'a'"]),
    "int": ("def __int__(self): return self._next()", "4, 1", ["int(r) > 3", "int(r) < 2"]),
    "float": ("def __float__(self): return self._next()", "4.0, 1.0", ["float(r) > 3", "float(r) < 2"]),
    "bool": ("def __bool__(self): return self._next()", "True, False", ["bool(r)", "not bool(r)"]),
    "reversed": (
        "def __reversed__(self): return iter([self._next()])",
        "9, 1",
        ["max(reversed(r)) > 3", "max(reversed(r)) < 3"],
    ),
    "error": (
        "@property\n    def x(self):\n        got = self._next()\n        if got is None: raise AttributeError('x')\n"
        "        return got",
        "1, None",
        ["r.x == 1", "not hasattr(r, 'x')"],
    ),
    "inner-object": (
        "@property\n    def inner(self):\n        made = Inner()\n        made.x = self._next()\n        return made",
        "1, 2",
        ["r.inner.x == 1", "r.inner.x == 2"],
    ),
    "inner-in-a-list": (
        "@property\n    def items(self):\n        made = Inner()\n        made.x = self._next()\n        return [made]",
        "1, 2",
        ["r.items[0].x == 1", "r.items[0].x == 2"],
    ),
    "items-of-iterators": (
        "def __iter__(self):\n        made = Inner()\n        made.x = self._next()\n        yield made",
        "9, 1",
        ["max(i.x for i in r) > 3", "max(i.x for i in r) < 3"],
    ),
    "revived-iterator": (
        "def __iter__(self): return self\n    def __next__(self):\n        got = self._next()\n"
        "        if got is None: raise StopIteration\n        return got",
        "9, None, 1, None",
        ["max(r) > 3", "max(r) < 3"],
    ),
}

ROWS = [
    row
    for form, (method, replies, conditions) in _FORMS.items()
    for row in forgery(
        f"changing-reply-{form}",
        "A returned object must give the same reply to the same question until the code is called again.",
        f"{CHANGING}    {method}\nclass Inner: pass\ndef f(n):\n    return Changing({replies})\n",
        tests=in_three_styles(*conditions),
        entry_point="f",
    )
] + [
    *forgery(
        "changing-reply-list-subclass",
        "A list subclass whose len changes does not pass.",
        CHANGING.replace("class Changing:", "class Changing(list):") + "    def __len__(self): return self._next()\n"
        "def f(n):\n    return Changing(4, 1)\n",
        tests=in_three_styles("len(r) > 3", "len(r) < 2"),
        entry_point="f",
    ),
    *forgery(
        "changing-reply-caught",
        "Tests that catch everything do not hide that an object changed.",
        CHANGING + "    def __len__(self): return self._next()\ndef f(n):\n    return Changing(4, 1)\n",
        tests={
            "suppressed": "import contextlib\ndef check(candidate):\n    r = candidate(3)\n    assert len(r) > 3\n"
            "    with contextlib.suppress(BaseException):\n        assert len(r) > 3\n"
        },
        entry_point="f",
    ),
]

# Legitimate objects whose second reply may differ: they pass, or their tests are unsupported.
_ALLOWED = Status.PASSED, Status.UNSUPPORTED
ROWS += [
    named(
        f"changing-reply-legitimate/{name}",
        "A legitimate object that changes by itself is never reported as wrong.",
        function_job(code, tests, "f"),
        *_ALLOWED,
    )
    for name, (code, tests) in {
        "counter": (
            "class C:\n    n = 0\n    @property\n    def next(self):\n        self.n += 1\n        return self.n\n"
            "def f(): return C()\n",
            "def check(candidate):\n    c = candidate()\n    assert c.next == 1\n    assert c.next == 2\n",
        ),
        "random": (
            "import random\nclass D:\n    @property\n    def roll(self): return random.randint(1, 6)\n"
            "def f(): return D()\n",
            "def check(candidate):\n    d = candidate()\n    for _ in range(20):\n        assert 1 <= d.roll <= 6\n",
        ),
        "shuffled": (
            "import random\nclass S:\n    def __iter__(self): return iter(random.sample(range(9), 9))\n"
            "def f(): return S()\n",
            "def check(candidate):\n    s = candidate()\n    assert sorted(s) == sorted(s) == list(range(9))\n",
        ),
        "clock": (
            "import time\nclass T:\n    @property\n    def now(self): return time.perf_counter()\ndef f(): return T()\n",
            "def check(candidate):\n    t = candidate()\n    assert t.now < t.now\n",
        ),
    }.items()
]
ROWS += [
    named(
        f"changing-reply-unchanged/{name}",
        "A legitimate object that is read twice passes.",
        function_job(code, tests, "f"),
        Status.PASSED,
    )
    for name, (code, tests) in {
        "generator": (
            "def f():\n    yield 1\n    yield 2\n",
            "def check(candidate):\n    g = candidate()\n    assert next(g) == 1\n    assert next(g) == 2\n"
            "    assert list(g) == [] and list(g) == []\n",
        ),
        "iterator": (
            "def f(): return iter([3, 1])\n",
            "def check(candidate):\n    it = candidate()\n    assert max(it) > 2 and list(it) == []\n",
        ),
        "iterable": (
            "class R:\n    def __iter__(self): return iter([P(1), P(2)])\n    def __len__(self): return 2\n"
            "class P:\n    def __init__(self, x): self.x = x\ndef f(): return R()\n",
            "def check(candidate):\n    r = candidate()\n    assert [p.x for p in r] == [1, 2] and len(r) == 2\n"
            "    assert [p.x for p in r] == [1, 2] and len(list(r)) == len(r)\n    assert repr(r) == repr(r)\n",
        ),
        "set-each-time": (
            "class R:\n    at = 0\n    @property\n    def x(self):\n        self.at += 1\n"
            "        return {0, 8} if self.at % 2 else {8, 0}\ndef f(): return R()\n",
            "def check(candidate):\n    r = candidate()\n    assert r.x == {0, 8} and r.x == {8, 0}\n",
        ),
        "changed-by-a-call": (
            "class R:\n    n = 0\n    def step(self):\n        self.n += 1\n        return self\ndef f(r=None):\n"
            "    return r.step() if r else R()\n",
            "def check(candidate):\n    r = candidate()\n    assert r.n == 0\n    candidate(r)\n    assert r.n == 1\n",
        ),
        "changed-by-the-tests": (
            "class R(dict): pass\nclass O: pass\ndef f():\n    o = O()\n    o.d, o.n = R(a=1), 1\n    return o\n",
            "def check(candidate):\n    o = candidate()\n    assert o.n == 1\n    o.n = 2\n    assert o.n == 2\n",
        ),
        "lazy-cache": (
            "class L:\n    _v = None\n    @property\n    def value(self):\n        if self._v is None: self._v = [1, 2]\n"
            "        return self._v\ndef f(): return L()\n",
            "def check(candidate):\n    o = candidate()\n    assert o.value == [1, 2] and o.value == [1, 2]\n",
        ),
    }.items()
]
ROWS += [
    named(
        "changing-reply-made-by-the-tests",
        "Objects that the tests made by calling a class may change by themselves.",
        function_job(
            "class Dice:\n    n = 0\n    @property\n    def roll(self):\n        self.n += 1\n        return self.n\n",
            "def test_dice():\n    d = Dice()\n    assert d.roll == 1\n    assert d.roll == 2\n",
        ),
        Status.PASSED,
    )
]
