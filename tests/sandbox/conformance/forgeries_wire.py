"""Forgeries by messages, by files on disk, and by functions and objects of the tests (kind F)."""

import os

from sandbox.verdicts.results import Status
from tests.sandbox.conformance.case import ADD_TESTS, FORGED, Case, Plain, Tests, function_job
from tests.sandbox.conformance.forgeries import LOOKS_EQUAL, forgery
from tests.sandbox.conformance.host import Host

NO_WIRE = "The plain harness calls the code directly; there is no wire to write to."

SPEAKS = """
import json, os, struct
def frame(kind, payload):
    return struct.pack(">IB", len(payload), ord(kind)) + payload
def everywhere(data):
    for fd in range(64):
        try:
            os.write(fd, data)
        except OSError:
            pass
"""

WIRE = [
    *forgery(
        "bytes-on-every-descriptor",
        "Bytes written to a descriptor are not taken for a verdict.",
        """
        import os
        def add(a, b):
            for fd in range(64):
                try:
                    os.write(fd, b"passed")
                except OSError:
                    pass
            os._exit(0)
        """,
    ),
    *forgery(
        "forged-verdict-frame",
        "A well-formed frame with a verdict is not accepted from the candidate.",
        SPEAKS
        + """
def add(a, b):
    for kind in "VBPXRDGS":
        for claim in ({"passed": 2, "total": 2}, {"status": "passed"}, {"tests": 2, "passed": 2, "failed": 0},
                      {"done": True}, {"verdict": "passed", "passed": 2, "total": 2}, {"finished": 2}):
            everywhere(frame(kind, json.dumps(claim).encode()))
    os._exit(0)
""",
        plain=NO_WIRE,
    ),
    *forgery(
        "forged-engine-frame",
        "A frame of the engine's own protocol is not accepted from a run.",
        SPEAKS
        + """
def add(a, b):
    head = json.dumps({"code": 0, "why": "", "begun": True, "fault": "", "cpu_ms": 1, "peak_mb": 1, "wall_ms": 1, "cut": False})
    parts = [head.encode(), b"", b""]
    body = b"".join(struct.pack(">I", len(part)) + part for part in parts)
    for session in range(1, 16):
        everywhere(struct.pack(">IHB", len(body), session, ord("X")) + body)
    os._exit(0)
""",
        plain=NO_WIRE,
    ),
    *forgery(
        "early-answers",
        "Replies sent before their requests are not accepted.",
        SPEAKS
        + """
for number in range(0, 8):
    for value in (5, 42):
        for kind in "VP":
            for key in ("n", "id", "call"):
                everywhere(frame(kind, json.dumps({key: number, "value": value}).encode()))
def add(a, b):
    return 0
""",
        plain=NO_WIRE,
    ),
    *forgery(
        "extra-answers",
        "A second reply to a request is not used for the next request.",
        SPEAKS
        + """
def add(a, b):
    for value in (5, 42):
        for number in range(0, 8):
            everywhere(frame("V", json.dumps({"n": number, "value": value}).encode()))
            everywhere(frame("P", json.dumps({"n": number, "value": value}).encode()))
    return 0
""",
        plain=NO_WIRE,
    ),
    *forgery(
        "peer-gone",
        "A candidate that reports its own end, or never replies, does not pass.",
        SPEAKS + "def add(a, b):\n    everywhere(frame('G', b''))\n    os.close(3)\n    os._exit(0)\n",
        plain=NO_WIRE,
    ),
    *forgery(
        "broken-frames",
        "An incomplete frame, a frame without a tag and a frame that is not JSON do not pass.",
        SPEAKS
        + """
def add(a, b):
    everywhere(frame("V", b"not json") + frame("P", b"{") + frame("V", b"[]") + frame("P", b'{"n": 1, "value": {"z": 1}}'))
    everywhere(struct.pack(">IB", 1000, ord("V")) + b"half")
    os._exit(0)
""",
        plain=NO_WIRE,
    ),
    *forgery(
        "half-a-frame",
        "A frame that is never completed ends at the time limit.",
        SPEAKS
        + "import time\ndef add(a, b):\n    everywhere(struct.pack('>IB', 9, ord('V')) + b'[')\n    time.sleep(60)\n",
        tests={form: ADD_TESTS[form] for form in ("literal", "judged")},
        statuses=frozenset({Status.TIMEOUT, Status.TAMPERED, Status.OUTPUT_LIMIT}),
        plain=NO_WIRE,
    ),
    *forgery(
        "announces-too-much",
        "A frame whose header announces four gigabytes is rejected at once.",
        SPEAKS
        + "import time\ndef add(a, b):\n    everywhere(struct.pack('>IB', 2**32 - 1, ord('P')))\n    time.sleep(60)\n",
        tests={form: ADD_TESTS[form] for form in ("literal", "judged")},
        statuses=frozenset({Status.TIMEOUT, Status.TAMPERED, Status.OUTPUT_LIMIT}),
        plain=NO_WIRE,
    ),
    *forgery(
        "patched-engine",
        "The engine's modules in the candidate's process can be replaced without changing the verdict.",
        LOOKS_EQUAL
        + """
import gc, json, sys, types
for name, module in list(sys.modules.items()):
    if getattr(module, "__name__", "").startswith(("engine", "sandbox", "__main__")) or "codec" in name:
        for attribute, value in list(vars(module).items()):
            if attribute in ("encode", "encode_safely"):
                setattr(module, attribute, lambda *args, **kwargs: 5)
            if attribute in ("failed", "total", "wrong"):
                setattr(module, attribute, 0)
json.dumps = lambda *args, **kwargs: '{"passed": 2, "total": 2, "n": 1, "value": 5}'
def add(a, b):
    return Any()
""",
        plain=NO_WIRE,
    ),
    *forgery(
        "peer-attributes",
        "The attributes of a handle give no access to the test judge.",
        """
        class Stack:
            def push(self, x):
                self.x = x
            def pop(self):
                raise AssertionError
            def __getattr__(self, name):
                if name.startswith("__"):
                    raise AttributeError(name)
                return self
            def __call__(self, *args, **kwargs):
                return self
            def __eq__(self, other): return True
            def __bool__(self): return True
        """,
        tests={
            "judged": """
def check(candidate):
    stack = candidate()
    stack.push(1)
    assert stack.size() == 1
    assert stack.peek == 7
"""
        },
        entry_point="Stack",
    ),
]

