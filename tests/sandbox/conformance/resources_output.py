"""Attacks on disk, output and readers of answers (kind C): contained, with the right status, and no effect afterwards."""

from sandbox.verdicts.jobs import Job
from sandbox.verdicts.results import Outcome, Status
from tests.sandbox.conformance.case import Case, call_job, function_job, program_job
from tests.sandbox.conformance.host import Host
from tests.sandbox.conformance.resources import OUT_OF_DISK, attack, greedy_function

ANSWERED = frozenset({Status.PASSED})


def small_supervisor(outcome: Outcome, host: Host, most_mb: int = 600) -> str | None:
    """Complains where this process, which the pool lives in, needed much memory since the row began."""
    grown_mb = host.memory_grown_mb()
    return f"The supervisor itself took {grown_mb} MB more." if grown_mb > most_mb else None


SENDS = """
import os, struct
def send(payload):
    data = memoryview(struct.pack(">IB", len(payload), ord("V")) + payload)
    while data:
        data = data[os.write(3, data):]
"""

ANSWERS = [
    greedy_function(
        "deep-list",
        "A list nested 200,000 deep is received as a value that equals nothing.",
        "def f(x):\n    v = []\n    for _ in range(200_000):\n        v = [v]\n    return v\n",
        "def check(candidate):\n    assert candidate(1) == [[]]\n",
        frozenset({Status.ASSERTION, Status.EXCEPTION, Status.OUTPUT_LIMIT, Status.UNSUPPORTED}),
    ),
    greedy_function(
        "deep-list-judged",
        "A list nested 200,000 deep does not crash the test judge.",
        "def f(x):\n    v = []\n    for _ in range(200_000):\n        v = [v]\n    return v\n",
        "def check(candidate):\n    for x in (1, 2):\n        assert candidate(x) == [x]\n",
        frozenset({Status.ASSERTION, Status.EXCEPTION, Status.OUTPUT_LIMIT, Status.UNSUPPORTED}),
    ),
    greedy_function(
        "self-containing-list",
        "A list that contains itself is received as a value that equals nothing.",
        "def f(x):\n    v = []\n    v.append(v)\n    return v\n",
        "def check(candidate):\n    assert candidate(1) == [[]]\n",
        frozenset({Status.ASSERTION, Status.EXCEPTION, Status.OUTPUT_LIMIT, Status.UNSUPPORTED}),
    ),
    greedy_function(
        "large-answer",
        "An answer of 64 MB is rejected because of its size.",
        "def f(x):\n    return 'x' * (64 << 20)\n",
        "def check(candidate):\n    assert candidate(1) == 'x'\n",
        frozenset({Status.OUTPUT_LIMIT}),
    ),
    greedy_function(
        "large-exception",
        "An exception with a message of 64 MB is cut.",
        "def f(x):\n    raise ValueError('x' * (64 << 20))\n",
        "def check(candidate):\n    assert candidate(1) == 'x'\n",
        frozenset({Status.EXCEPTION, Status.OUTPUT_LIMIT}),
    ),
    greedy_function(
        "handwritten-large-replies",
        "Handwritten replies with millions of empty lists are rejected before they are decoded.",
        SENDS
        + """
def f(x):
    for n in (1, 2, 3):
        send(b'{"n":%d,"value":[' % n + b"[]," * 5_000_000 + b"[]]}")
    os._exit(0)
""",
        "def check(candidate):\n    assert candidate(1) == 1\n    assert candidate(2) == 2\n    assert candidate(3) == 3\n",
        frozenset({Status.TAMPERED, Status.OUTPUT_LIMIT}),
        holds=small_supervisor,
    ),
    greedy_function(
        "many-large-answers",
        "Many answers of the allowed size do not fill the supervisor's memory.",
        SENDS
        + """
def f(x):
    for n in range(1, 7):
        send(b'{"n":%d,"value":[' % n + b"[]," * 1_300_000 + b"[]]}")
    os._exit(0)
""",
        "def check(candidate):\n" + "    assert candidate(1) == 1\n" * 6,
        frozenset({Status.ASSERTION}),
        holds=lambda outcome, host: small_supervisor(outcome, host, 400),
    ),
    greedy_function(
        "large-answers-in-all",
        "Answers of the allowed size whose sum is large are compared by a test judge, not by the supervisor.",
        "def f(x):\n    return 'x' * 3_900_000\n",
        "def check(candidate):\n" + "    assert len(candidate(1)) == 3900000\n" * 6,
        frozenset({Status.PASSED}),
        holds=lambda outcome, host: None if outcome.passed == 6 else f"{outcome.passed} tests passed, not 6.",
    ),
    greedy_function(
        "floods-the-judge",
        "Unrequested replies, sent while the tests are busy, do not fill memory and end the run.",
        """
        import os, struct, threading
        def flood():
            block = b'{"n":1,"value":"' + b"x" * (1 << 20) + b'"}'
            data = struct.pack(">IB", len(block), ord("P")) + block
            while True:
                for fd in (3, 4):
                    try:
                        rest = data
                        while rest:
                            rest = rest[os.write(fd, rest):]
                    except OSError:
                        pass
        threading.Thread(target=flood, daemon=True).start()
        def f(x):
            return x
        """,
        "import time\ntime.sleep(0.8)\ndef check(candidate):\n    for x in (1, 2):\n        assert candidate(x) == x\n",
        frozenset({Status.TAMPERED, Status.OUTPUT_LIMIT, Status.TIMEOUT}),
        holds=small_supervisor,
    ),
    attack(
        "flood-without-end",
        "Endless output does not fill memory and ends at the time limit.",
        "import os\nblock = b'x' * 65536\nwhile True:\n    os.write(1, block)\n",
        frozenset({Status.TIMEOUT, Status.OUTPUT_LIMIT}),
        holds=lambda outcome, host: (
            None
            if outcome.output_cut and len(outcome.stdout) <= 70_000
            else f"Kept {len(outcome.stdout)} characters; cut: {outcome.output_cut}."
        ),
    ),
]

