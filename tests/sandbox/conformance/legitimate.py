"""Legitimate programs, common and unusual (kind P): they pass, or end with the right status."""

from typing import Any

from sandbox.limits import Limits
from sandbox.verdicts.jobs import Job
from sandbox.verdicts.results import Outcome, Status
from tests.sandbox.conformance.case import ADD_TESTS, SHORT, Case, Tests, call_job, function_job, program_job
from tests.sandbox.conformance.host import Host

PASSED = frozenset({Status.PASSED})
COMPLETED = frozenset({Status.COMPLETED})


def passing_row(id: str, promise: str, code: str, tests: Tests, *, entry_point: str = "f", **options: Any) -> Case:
    """A correct function that must pass."""
    job = function_job(code, tests, entry_point, **options)
    return Case(id, "P", promise, lambda host: job, PASSED)


def named(id: str, promise: str, job: Job, *statuses: Status, stdout: str | None = None, value: Any = None) -> Case:
    """Anything else, with the statuses it may end in, and what it must have printed or returned."""

    def holds(outcome: Outcome, host: Host) -> str | None:
        if stdout is not None and outcome.stdout != stdout:
            return f"It printed {outcome.stdout!r} instead of {stdout!r}."
        if value is not None and outcome.value != value:
            return f"It returned {outcome.value!r} instead of {value!r}."
        return None

    return Case(id, "P", promise, lambda host: job, frozenset(statuses), holds=holds)


CORRECT = [
    passing_row(
        f"correct/{form}", "A correct solution passes.", "def add(a, b): return a + b\n", tests, entry_point="add"
    )
    for form, tests in ADD_TESTS.items()
]

WRONG = [
    named(
        f"wrong/{form}",
        "A wrong solution is reported as a failed assertion.",
        function_job("def add(a, b): return a - b\n", tests),
        Status.ASSERTION,
    )
    for form, tests in ADD_TESTS.items()
]

SAME = {
    "literal": "def check(candidate):\n    assert candidate() == {value}\n",
    "judged": "import math\nfrom decimal import Decimal\nimport datetime\ndef check(candidate):\n    for _ in range(1):\n        assert candidate() == {value}\n",
}

VALUES = {
    "negative-zero": "-0.0",
    "huge-int": "10**4000 + 7",
    "negative-huge-int": "-(2**64)",
    "tuple": "(1, (2, 3), [])",
    "set": "{1, 2, 3}",
    "empty-set": "set()",
    "frozenset": "frozenset({1, 2})",
    "nested-dict": "{'a': {'b': [{'c': (1, 2)}]}, 'd': {}}",
    "dict-with-other-keys": "{1: 'a', (1, 2): 'b', None: 'c', 1.5: 'd'}",
    "bytes": "b'\\x00\\xff'",
    "complex": "1 + 2j",
    "none": "None",
    "booleans": "[True, False]",
    "inf": "float('inf')",
    "text": "'\\x00 \\u2603 \\U0001f600 \\x7f'",
    "surrogate": "'\\ud800'",
    "deep-enough": "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]",
}

ROUND_TRIPS = [
    passing_row(
        f"value-{name}/{form}",
        "A value of a built-in type is returned unchanged.",
        f"def f():\n    return {value}\n",
        text.replace("{value}", value),
    )
    for name, value in VALUES.items()
    for form, text in SAME.items()
]

JUDGED = "def check(candidate):\n    for x in (1, 2):\n        "

