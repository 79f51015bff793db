"""Forged replies of a candidate: wrong kinds, types and shapes for each operation (kind F)."""

from textwrap import indent

from sandbox.engine.protocol import replies
from sandbox.verdicts.results import Status
from tests.sandbox.conformance.case import Case, Tests, function_job
from tests.sandbox.conformance.forgeries import forgery
from tests.sandbox.conformance.forgeries_wire import NO_WIRE

TAMPERED = frozenset({Status.TAMPERED})

FORGER = """
import json, sys
def service():
    frame = sys._getframe(1)
    while type(frame.f_locals.get("self")).__name__ != "Service":
        frame = frame.f_back
    return frame.f_locals["self"]
def reply_with(*forged):
    '''Replace the next replies of this process: None leaves one alone, the last is repeated.'''
    channel, waiting = service()._channel, list(forged)
    def send(kind, payload=b""):
        reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if reply is not None:
            payload = json.dumps({"n": json.loads(payload).get("n", 0), **reply}).encode()
        type(channel).send(channel, kind, payload)
    channel.send = send
"""
"""Defines `reply_with`, which makes the candidate's own engine write forged replies with the right numbers."""

# ---- a reply that ends the tests' own iteration ---------------------------------------------------------------------

_CASES = "[(2, 3, 5), (40, 2, 42)]"
ENDS_EARLY = {
    "all-map": f"all(map(lambda c: add(c[0], c[1]) == c[2], {_CASES}))",
    "all-map-star": "all(map(int(5).__eq__, map(add, [2, 4], [3, 1])))",
    "filter": f"not list(filter(lambda c: add(c[0], c[1]) != c[2], {_CASES}))",
    "filterfalse": f"not list(itertools.filterfalse(lambda c: add(c[0], c[1]) == c[2], {_CASES}))",
    "zip": "all(got == want for got, want in zip(map(add, [2, 40], [3, 2]), [5, 42]))",
    "starmap": "all(got == 5 for got in itertools.starmap(add, [(2, 3), (4, 1)]))",
    "list": "[got for got in map(add, [2, 4], [3, 1]) if got != 5] == []",
    "sum": f"sum(map(lambda c: add(c[0], c[1]) != c[2], {_CASES})) == 0",
    "set": "set(map(add, [2, 4], [3, 1])) <= {5}",
    "sorted": "sorted(map(lambda a: add(a, 1) - a - 1, [1, 2])) in ([], [0, 0])",
    "any": f"not any(map(lambda c: add(c[0], c[1]) != c[2], {_CASES}))",
    "max-default": "max(map(lambda a: abs(add(a, 1) - a - 1), [1, 2]), default=0) == 0",
    "next-default": "next(map(add, [2], [3]), 5) == 5",
    "sentinel": "all(got == 5 for got in iter(lambda: add(2, 3), 5))",
    "dict": "all(want == got for want, got in dict(map(lambda a: (a + 1, add(a, 1)), [1, 2])).items())",
    "accumulate": "all(got == 5 for got in itertools.accumulate(map(add, [5, 0], [0, 0])))",
    "class-iterator": "all(got == 5 for got in Asking())",
}
_ASKING = """
class Asking:
    count = 0
    def __iter__(self):
        return self
    def __next__(self):
        self.count += 1
        if self.count > 2:
            raise StopIteration
        return add(2, 3)
"""


def in_every_style(condition: str, setup: str = "") -> dict[str, Tests]:
    """Return tests that assert the condition, one for each style of tests."""
    preface = "import itertools\n" + setup
    return {
        "check": f"{preface}def check(candidate):\n    assert {condition}\n",
        "text": f"{preface}assert {condition}\n",
        "lines": [f"{preface}assert {condition}"],
        "function": f"{preface}def test_it():\n    assert {condition}\n",
        "method": f"{preface}class TestIt:\n    def test(self):\n        assert {condition}\n",
        "unittest": f"{preface}import unittest\nclass T(unittest.TestCase):\n"
        f"    def test(self):\n        self.assertTrue({condition})\n",
    }


STOPPED = [
    row
    for form, condition in ENDS_EARLY.items()
    for row in forgery(
        f"stop-as-reply-{form}",
        "A reply that ends an iteration is not accepted for a call and does not end a loop of the tests.",
        FORGER + "def add(a, b):\n    reply_with({'stop': True})\n    return 0\n",
        tests=in_every_style(condition, _ASKING if "Asking" in condition else ""),
        statuses=TAMPERED,
        plain=NO_WIRE,
    )
]

_READS = {
    "attribute": "all(map(lambda n: Box(n).arm().size == n, [1, 2]))",
    "len": "all(map(lambda n: len(Box(n).arm()) == n, [1, 2]))",
    "bool": "all(map(lambda n: bool(Box(n).arm()), [1, 2]))",
    "str": "all(map(lambda n: str(Box(n).arm()) == f'Box({n})', [1, 2]))",
    "int": "all(map(lambda n: int(Box(n).arm()) == n, [1, 2]))",
    "item": "all(map(lambda n: Box(n).arm()[0] == n, [1, 2]))",
    "equal": "all(map(lambda n: Box(n).arm() == Box(n), [1, 2]))",
    "order": "all(map(lambda n: Box(n).arm() < Box(n + 1), [1, 2]))",
    "iter": "all(map(lambda n: list(Box(n).arm()) == [n], [1, 2]))",
}
BOX = """
class Box:
    def __init__(self, size): self.wrong = True
    def arm(self):
        reply_with(None, {'stop': True})
        return self
    def __len__(self): return 0
    def __int__(self): return 0
    def __getitem__(self, at): return 0
    def __iter__(self): return iter([])
"""
STOPPED += [
    row
    for form, condition in _READS.items()
    for row in forgery(
        f"stop-as-reply-to-{form}",
        "A reply that ends an iteration is accepted only for `next`.",
        FORGER + BOX,
        tests={style: text for style, text in in_every_style(condition).items() if style != "check"},
        statuses=TAMPERED,
        plain=NO_WIRE,
    )
]

