"""Forgeries that exploit what tests do: catch everything, name a class, use classes of the prompt (kind F)."""

from sandbox.limits import Limits
from sandbox.verdicts.results import Status
from tests.sandbox.conformance.case import Case, Plain, Tests
from tests.sandbox.conformance.forgeries import forgery
from tests.sandbox.conformance.forgeries_replies import FORGER
from tests.sandbox.conformance.forgeries_wire import NO_WIRE

# ---- tests that catch everything ------------------------------------------------------------------------------------

CATCHES: dict[str, str] = {
    "bare": "try:\n    add(-1, 1)\nexcept:\n    raised = True\n",
    "base-exception": "try:\n    add(-1, 1)\nexcept BaseException:\n    raised = True\n",
    "suppress": "with contextlib.suppress(BaseException):\n    raised = True\n    add(-1, 1)\n    raised = False\n",
    "finally-return": "def quietly():\n    try:\n        add(-1, 1)\n    finally:\n        return True\nraised = quietly()\n",
    "finally-break": "raised = True\nfor _ in (1,):\n    try:\n        add(-1, 1)\n        raised = False\n    finally:\n"
    "        break\n",
    "exit-of-a-manager": "class Quiet:\n    def __enter__(self): return self\n    def __exit__(self, *error): return True\n"
    "with Quiet():\n    raised = True\n    add(-1, 1)\n    raised = False\n",
    "generator": "def asked():\n    try:\n        yield add(-1, 1)\n    except BaseException:\n        yield None\n"
    "raised = next(asked()) is None\n",
    "generator-close": "def asked():\n    try:\n        yield 1\n    finally:\n        try:\n            add(-1, 1)\n"
    "        except BaseException:\n            pass\nstarted = asked()\nnext(started)\nstarted.close()\nraised = True\n",
    "thread": "import threading\nraised, threading.excepthook = True, lambda *args: None\n"
    "asking = threading.Thread(target=add, args=(-1, 1))\nasking.start()\nasking.join()\n",
    "future": "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(1) as threads:\n"
    "    raised = threads.submit(add, -1, 1).exception() is not None\n",
    "gather": "import asyncio\nasync def ask():\n    add(-1, 1)\nasync def both():\n"
    "    return await asyncio.gather(ask(), return_exceptions=True)\nraised = asyncio.run(both())[0] is not None\n",
    "again-and-again": "raised = True\nwhile True:\n    try:\n        add(-1, 1)\n        break\n    except BaseException:\n"
    "        continue\n",
}
_INDENTED = {name: "".join(f"    {line}\n" for line in text.splitlines()) for name, text in CATCHES.items()}


def _catching(name: str) -> dict[str, Tests]:
    body = _INDENTED[name] + "    assert raised\n"
    method = "".join(f"    {line}\n" for line in body.splitlines())
    return {
        "check": f"import contextlib\ndef check(candidate):\n{body}",
        "text": f"import contextlib\n{CATCHES[name]}assert raised\n",
        "function": f"import contextlib\ndef test_it():\n{body}",
        "unittest": f"import contextlib, unittest\nclass T(unittest.TestCase):\n    def test(self):\n{method}",
    }


_LOSES = {
    "leaves": ("import os\ndef add(a, b):\n    os._exit(0)\n", Status.EXITED),
    "tampers": (FORGER + "def add(a, b):\n    reply_with({'stop': True})\n", Status.TAMPERED),
    "returns-too-much": ("def add(a, b):\n    return 'x' * (65 << 20)\n", Status.OUTPUT_LIMIT),
}
CAUGHT = [
    row
    for how, (code, status) in _LOSES.items()
    for name in CATCHES
    if (how, name) != ("returns-too-much", "again-and-again")  # its tests can continue with requests
    for row in forgery(
        f"{how}-where-tests-catch-{name}",
        "Tests that catch everything do not mistake the end of the code's process for an expected exception.",
        code,
        tests=_catching(name),
        statuses=frozenset({status}),
        plain=NO_WIRE,
        limits=Limits(cpu_s=5, wall_s=20),  # large values take time
    )
]

# ---- tests that name a class ----------------------------------------------------------------------------------------