ODD_VALUES = [
    passing_row(
        "nan",
        "A NaN is returned as NaN, which equals nothing.",
        "def f(x):\n    return float('nan')\n",
        "import math\n" + JUDGED + "assert math.isnan(candidate(x))\n        assert candidate(x) != candidate(x)\n",
    ),
    named(
        "nan-is-not-equal",
        "A NaN equals not even an expected NaN.",
        function_job("def f(x):\n    return float('nan')\n", [{"args": [1], "expect": float("nan")}], "f"),
        Status.ASSERTION,
    ),
    named(
        "tuple-is-no-list",
        "A tuple is not the list that a test expects.",
        function_job("def f(x):\n    return (x,)\n", "def check(candidate):\n    assert candidate(1) == [1]\n", "f"),
        Status.ASSERTION,
    ),
    named(
        "bool-and-int",
        "True equals 1, as it does in Python.",
        function_job("def f(x):\n    return True\n", "def check(candidate):\n    assert candidate(1) == 1\n", "f"),
        Status.PASSED,
    ),
    passing_row(
        "decimal",
        "A Decimal is returned as a Decimal.",
        "from decimal import Decimal\ndef f(x):\n    return Decimal(x) / 4\n",
        "from decimal import Decimal\n" + JUDGED + "assert candidate(x) == Decimal(x) / 4\n",
    ),
    passing_row(
        "datetime",
        "Dates and times are returned unchanged.",
        "import datetime\ndef f(x):\n    return [datetime.date(2024, 2, 29), datetime.timedelta(days=x)]\n",
        "import datetime\n"
        + JUDGED
        + "assert candidate(x) == [datetime.date(2024, 2, 29), datetime.timedelta(days=x)]\n",
    ),
    passing_row(
        "generator",
        "A generator can be listed by the tests.",
        "def f(x):\n    for i in range(x):\n        yield i\n",
        "def check(candidate):\n    for n in (0, 3):\n        assert list(candidate(n)) == list(range(n))\n",
    ),
    passing_row(
        "generator-literal",
        "A generator can be listed by tests that are literal.",
        "def f(x):\n    for i in range(x):\n        yield i\n",
        "def check(candidate):\n    assert list(candidate(3)) == [0, 1, 2]\n",
    ),
    passing_row(
        "mutated-argument",
        "A list changed in place is changed for the tests as well.",
        "def f(items):\n    items.sort()\n    items.append(9)\n",
        "def check(candidate):\n    items = [3, 1, 2]\n    assert candidate(items) is None\n    assert items == [1, 2, 3, 9]\n",
    ),
    passing_row(
        "mutated-nested-argument",
        "A dict changed deep inside is changed for the tests as well.",
        "def f(data):\n    data['a']['b'].append(2)\n    data['c'] = {3}\n",
        "def check(candidate):\n    data = {'a': {'b': [1]}}\n    candidate(data)\n    assert data == {'a': {'b': [1, 2]}, 'c': {3}}\n",
    ),
    passing_row(
        "class",
        "A class can be instantiated, used and compared, and its attributes can be read.",
        """
        class Stack:
            def __init__(self, items=()): self.items = list(items)
            def push(self, x): self.items.append(x); return self
            def pop(self): return self.items.pop()
            def __len__(self): return len(self.items)
        """,
        """
def check(candidate):
    stack = candidate([1])
    stack.push(2).push(3)
    assert len(stack) == 3
    assert stack.pop() == 3
    assert stack.items == [1, 2]
""",
        entry_point="Stack",
    ),
    passing_row(
        "expected-exception",
        "An exception that the tests expect can be caught by its class.",
        "def f(x):\n    raise ValueError(f'no {x}')\n",
        JUDGED
        + "try:\n            candidate(x)\n        except ValueError as error:\n            assert 'no' in str(error)\n        else:\n            assert False\n",
    ),
    passing_row(
        "callback",
        "A function among the arguments can be called.",
        "def f(g, x):\n    return g(g(x))\n",
        "def check(candidate):\n    assert candidate(lambda x: x + 1, 1) == 3\n",
    ),
    passing_row(
        "prompt-helper",
        "The tests may use what the prompt defines.",
        "def twice(x): return 2 * x\ndef f(x): return twice(x) + 1\n",
        "def check(candidate):\n    for x in (1, 2):\n        assert candidate(x) == twice(x) + 1\n",
        prompt="def twice(x): return 2 * x\ndef f(x):\n    ",
    ),
    passing_row(
        "large-but-allowed",
        "An answer of a megabyte passes.",
        "def f(x):\n    return 'x' * (1 << 20)\n",
        "def check(candidate):\n    assert len(candidate(1)) == 1048576\n",
    ),
    passing_row(
        "two-megabytes-of-source",
        "Source of two megabytes runs.",
        "DATA = '" + "x" * (2 << 20) + "'\ndef f(x):\n    return len(DATA)\n",
        "def check(candidate):\n    assert candidate(1) == 2097152\n",
    ),
    passing_row(
        "noise",
        "Output printed by a solution does not affect its result.",
        "import sys\ndef f(x):\n    print('passed', file=sys.stderr)\n    print('{}')\n    return x\n",
        "def check(candidate):\n    assert candidate(1) == 1\n",
    ),
    passing_row(
        "threads",
        "A solution may use a few threads.",
        """
        import threading
        def f(x):
            found = []
            threads = [threading.Thread(target=found.append, args=(i,)) for i in range(8)]
            for t in threads: t.start()
            for t in threads: t.join()
            return sorted(found)
        """,
        "def check(candidate):\n    assert candidate(1) == [0, 1, 2, 3, 4, 5, 6, 7]\n",
    ),
]