# ---- every operation, with every reply that the table does not allow ------------------------------------------------

THING = """
import asyncio
class Thing:
    size = 1
    def __init__(self): self.items = [1, 2]
    def arm(self): reply_with(None, FORGED)
    def cursor(self): return iter(self.items)
    async def wait(self): return 1
    def method(self, *args): return 1
    def __len__(self): return 2
    def __str__(self): return "thing"
    __repr__ = __str__
    def __int__(self): return 1
    def __index__(self): return 1
    def __float__(self): return 1.0
    def __bool__(self): return True
    def __iter__(self): return iter(self.items)
    def __getitem__(self, at): return self.items[at]
    def __setitem__(self, at, item): self.items[at] = item
    def __delitem__(self, at): del self.items[at]
    def __enter__(self): return self
    def __exit__(self, *args): return None
    def __eq__(self, other): return True
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __add__(self, other): return self
    __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = __and__ = __or__ = __xor__ = __add__
    __radd__ = __rsub__ = __rmul__ = __add__
    def __neg__(self): return self
    __abs__ = __pos__ = __invert__ = __neg__
"""
"""A class with all special methods; `arm` forges the reply to the next request to its process."""

ASKS = {
    "call": "method(1)",
    "len": "len(thing)",
    "str": "str(thing)",
    "repr": "repr(thing)",
    "int": "int(thing)",
    "float": "float(thing)",
    "bool": "bool(thing)",
    "getattr": "thing.size",
    "setattr": "thing.size = 2",
    "delattr": "del thing.items",
    "getitem": "thing[0]",
    "setitem": "thing[0] = 1",
    "delitem": "del thing[0]",
    "iter": "[x for x in thing]",
    "next": "next(cursor)",
    "enter": "thing.__enter__()",
    "exit": "thing.__exit__(None, None, None)",
    "await": "asyncio.run(waiting)",
    "eq": "thing == other",
    "lt": "thing < other",
    "add": "thing + other",
    "neg": "-thing",
}
"""For each operation, a statement of tests whose first request is that operation."""

FORGED_REPLIES: dict[str, dict[str, object]] = {
    "stop": {"stop": True},
    "missing": {"missing": "thing"},
    "text": {"value": "text"},
    "negative": {"value": -1},
    "null": {"value": None},
}
"""Forged replies that the table does not allow for some operations."""

_ERROR: dict[str, object] = {
    "type": "E",
    "builtin": "Exception",
    "message": "",
    "line": None,
    "args": {"t": []},
    "attributes": {"m": {}},
    "cause": None,
    "origin": None,
}
MALFORMED: dict[str, dict[str, object]] = {
    "stop-false": {"stop": False},
    "two-kinds": {"value": True, "stop": True},
    "nothing": {},
    "same-not-given": {"same": 0},
    "changed-not-given": {"value": None, "changed": {"7": []}},
    "another-number": {"n": 10**6, "value": 1},
    "same-negative": {"same": -1},
    "number-as-truth": {"n": True, "value": 1},
    "no-kind": {"passed": True},
    "large-text": {"large": "much"},
    "error-empty": {"error": {}},
    "error-without-bases": {"error": {**_ERROR, "bases": []}},
    "error-with-more": {"error": {**_ERROR, "bases": ["Exception"], "missing": "thing"}},
    "callback-not-given": {"callback": 0, "args": [], "kwargs": {}},
    "callback-negative": {"callback": -1, "args": [], "kwargs": {}},
    "callback-with-a-value": {"callback": 0, "args": [], "kwargs": {}, "value": 1},
    "callback-as-a-value": {"value": {"k": -1}},
    "handle-of-no-kind": {"value": {"h": [1, "verdict", ["Thing"], [], ""]}},
    "handle-without-names": {"value": {"h": [1, "object", [], [], ""]}},
    "handle-as-text": {"value": {"h": ["1", "object", ["Thing"], [], ""]}},
    "instance-of-no-class": {"value": {"v": ["Thing", {"m": {}}]}},
    "instance-without-attributes": {"value": {"v": ["Thing", []]}},
    "unknown-tag": {"value": {"zz": 1}},
}
"""Forged replies that the table allows for no operation."""


def _asking(statement: str) -> str:
    lines = f"""
thing, other = Thing(), Thing()
cursor, waiting, method = thing.cursor(), thing.wait(), thing.method
thing.arm()
{statement}
assert thing
"""
    return "import asyncio\ndef test_it():\n" + indent(lines, "    ")


def _replied(operation: str, name: str, forged: dict[str, object]) -> Case:
    code = f"{FORGER}\nFORGED = {forged!r}\n{THING}"
    return Case(
        f"replies-{name}-to-{operation}",
        "F",
        "A reply that the table of replies does not allow for an operation is tampering.",
        lambda host: function_job(code, _asking(ASKS[operation])),
        TAMPERED,
        plain=NO_WIRE,
    )


REPLIED = [
    *(
        _replied(operation, name, forged)
        for operation in ASKS
        for name, forged in FORGED_REPLIES.items()
        if not replies.allows(operation, {"n": 1, **forged})
    ),
    *(_replied(operation, name, forged) for operation in ("call", "getattr") for name, forged in MALFORMED.items()),
]

ROWS = [*STOPPED, *REPLIED]
