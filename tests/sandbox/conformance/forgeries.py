"""Forgeries by what a function returns and by ending the process (kind F)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sandbox.verdicts.results import Status
from tests.sandbox.conformance.case import ADD_TESTS, FORGED, Case, Plain, Tests, function_job

IN_ONE_PROCESS = Plain()


def forgery(
    id: str,
    promise: str,
    code: str,
    *,
    tests: Mapping[str, Tests] = ADD_TESTS,
    plain: Plain | str = IN_ONE_PROCESS,
    statuses: frozenset[Status] = FORGED,
    skips: Mapping[str, str] = MappingProxyType({}),
    **options: Any,
) -> list[Case]:
    """Return a row for each form of the tests. Only the first form has to pass in the plain harness."""
    rows = []
    for number, (form, text) in enumerate(tests.items()):
        built = function_job(code, text, **options)
        bites = plain if number == 0 else "Demonstrated with the first form of the tests only."
        rows.append(
            Case(f"{id}/{form}", "F", promise, lambda host, job=built: job, statuses, skips=skips, plain=bites)  # type: ignore[misc]
        )
    return rows


CLOSE_TESTS = {
    "literal": "def check(candidate):\n    assert abs(candidate(1.0) - 2.0) < 1e-6\n",
    "judged": "def check(candidate):\n    for x in (1.0, 4.0):\n        assert abs(candidate(x) - 2 * x) < 1e-6\n",
}

LOOKS_EQUAL = """
class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
"""

RETURNED = [
    *forgery(
        "always-equal",
        "An object whose __eq__ returns True equals nothing.",
        LOOKS_EQUAL + "def add(a, b):\n    return Any()\n",
    ),
    *forgery(
        "int-subclass",
        "A subclass of int is compared by its number, not by its own __eq__.",
        """
        class Sly(int):
            def __eq__(self, other): return True
            def __ne__(self, other): return False
            __hash__ = int.__hash__
        def add(a, b):
            return Sly(-1)
        """,
    ),
    *forgery(
        "list-subclass",
        "A subclass of list is compared by its items, not by its own __eq__.",
        """
        class Sly(list):
            def __eq__(self, other): return True
            def __len__(self): return 3
            def __getitem__(self, i): return i + 1
        def count(n):
            return Sly()
        """,
        tests={
            "literal": "def check(candidate):\n    assert candidate(3) == [1, 2, 3]\n",
            "judged": "def check(candidate):\n    n = 3\n    assert candidate(n) == list(range(1, n + 1))\n",
            "rows": [{"args": [3], "expect": [1, 2, 3]}],
        },
        entry_point="count",
    ),
    *forgery(
        "str-subclass",
        "A subclass of str is compared by its text, not by its own __eq__.",
        """
        class Sly(str):
            def __eq__(self, other): return True
            __hash__ = str.__hash__
        def shout(text):
            return Sly("no")
        """,
        tests={
            "literal": "def check(candidate):\n    assert candidate('a') == 'A!'\n",
            "judged": "def check(candidate):\n    for t in 'ab':\n        assert candidate(t) == t.upper() + '!'\n",
        },
        entry_point="shout",
    ),
    *forgery(
        "nested-always-equal",
        "An object whose __eq__ returns True equals nothing inside a list or a dict either.",
        LOOKS_EQUAL + "def pair(a):\n    return [Any(), {'sum': Any()}]\n",
        tests={
            "literal": "def check(candidate):\n    assert candidate(1) == [1, {'sum': 2}]\n",
            "judged": "def check(candidate):\n    for a in (1, 2):\n        assert candidate(a) == [a, {'sum': a + 1}]\n",
            "rows": [{"args": [1], "expect": [1, {"sum": 2}]}],
        },
        entry_point="pair",
    ),
    *forgery(
        "faked-tolerance",
        "A tolerance is computed from numbers, not by the __sub__ and __abs__ of the returned object.",
        """
        class Near:
            def __sub__(self, other): return self
            __rsub__ = __sub__
            def __abs__(self): return 0.0
            def __lt__(self, other): return True
            __le__ = __lt__
            def __float__(self): return 2.0
        def double(x):
            return Near()
        """,
        tests=CLOSE_TESTS,
        entry_point="double",
    ),
    *forgery(
        "float-subclass-tolerance",
        "A float subclass that fakes its difference is compared by its number.",
        """
        class Near(float):
            def __sub__(self, other): return 0.0
            __rsub__ = __sub__
        def double(x):
            return Near(99.0)
        """,
        tests=CLOSE_TESTS,
        entry_point="double",
    ),
    *forgery(
        "claims-a-class",
        "An object that names int as its __class__ is still not a number.",
        LOOKS_EQUAL + "    __class__ = property(lambda self: int)\ndef add(a, b):\n    return Any()\n",
    ),
    *forgery(
        "faked-membership",
        "A container whose __contains__ is always true is compared by its items.",
        """
        class Everything(list):
            def __contains__(self, item): return True
            def __len__(self): return 2
            def __bool__(self): return True
        def evens(n):
            return Everything()
        """,
        tests={
            "literal": "def check(candidate):\n    assert 2 in candidate(4)\n    assert len(candidate(4)) == 2\n",
            "judged": "def check(candidate):\n    for n in (2, 4):\n        assert n in candidate(4)\n",
        },
        entry_point="evens",
    ),
    *forgery(
        "equal-from-a-method",
        "The result of a method of the candidate's class is compared by the test judge, not by the candidate.",
        LOOKS_EQUAL
        + "class Stack:\n    def push(self, x): pass\n    def pop(self): return Any()\n    def items(self): return [Any()]\n",
        tests={
            "judged": """