VECTOR = """
class Vector:
    def __init__(self, x, y): self.x, self.y = x, y
    def __add__(self, other): return Vector(self.x + other.x, self.y + other.y)
    def __sub__(self, other): return Vector(self.x - other.x, self.y - other.y)
    def __mul__(self, k): return Vector(self.x * k, self.y * k)
    __rmul__ = __mul__
    def __neg__(self): return self * -1
    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
    def __eq__(self, other): return (self.x, self.y) == (other.x, other.y)
    def __lt__(self, other): return abs(self) < abs(other)
    def __repr__(self): return f"Vector({self.x}, {self.y})"
    def scaled(self, k): return Vector(self.x * k, self.y * k)
    def dot(self, other): return self.x * other.x + self.y * other.y
    def count(self, n): return [self.x, self.y].count(n)
    def norm(self): return abs(self)
    @classmethod
    def of(cls, text): return cls(*map(int, text.split()))
    class Unit:
        def __init__(self): self.size = 1
        def double(self): return 2 * self.size
def middle(a, b): return (a + b) * 0.5
class Node:
    def __init__(self, value, parent=None):
        self.value, self.parent, self.children = value, parent, []
    def add(self, value):
        self.children.append(Node(value, self))
        return self.children[-1]
    def insert(self, value):
        self.value = value
        return self
def grow(value): return Node(value).add(value + 1)
"""
USES = {
    "operators": "Vector(1, 2) + Vector(3, 4) == Vector(4, 6) and Vector(4, 6) - Vector(1, 2) != Vector(0, 0)",
    "built-in-operand": "Vector(1, 2) * 3 == 3 * Vector(1, 2) == Vector(3, 6)",
    "operand-of-a-result": "(Vector(1, 2) + Vector(0, 1)) * 2 == Vector(2, 6)",
    "unary": "-Vector(1, 2) == Vector(-1, -2) and abs(Vector(3, 4)) == 5",
    "order": "Vector(1, 2) < Vector(3, 4) and sorted([Vector(3, 4), Vector(0, 1)])[0].y == 1",
    "methods": "Vector(1, 2).scaled(3).scaled(2).dot(Vector(1, 1)) == 18 and Vector(1, 1).count(1) == 2",
    "text": "repr(Vector(1, 2) * 2) == 'Vector(2, 4)'",
    "classmethod": "Vector.of('3 4').norm() == 5 and Vector.of('3 4') == Vector(3, 4)",
    "nested-class": "Vector.Unit().double() == 2",
    "result-of-a-function": "middle(Vector(0, 0), Vector(6, 8)).norm() == 5 and middle(Vector(0, 0), Vector(2, 2)).x == 1",
    "returns-itself": "(lambda node: node.insert(5) is node and node.value == 5)(Node(1))",
    "identity": "(lambda root: root.add(2).parent is root and root.children[0].parent is root)(Node(1))",
    "attributes-of-attributes": "grow(1).parent.value == 1 and grow(1).value == 2",
}
CLASSES = [
    passing_row(
        f"uses-a-class-{name}",
        "Tests of a class can use its objects as in one process.",
        VECTOR,
        f"assert {condition}\n",
    )
    for name, condition in USES.items()
]