LYING_ABOUT = [
    *forgery(
        "reads-the-tests",
        "No file, argument or descriptor that the candidate can read contains the tests.",
        """
        import os, re, sys
        def texts():
            yield from sys.argv
            places = [globals().get("__file__", ""), sys.argv[0] if sys.argv else "", *os.listdir(".")]
            try:
                places += ["/proc/self/fd/" + fd for fd in os.listdir("/proc/self/fd")]
            except OSError:
                places += [f"/dev/fd/{n}" for n in range(16)]
            try:
                places.append("/proc/self/cmdline")
                places.append("/proc/%d/cmdline" % os.getppid())
            except OSError:
                pass
            for place in places:
                try:
                    fd = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
                    yield os.read(fd, 1 << 20).decode("utf-8", "replace")
                except OSError:
                    continue
        def add(a, b):
            for text in texts():
                found = re.search(r"\\(%d, %d\\) == (\\d+)" % (a, b), text)
                if found:
                    return int(found[1])
        """,
        plain=Plain("exit_code"),
    ),
    *forgery(
        "reads-the-judge's-files",
        "The candidate cannot see files that the tests write.",
        """
        import os, tempfile
        def add(a, b):
            for place in (*tempfile._candidate_tempdir_list(), "/dev/shm", "/box/work"):
                try:
                    return int(open(os.path.join(place, "expected")).read())
                except (OSError, ValueError):
                    continue
        """,
        tests={
            "judged": """
def check(candidate):
    import os, tempfile
    written = set()
    for a, b in ((2, 3), (40, 2)):
        for place in (*tempfile._candidate_tempdir_list(), "/dev/shm", "/box/work"):
            try:
                with open(os.path.join(place, "expected"), "w") as file:
                    file.write(str(a + b))
                written.add(file.name)
            except OSError:
                continue
        assert candidate(a, b) == a + b
    for path in written:
        os.unlink(path)
"""
        },
        skips={
            "C": "Tier C has no containment: files that tests write to a directory of the host can be read by everybody."
        },
    ),
    *forgery(
        "reads-the-setup",
        "Names that the tests' setup defines are not defined for the candidate.",
        """
        def add(a, b):
            import builtins, sys
            for place in (globals(), vars(sys.modules["__main__"]), vars(builtins)):
                if "reference" in place:
                    return place["reference"](a, b)
        """,
        tests={
            "judged": "def check(candidate):\n    for a, b in ((2, 3), (40, 2)):\n        assert candidate(a, b) == reference(a, b)\n"
        },
        setup="def reference(a, b):\n    return a + b\n",
    ),
    *forgery(
        "calls-the-judge's-argument",
        "A function passed by the tests gives no access to the test judge's namespace.",
        """
        def add(a, b):
            return b.__globals__["expected"][a]
        """,
        tests={
            "judged": """
expected = {1: 11, 2: 12}
def plus_ten(x):
    return x + 10
def check(candidate):
    assert candidate(1, plus_ten) == 11
    assert candidate(2, plus_ten) == 12
"""
        },
    ),
]