_STACK = (
    "class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x); return self\n"
)
_YES = """
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: True
    def startswith(self, *args): return True
    issubset = isupper = equals = count = matches = startswith
    def __sub__(self, other): return self
    __add__ = __radd__ = __rsub__ = __mul__ = __neg__ = __abs__ = __sub__
    def __bool__(self): return False
    def __int__(self): return 0
    __float__ = lambda self: 0.0
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __eq__ = __lt__
    __hash__ = object.__hash__
    def __len__(self): return 1
"""
WHO_IS_ASKED = {
    "another-class": f"{_STACK}class Yes:{_YES}\ndef answer(*args):\n    return Yes()\n",
    "a-subclass-of-the-class": f"{_STACK}class Yes(Stack):{_YES}\ndef answer(*args):\n    return Yes()\n",
    "the-class": f"{_STACK}{_YES}\ndef answer(*args):\n    return Stack()\n",
    "an-object-of-the-tests": f"made = []\n{_STACK.replace('self.items = []', 'made.append(self); self.items = []')}{_YES}\n"
    "def answer(*args):\n    return made[0]\n",
    "the-class-itself": f"{_STACK}    startswith = issubset = isupper = equals = count = staticmethod(lambda *args: True)\n"
    "def answer(*args):\n    return Stack\n",
    "a-function": f"{_STACK}def yes(*args): return True\nyes.startswith = yes.issubset = yes.isupper = yes.equals = yes\n"
    "yes.count = yes\ndef answer(*args):\n    return yes\n",
    "a-method-of-the-class": f"{_STACK}class Yes(Stack):{_YES}\nclass answer:\n    def __new__(cls, *args): return Yes()\n",
}
_ASKED = {
    "startswith": "answer('a').startswith('Hello a')",
    "issubset": "answer(1).issubset({1})",
    "isupper": "answer('a').isupper()",
    "equals": "answer(1).equals([1])",
    "count": "answer('aa').count('a') == True",
    "item": "[answer('a')][0].startswith('Hello a')",
    "difference": "not (answer(2) - 4)",
    "tolerance": "abs(answer(2) - 4.0) < 1e-6",
    "reflected": "not (4 - answer(2))",
    "converted": "int(answer(2) - 4) == 0",
    "order": "answer(2) < 5",
    "equality": "answer(2) == 4",
    "membership": "answer(2) in (4, 5)",
}


def _naming(condition: str) -> dict[str, Tests]:
    made = "stack = Stack()\nstack.push(1)\nassert stack.items == [1]\n"
    inside = "".join(f"    {line}\n" for line in made.splitlines())
    return {
        "text": f"{made}assert {condition}\n",
        "function": f"def test_it():\n{inside}    assert {condition}\n",
    }


NAMED = [
    row
    for who, code in WHO_IS_ASKED.items()
    for form, condition in _ASKED.items()
    for row in forgery(
        f"tests-name-a-class-{who}-{form}",
        "If tests name a class, only objects of that class receive the value they are compared with, not results of functions.",
        code,
        tests=_naming(condition),
        plain="The plain harness calls the methods of every object.",
    )
]
NAMED += [
    *forgery(
        "named-object-receives-expected-value",
        "Methods of a named object that is not a class are not called with the expected value.",
        f"class Yes:{_YES}\ngreeting = Yes()\n",
        tests={
            "text": "for name in ['a']:\n    assert greeting.startswith('Hello ' + name)\n",
            "lines": ["wanted = 'Hello'\nassert greeting.startswith(wanted)"],
        },
        plain="The plain harness calls the methods of every object.",
    ),
    *forgery(
        "a-function-of-the-prompt-with-a-capital",
        "A name that is a function in the prompt is not treated as a class, even with a capital first letter.",
        f"class Greet:\n    def __init__(self, name): pass\n{_YES}",
        tests={
            "judged": "def check(candidate):\n    for n in 'ab':\n        assert candidate(n).startswith('Hello ' + n)\n"
        },
        entry_point="Greet",
        prompt="def Greet(name):\n    '''Say hello.'''\n",
        plain="The plain harness calls the methods of every object.",
    ),
    *forgery(
        "a-part-of-the-prompt's-object",
        "Methods of a prompt class do not call methods of an object of the code with the expected value.",
        """
class Tree:
    def __init__(self, left=None): self.left = left
    def height(self): return 1 + (self.left.height() if self.left else 0)
class Stack: pass
class Yes(Stack):
    def height(self): return 6
    def __bool__(self): return True
def grow(tree, height):
    return Tree(Yes())
""",
        tests={"text": "stack = Stack()\nfor n in (7,):\n    assert grow(Tree(), n).height() == n\n"},
        prompt="class Tree:\n    def __init__(self, left=None): self.left = left\n"
        "    def height(self): return 1 + (self.left.height() if self.left else 0)\n",
        plain="The plain harness calls the methods of every object.",
    ),
]

# ---- members of the prompt's classes --------------------------------------------------------------------------------

_LAZY = """
class Lazy:
    def __init__(self, function): self.function = function
    def __get__(self, instance, owner=None): return self if instance is None else self.function(instance)
"""
_MEMBERS = {
    "cached-property": (
        "import functools\n",
        "    @functools.cached_property\n    def sorted(self): return SORTED\n",
        False,
    ),
    "property": ("", "    @property\n    def sorted(self): return SORTED\n", False),
    "descriptor": (_LAZY, "    @Lazy\n    def sorted(self): return SORTED\n", False),
    "partialmethod": (
        "import functools\n",
        "    def order(self, reverse): return SORTED\n    sorted = functools.partialmethod(order, False)\n",
        True,
    ),
    "singledispatchmethod": (
        "import functools\n",
        "    @functools.singledispatchmethod\n    def sorted(self, *args): return SORTED\n",
        True,
    ),
    "method": ("", "    def sorted(self): return SORTED\n", True),
    "lambda": ("", "    sorted = lambda self: SORTED\n", True),
    "staticmethod": ("", "    @staticmethod\n    def sorted(): return False\n", True),
    "classmethod": ("", "    @classmethod\n    def sorted(cls): return False\n", True),
    "inherited": (
        "class Base:\n    def sorted(self): return self.items == sorted(self.items)\n",
        None,
        True,
    ),
}