THREADED = [
    passing_row(
        f"threads-of-the-tests-{name}",
        "Tests may call the code from several threads.",
        "import time\nclass Counter:\n    def __init__(self): self.n = 0\n    def inc(self): self.n += 1\n"
        "def f(x):\n    time.sleep(0.001)\n    return x + 1\ndef apply(g, x): return g(x)\n",
        text,
    )
    for name, text in {
        "calls": "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as threads:\n"
        "    assert list(threads.map(f, range(40))) == list(range(1, 41))\n",
        "methods": "import threading\ncounter = Counter()\n"
        "threads = [threading.Thread(target=lambda: [counter.inc() for _ in range(20)]) for _ in range(8)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()\nassert counter.n == 160\n",
        "callbacks": "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as threads:\n"
        "    assert list(threads.map(lambda x: apply(lambda y: f(y) + x, x), range(20))) == [2 * x + 1 for x in range(20)]\n",
    }.items()
]

CATCHING = [
    passing_row(
        f"expected-exception-{name}",
        "Tests that expect an exception may catch everything.",
        "def f(x):\n    raise ValueError(x)\n",
        f"def check(candidate):\n    raised = False\n    {text}\n    assert raised\n",
    )
    for name, text in {
        "bare": "try: candidate(1)\n    except: raised = True",
        "base-exception": "try: candidate(1)\n    except BaseException: raised = True",
        "suppress": "import contextlib\n    raised = True\n    with contextlib.suppress(Exception):\n"
        "        candidate(1)\n        raised = False",
    }.items()
]

ODD_SOURCES = [
    named(
        "nul-in-source",
        "A NUL in the source is a syntax error.",
        function_job("def f(x):\n    return 1\n\0", "def check(candidate):\n    assert candidate(1) == 1\n", "f"),
        Status.SYNTAX_ERROR,
    ),
    named(
        "surrogate-in-source",
        "A lone surrogate in the source is a syntax error or runs.",
        function_job(
            "x = '\ud800'\ndef f(x):\n    return 1\n", "def check(candidate):\n    assert candidate(1) == 1\n", "f"
        ),
        Status.SYNTAX_ERROR,
        Status.PASSED,
    ),
    named(
        "deep-source",
        "Source nested too deeply for the parser is a syntax error.",
        function_job(
            "x = " + "(" * 5000 + ")" * 5000 + "\n", "def check(candidate):\n    assert candidate(1) == 1\n", "f"
        ),
        Status.SYNTAX_ERROR,
        Status.EXITED,
        Status.MEMORY_LIMIT,
    ),
    named(
        "missing-entry-point",
        "Code that does not define the entry point is reported as such.",
        function_job("def g(x): return 1\n", "def check(candidate):\n    assert candidate(1) == 1\n", "f"),
        Status.MISSING_ENTRY_POINT,
    ),
    named(
        "broken-tests",
        "Tests that do not compile do not count against the code.",
        function_job("def f(x): return 1\n", "def check(candidate):\n    assert candidate(1) ==\n", "f"),
        Status.BAD_TESTS,
    ),
    named(
        "no-asserts",
        "Tests without asserts do not count against the code.",
        function_job(
            "def f(x): return 1\n", "def check(candidate):\n    for x in (1, 2):\n        candidate(x)\n", "f"
        ),
        Status.BAD_TESTS,
        Status.PASSED,
    ),
]