def check(candidate):
    stack = candidate()
    stack.push(1)
    assert stack.items() == [1]
    assert stack.pop() == 1
"""
        },
        entry_point="Stack",
    ),
    *forgery(
        "equal-in-an-argument",
        "A value that the candidate writes into an argument is compared by its value.",
        LOOKS_EQUAL + "def arrange(items):\n    items[:] = [Any() for _ in items]\n",
        tests={
            "judged": """
def check(candidate):
    items = [3, 1, 2]
    candidate(items)
    assert items == [1, 2, 3]
"""
        },
        entry_point="arrange",
    ),
    *forgery(
        "reduce-bomb",
        "No returned value is unpickled, so __reduce__ is never called.",
        """
        class Bomb:
            def __reduce__(self): return (exec, ("raise SystemExit(0)",))
            __reduce_ex__ = lambda self, protocol: self.__reduce__()
        def add(a, b):
            return Bomb()
        """,
        plain="The plain harness keeps the value in its own process and never pickles it.",
    ),
]

ENDED = [
    *forgery(
        "exit-on-import",
        "Exiting with code 0 on import does not pass.",
        "import sys\nsys.exit(0)\ndef add(a, b): return 0\n",
        plain=Plain("exit_code"),
    ),
    *forgery(
        "os-exit-in-the-call",
        "os._exit(0) in the call does not pass.",
        "import os\ndef add(a, b):\n    os._exit(0)\n",
        plain=Plain("exit_code"),
    ),
    *forgery(
        "kills-the-engine",
        "Code that kills its parent processes fails with a status that says so; it neither passes nor is left without an outcome.",
        """
        import os, signal
        def add(a, b):
            for pid in (os.getppid(), 0):
                try:
                    if pid != os.getpid():
                        os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
            os._exit(0)
        """,
        plain="In the plain harness it kills the harness.",
    ),
    *forgery(
        "system-exit-in-the-call",
        "Raising SystemExit(0) in the call does not pass.",
        "def add(a, b):\n    raise SystemExit(0)\n",
        plain=Plain("exit_code"),
    ),
    *forgery(
        "atexit-prints-a-pass",
        "Text printed by the candidate at exit is output, not a verdict.",
        """
        import atexit
        atexit.register(print, '{"passed": true}')
        def add(a, b):
            return 0
        """,
        plain=Plain("stdout"),
    ),
    *forgery(
        "prints-a-verdict",
        "A verdict printed by the candidate is output, not a verdict.",
        """
        import os, sys
        def add(a, b):
            for text in ('{"status": "passed", "passed": 2, "total": 2}', '{"passed": true}'):
                print(text, flush=True)
                print(text, file=sys.stderr, flush=True)
            os._exit(0)
        """,
        plain=Plain("stdout"),
    ),
    *forgery(
        "raises-assertion-error",
        "An AssertionError raised by the candidate is a failure.",
        "def add(a, b):\n    raise AssertionError('passed')\n",
        plain="In the plain harness, too, an exception of the code fails the tests.",
    ),
    *forgery(
        "unclosed-quote",
        "Code and tests are compiled separately, so an unclosed quote hides no test.",
        'def add(a, b): return 0\ndef check(candidate): pass\nif False:\n    """',
        tests={"judged": 'def check(candidate):\n    """# adds"""\n    assert candidate(2, 3) == 5\n'},
        statuses=frozenset({Status.SYNTAX_ERROR}),
    ),
    *forgery(
        "open-continuation",
        "Code and tests are compiled separately, so a trailing backslash hides no test.",
        "def add(a, b): return 0\nif False: \\",
        tests={"lines": ["assert add(2, 3) == 5"]},
        statuses=frozenset({Status.SYNTAX_ERROR}),
    ),
]

ROWS = [*RETURNED, *ENDED]