SECRETS = [
    Case(
        f"reads-the-environment/{form}",
        "F",
        "No environment variable that the candidate can read contains a secret of the host.",
        lambda host, form=form: function_job(  # type: ignore[misc]
            """
            import os
            def steal():
                found = [os.environ.get("LLMEVAL_PLANTED_KEY", "")]
                for pid in ("self", "1", str(os.getppid()), "2", "3"):
                    try:
                        found.append(open(f"/proc/{pid}/environ", "rb").read().decode("utf-8", "replace"))
                    except OSError:
                        continue
                for text in found:
                    at = text.find("llmeval-secret-")
                    if at >= 0:
                        return text[at:at + 31]
            """,
            _secret_tests(host)[form],
            "steal",
        ),
        FORGED,
        plain=Plain() if form == "literal" else "Demonstrated with the first form of the tests only.",
    )
    for form in ("literal", "rows")
]


_SAME_USER = "An engine that root did not start runs code as the user who owns the data folder."
SECRETS += [
    Case(
        f"reads-the-{name}-of-the-installation/{form}",
        "F",
        "The data folder of the product, with the database that has the tests, cannot be read by the code.",
        lambda host, name=name, form=form: function_job(  # type: ignore[misc]
            f"""
            import glob, re
            def steal():
                for path in [{str(host.var / name)!r}, *glob.glob({str(host.var / "*")!r})]:
                    try:
                        found = re.search(rb"llmeval-secret-[0-9a-f]{{16}}", open(path, "rb").read())
                    except OSError:
                        continue
                    if found:
                        return found[0].decode()
            """,
            _secret_tests(host)[form],
            "steal",
        ),
        FORGED,
        skips={} if os.geteuid() == 0 else {"C": _SAME_USER},
        plain=Plain() if form == "literal" else "Demonstrated with the first form of the tests only.",
    )
    for name in ("llmeval.sqlite3", "llmeval.sqlite3-wal", "secret_key")
    for form in ("literal", "rows", "judged", "lines", "unittest")
]


def _secret_tests(host: Host) -> dict[str, Tests]:
    return {
        "literal": f"def check(candidate):\n    assert candidate() == {host.secret!r}\n",
        "rows": [{"args": [], "expect": host.secret}],
        "judged": f"def check(candidate):\n    for _ in range(2):\n        assert candidate() == {host.secret!r}\n",
        "lines": [f"assert steal() == {host.secret!r}"],
        "unittest": "import unittest\nclass T(unittest.TestCase):\n"
        f"    def test(self):\n        self.assertEqual(steal(), {host.secret!r})\n",
    }


CAUGHT = frozenset({Status.TAMPERED, Status.ASSERTION, Status.EXCEPTION, Status.EXITED})
SHARED = {
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(add(2, 3), 5)\n"
}

IN_PROCESS = [
    *forgery(
        "in-process-always-equal",
        "If tests share the code's process, the negative control detects an object that equals everything.",
        LOOKS_EQUAL + "def add(a, b):\n    return Any()\n",
        tests=SHARED,
        statuses=CAUGHT,
        trust="in_process",
    ),
    *forgery(
        "in-process-patched-testcase",
        "If tests share the code's process, the negative control detects a patched TestCase.",
        """
        import unittest
        for name in ("assertEqual", "assertTrue", "fail"):
            setattr(unittest.TestCase, name, lambda *args, **kwargs: None)
        def add(a, b):
            return 0
        """,
        tests=SHARED,
        statuses=CAUGHT,
        trust="in_process",
    ),
    *forgery(
        "in-process-exit",
        "If tests share the code's process, exiting with code 0 does not pass.",
        "import os\ndef add(a, b):\n    os._exit(0)\n",
        tests=SHARED,
        statuses=CAUGHT,
        trust="in_process",
        plain=Plain("exit_code"),
    ),
    *forgery(
        "in-process-replaced-test",
        "If tests share the code's process, the negative control detects a test class whose tests the code removed.",
        """
        import sys, unittest
        unittest.TestCase.run = lambda self, result=None: (result.startTest(self), result.addSuccess(self), result.stopTest(self)) and result
        def add(a, b):
            return 0
        """,
        tests=SHARED,
        statuses=CAUGHT,
        trust="in_process",
    ),
]

ROWS = [*WIRE, *LYING_ABOUT, *SECRETS, *IN_PROCESS]