PROGRAMS = [
    named(
        "prints", "The output of a program is returned.", program_job("print('hello')"), *COMPLETED, stdout="hello\n"
    ),
    named(
        "stdin",
        "A program can read all of its input.",
        program_job("import sys\nprint(sum(map(int, sys.stdin.read().split())))", stdin="1 2\n3\n"),
        *COMPLETED,
        stdout="6\n",
    ),
    named(
        "stdin-at-its-end",
        "A program that reads at the end of its input gets an end of file.",
        program_job("import sys\nprint(repr(sys.stdin.read()), repr(sys.stdin.read()))\ninput()"),
        Status.EXCEPTION,
        stdout="'' ''\n",
    ),
    named(
        "invalid-utf-8",
        "Output that is not UTF-8 is returned with the invalid bytes replaced.",
        program_job("import os\nos.write(1, b'a\\xff\\xfeb')"),
        *COMPLETED,
        stdout="a\ufffd\ufffdb",
    ),
    *(
        named(
            f"database-in-a-file/{role}",
            "A database in a file of the run works, although SQLite locks its file.",
            program_job(
                "import sqlite3\nfor n in (1, 2):\n    with sqlite3.connect('data.db') as db:\n"
                "        db.execute('create table if not exists t (x)')\n        db.execute('insert into t values (?)', [n])\n"
                "print(db.execute('select sum(x) from t').fetchone()[0])",
                limits,
            ),
            *COMPLETED,
            stdout="3\n",
        )
        for role, limits in (("program", SHORT), ("family", Limits(cpu_s=1, wall_s=2, processes=4)))
    ),
    named(
        "locks-its-own-file",
        "A program that locks a file of its own gets the lock.",
        program_job(
            "import fcntl\nfile = open('x', 'w')\nfcntl.flock(file, fcntl.LOCK_EX)\nfcntl.lockf(file, fcntl.LOCK_EX)\n"
            "print('locked')"
        ),
        *COMPLETED,
        stdout="locked\n",
    ),
    named(
        "exit-code",
        "The exit code of a program that exits is reported.",
        program_job("import sys\nprint('x')\nsys.exit(3)"),
        Status.EXITED,
        Status.COMPLETED,
        stdout="x\n",
    ),
    named(
        "files-and-arguments",
        "A program finds its files and arguments, and can write files next to them.",
        program_job(
            "import sys, helper\nopen('out.txt', 'w').write('y')\nprint(helper.x, open('data/in.txt').read(), *sys.argv[1:])",
            files={"helper.py": b"x = 1", "data/in.txt": b"z"},
            argv=("a", "b c"),
        ),
        *COMPLETED,
        stdout="1 z a b c\n",
    ),
    named(
        "call",
        "A call receives JSON arguments and returns JSON.",
        call_job(
            "def pay(state, amount):\n    state['paid'] += amount\n    return [state, 'ok']\n", "pay", {"paid": 1}, 2
        ),
        *COMPLETED,
        value=[{"paid": 3}, "ok"],
    ),
    named(
        "call-not-json",
        "A call that returns a value that is not JSON is reported as such.",
        call_job("def f():\n    return {1, 2}\n", "f"),
        Status.NOT_JSON,
    ),
    named(
        "call-too-large",
        "A call that returns more than the limit is reported as such.",
        call_job("def f():\n    return 'x' * 2000\n", "f", max_result_bytes=1000),
        Status.OUTPUT_LIMIT,
    ),
    named(
        "call-hangs",
        "A call that hangs ends at the time limit.",
        call_job("import time\ndef f():\n    time.sleep(60)\n", "f", limits=Limits(cpu_s=1, wall_s=1)),
        Status.TIMEOUT,
    ),
    named(
        "call-dies",
        "A call that ends its process is reported as such.",
        call_job("import os\ndef f():\n    os._exit(0)\n", "f"),
        Status.EXITED,
    ),
    named(
        "call-prints-a-result",
        "Text printed by a call is not its result.",
        call_job("import os\ndef f():\n    print('{\"value\": 1}', flush=True)\n    os._exit(0)\n", "f", limits=SHORT),
        Status.EXITED,
    ),
]

ROWS = [*CORRECT, *WRONG, *ROUND_TRIPS, *ODD_VALUES, *CLASSES, *THREADED, *CATCHING, *ODD_SOURCES, *PROGRAMS]