DISK = [
    attack(
        "sparse-file",
        "A sparse file of 8 GB cannot be made.",
        "open('big', 'wb').truncate(8 << 30)",
        OUT_OF_DISK,
    ),
    attack(
        "real-file",
        "A real file of 8 GB cannot be written.",
        """
        block = b'x' * (1 << 20)
        with open('big', 'wb', buffering=0) as file:
            for _ in range(8192):
                file.write(block)
        """,
        OUT_OF_DISK,
    ),
    attack(
        "many-files",
        "The total size of many files of the allowed size is limited.",
        """
        block = b'x' * (1 << 20)
        for number in range(8192):
            with open(f'big{number}', 'wb', buffering=0) as file:
                file.write(block)
        """,
        OUT_OF_DISK,
    ),
    attack(
        "million-inodes",
        "A million empty files cannot be made.",
        "for number in range(10**6):\n    open(f'f{number}', 'w').close()\n",
        OUT_OF_DISK | {Status.TIMEOUT},  # where no file system counts, whoever looks first
    ),
    attack(
        "all-descriptors",
        "The number of descriptors is limited.",
        "import os\nkept = []\nwhile True:\n    kept.append(os.open('/dev/null', os.O_RDONLY))\n",
        frozenset({Status.EXCEPTION}),
    ),
]