def _shadowing(name: str) -> list[Case]:
    imports, member, is_called = _MEMBERS[name]
    base = "(Base)" if member is None else ""
    text = (member or "").replace("SORTED", "self.items == sorted(self.items)")
    prompt = f"{imports}class Row{base}:\n    def __init__(self, items): self.items = list(items)\n{text}"
    lie = "lambda *args: True" if is_called else "True"
    code = f"{prompt}def arrange(row):\n    row.__dict__['sorted'] = {lie}\n    return row\n"
    call = "()" if is_called else ""
    tests: dict[str, Tests] = {
        "returned": f"def check(candidate):\n    for items in ([3, 1], [2, 1]):\n        assert candidate(Row(items)).sorted{call}\n",
        "changed": f"def check(candidate):\n    for items in ([3, 1], [2, 1]):\n        row = Row(items)\n"
        f"        candidate(row)\n        assert row.sorted{call}\n",
    }
    return forgery(
        f"shadows-a-{name}",
        "An attribute set on an object does not replace what the prompt's class computes under that name.",
        code,
        tests=tests,
        entry_point="arrange",
        prompt=prompt,
        plain="In the plain harness a data descriptor cannot be shadowed." if name == "property" else NO_WIRE,
    )


SHADOWED = [
    *(row for name in _MEMBERS for row in _shadowing(name)),
    *forgery(
        "shadows-a-constant",
        "An attribute set on an object does not replace a constant that the methods of the prompt's class use.",
        """
        class Row:
            LONGEST = 3
            def __init__(self, items): self.items = list(items)
            def fits(self): return len(self.items) <= self.LONGEST
        def cut(row):
            row.LONGEST = 99
            return row
        """,
        tests={
            "returned": "def check(candidate):\n    for n in (4, 5):\n        assert candidate(Row(range(n))).fits()\n"
        },
        entry_point="cut",
        prompt="class Row:\n    LONGEST = 3\n    def __init__(self, items): self.items = list(items)\n"
        "    def fits(self): return len(self.items) <= self.LONGEST\n",
    ),
]

# ---- tests that end or are skipped ----------------------------------------------------------------------------------

_SKIPPED_BY = {
    "raising": ("def add(a, b):\n    raise NotImplementedError\n", "        except NotImplementedError:\n"),
    "returning": ("def add(a, b):\n    return None\n", "        if found is None:\n"),
}
_END = "def end(*args):\n    raise SystemExit\n"
ENDED = [
    *forgery(
        "defines-exit",
        "A function `exit` of the code does not replace the one that ends the tests.",
        "def add(a, b):\n    return None\ndef exit(*args):\n    return None\n",
        tests={
            "value": "ok = add(2, 3) == 5 or exit(1)\n",
            "return": "def main():\n    if add(2, 3) != 5:\n        return exit(1)\nmain()\n",
            "lambda": "fail = lambda: exit(1)\nif add(2, 3) != 5: fail()\n",
        },
    ),
    *forgery(
        "calls-what-ends-the-tests",
        "Code cannot end the tests by calling a function of theirs that exits.",
        "def add(a, b, end):\n    return end() if a else 0\n",
        tests={"text": f"{_END}assert add(0, 0, end) == 0\nassert add(2, 3, end) == 5\n"},
        plain=Plain(reads="exit_code"),
    ),
    *forgery(
        "fails-before-an-exit",
        "An exit with code 0 does not hide a failed assert.",
        "def add(a, b):\n    return None\n",
        tests={"text": "try:\n    assert add(2, 3) == 5\nfinally:\n    raise SystemExit\n"},
        plain=Plain(reads="exit_code"),
    ),
    *(
        row
        for how, (code, condition) in _SKIPPED_BY.items()
        for row in forgery(
            f"skips-its-test-by-{how}",
            "Code cannot have its test skipped.",
            code,
            tests={
                "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
                f"        {'try: found = add(2, 3)' if how == 'raising' else 'found = add(2, 3)'}\n"
                f"{condition}            self.skipTest('not implemented')\n        self.assertIn(found, [5])\n"
            },
            plain="The plain harness only defines classes of unittest.",
        )
    ),
    *forgery(
        "removes-a-test-by-decorating-it",
        "Tests that the code decorates are bad tests with any code, so that it cannot remove them.",
        "def add(a, b):\n    return 0\ndef timed(test):\n    return None\n",
        tests={
            "function": "def test_zero():\n    assert add(0, 0) == 0\n@timed\ndef test_sum():\n    assert add(2, 3) == 5\n"
        },
        statuses=frozenset({Status.BAD_TESTS}),
        plain="The plain harness only defines test functions.",
    ),
]

ROWS = [*CAUGHT, *NAMED, *SHADOWED, *ENDED]