SUPERVISORS = [
    greedy_function(
        f"pool-bomb-{id}",
        "An answer that is small when encoded and huge when used reaches the limits of the run, not those of the supervisor.",
        f"from decimal import Decimal\ndef f(x):\n    return {answer}\n",
        f"def check(candidate):\n    assert {test}\n",
        frozenset({Status.ASSERTION, Status.EXCEPTION, Status.MEMORY_LIMIT, Status.OUTPUT_LIMIT, Status.TIMEOUT}),
        holds=small_supervisor,
    )
    for id, answer, test in (
        ("list-of-range", "range(5 * 10**7)", "list(candidate(1)) == [1]"),
        ("sorted-range", "range(5 * 10**7, 0, -1)", "sorted(candidate(1)) == [1]"),
        ("set-of-range", "range(5 * 10**7)", "set(candidate(1)) == {1}"),
        ("float-in-range", "range(10**18)", "1.5 in candidate(1)"),
        ("len-of-range", "range(10**40)", "len(candidate(1)) == 2"),
        ("rounded-decimal", "Decimal('1E+999999999')", "round(candidate(1)) == 2"),
        ("float-of-decimal", "Decimal('1E+999999999')", "float(candidate(1)) == 2"),
        ("compared-decimal", "Decimal('1E+999999999999')", "candidate(1) == 2"),
        ("decimal-in-set", "Decimal('1E+999999999999999')", "candidate(1) in {1, 2}"),
        ("huge-int-shown", "10**1_000_000", "candidate(1) == 2"),
    )
]

FLOOD = """
import os, struct
def flood():
    data = memoryview(struct.pack(">IB", 0, ord("{kind}")) * 2_000_000)
    while data:
        data = data[os.write(3, data):]
"""


def idle_supervisor(outcome: Outcome, host: Host) -> str | None:
    """Complains where frames that take the run milliseconds to write kept this process busy."""
    spent = host.cpu_spent_s()
    return f"The supervisor spent {spent:.1f} s on a run that spent {outcome.cpu_ms:.0f} ms." if spent > 0.5 else None


def _floods(kind: str) -> dict[str, Job]:
    """Every kind of process that writes two million empty frames."""
    flood = FLOOD.format(kind=kind)
    literal = "def check(candidate):\n    assert candidate(1) == 1\n"
    judged = "def check(candidate):\n    for x in (1, 2):\n        assert candidate(x) == x\n"
    answer = "def f(x):\n    return x\n"
    return {
        "program": program_job(f"{flood}flood()\n"),
        "function": function_job(f"{flood}flood()\n{answer}", literal, "f"),
        "judged": function_job(f"{flood}flood()\n{answer}", judged, "f"),
        "in-the-call": function_job(f"{flood}def f(x):\n    flood()\n    return x\n", judged, "f"),
        "one-process": function_job(f"{flood}flood()\n{answer}", judged, "f", trust="in_process"),
        "tests": function_job(answer, f"{flood}flood()\n{judged}", "f"),
        "call": call_job(f"{flood}def f():\n    flood()\n", "f"),
    }


FRAMES = [
    Case(
        f"empty-frames-{kind}/{role}",
        "C",
        "Endless empty frames are tampering, and the supervisor stops reading after the first ones.",
        lambda host, job=job: job,  # type: ignore[misc]
        frozenset({Status.TAMPERED}),
        holds=idle_supervisor,
    )
    for kind in "VPz"  # a report, a word for the other process, and nothing known
    for role, job in _floods(kind).items()
]

LEGITIMATE = [
    Case(
        "flood-then-answer",
        "C",
        "Too much output is cut and marked as cut, and the answer after it counts.",
        lambda host: function_job(
            "import sys\ndef f(x):\n    for _ in range(64):\n        print('y' * 65536)\n    return x\n",
            "def check(candidate):\n    assert candidate(1) == 1\n",
            "f",
        ),
        ANSWERED,
        holds=lambda outcome, host: None if outcome.output_cut else "The cut was not said.",
    ),
    Case(
        "closed-stdout",
        "C",
        "A candidate that closes its output and gives the right answer passes.",
        lambda host: function_job(
            "import os, sys\nsys.stdout.close()\nos.close(1)\nos.close(2)\ndef f(x):\n    return x\n",
            "def check(candidate):\n    assert candidate(1) == 1\n",
            "f",
        ),
        ANSWERED,
    ),
]

ROWS = [*ANSWERS, *DISK, *SUPERVISORS, *FRAMES, *LEGITIMATE]
