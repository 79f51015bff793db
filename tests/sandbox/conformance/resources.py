"""Attacks on time, processes and memory (kind C): contained, reported with the right status, and without effect on the next run."""

import os
from collections.abc import Callable

from sandbox.limits import Limits
from sandbox.verdicts.results import Outcome, Status
from tests.sandbox.conformance.case import Case, Tests, function_job, program_job
from tests.sandbox.conformance.host import Host

QUICK = Limits(cpu_s=1, wall_s=1.5)
ROOMY = Limits(cpu_s=3, wall_s=15)
"""For what ends by itself or at another limit, however busy the machine is."""
FAMILY = Limits(cpu_s=2, wall_s=2, memory_mb=128, processes=8)
"""A run that may have children; everything else may not even fork."""

MOST_MAPPED_MB = 1100
"""The limit of 512 MiB, and as much address space again where no control group counts memory."""

ENDED = frozenset({Status.EXCEPTION, Status.EXITED, Status.MEMORY_LIMIT, Status.TIMEOUT})
OUT_OF_TIME = frozenset({Status.TIMEOUT})
OUT_OF_MEMORY = frozenset({Status.MEMORY_LIMIT})
OUT_OF_DISK = frozenset({Status.DISK_LIMIT, Status.EXCEPTION})
MARK = os.environ.setdefault("LLMEVAL_TEST_MARK", f"llmeval{os.getpid()}")[:15]
"""The name that an attack gives its processes, for the host to look for; one for this process and its children."""


RENAME = f"""
import ctypes, os, signal, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(15, b"{MARK}", 0, 0, 0)
"""


def no_marked_process(outcome: Outcome, host: Host) -> str | None:
    """Complains of a process that outlived its run."""
    left = host.processes_left(MARK)
    return f"Processes {left} outlived the run." if left else None


def _limits_for(statuses: frozenset[Status]) -> Limits:
    return QUICK if Status.TIMEOUT in statuses else ROOMY


def attack(
    id: str,
    promise: str,
    code: str,
    statuses: frozenset[Status],
    *,
    limits: Limits | None = None,
    holds: Callable[[Outcome, Host], str | None] = no_marked_process,
    skips: dict[str, str] | None = None,
) -> Case:
    """A program that takes more than its share."""
    job = program_job(code, limits or _limits_for(statuses))
    return Case(id, "C", promise, lambda host: job, statuses, holds=holds, skips=skips or {})


def greedy_function(
    id: str,
    promise: str,
    code: str,
    tests: Tests,
    statuses: frozenset[Status],
    holds: Callable[[Outcome, Host], str | None] = no_marked_process,
) -> Case:
    """A function that takes more than its share while tests wait for its answer."""
    job = function_job(code, tests, "f", limits=_limits_for(statuses))
    return Case(id, "C", promise, lambda host: job, statuses, holds=holds)


TIME = [
    attack("busy-loop", "A busy loop ends at its processor time.", "while True: pass", OUT_OF_TIME),
    attack("endless-sleep", "A sleep ends at the time limit.", "import time\ntime.sleep(3600)", OUT_OF_TIME),
    attack(
        "signals-ignored",
        "A process that ignores every signal is still killed.",
        """
        import signal
        for number in signal.valid_signals():
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True: pass
        """,
        OUT_OF_TIME,
    ),
    attack(
        "stops-itself",
        "A process that stops itself (SIGSTOP) still ends at the time limit.",
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(3600)",
        frozenset({Status.TIMEOUT, Status.EXCEPTION}),
    ),
    attack(
        "raised-limits",
        "Code cannot raise its own processor limit.",
        """
        import resource
        for limit in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
            try:
                resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            except (OSError, ValueError):
                pass
        while True: pass
        """,
        OUT_OF_TIME,
    ),
    attack("huge-power", "10**10**8 ends at its time or its memory.", "print(len(str(10**10**8)))", ENDED),
    attack(
        "regex-backtracking",
        "A regular expression that backtracks endlessly ends at the time limit.",
        "import re\nre.match(r'(a+)+$', 'a' * 64 + '!')",
        OUT_OF_TIME,
    ),
    attack(
        "colliding-keys",
        "A dict of colliding ints ends at its time.",
        """
        step = 2**61 - 1
        table = {}
        for i in range(10**9):
            table[i * step] = i
        """,
        frozenset({Status.TIMEOUT, Status.MEMORY_LIMIT}),
    ),
    greedy_function(
        "patched-clock",
        "A candidate that patches clocks and alarms still times out.",
        """
        import time
        clock = time.perf_counter
        import signal
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.alarm = signal.setitimer = signal.signal = lambda *args: None
        time.time = time.monotonic = time.perf_counter = lambda: 0.0
        def f(x):
            end = clock() + 1.9
            while clock() < end: pass
            return x + 1
        """,
        "def check(candidate):\n    assert candidate(1) == 2\n",
        OUT_OF_TIME,
    ),
    greedy_function(
        "sleeps-in-the-call",
        "A call that never returns ends at the time limit.",
        "import time\ndef f(x):\n    time.sleep(3600)\n",
        "def check(candidate):\n    for x in (1, 2):\n        assert candidate(x) == x\n",
        OUT_OF_TIME,
    ),
]

PROCESSES = [
    attack(
        "fork-bomb",
        "A run without child processes cannot fork, for any user that started the engine.",
        RENAME + "while True:\n    os.fork()\n",
        frozenset({Status.EXCEPTION, Status.TAMPERED}),  # tier C can only count them, and then each of them reports
    ),
    attack(
        "fork-bomb-with-children",
        "A run with eight children cannot have more.",
        RENAME
        + """
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
        ENDED,
        limits=FAMILY,
    ),
    attack(
        "thread-bomb",
        "The number of threads is limited.",
        RENAME + "while True:\n    threading.Thread(target=time.sleep, args=(3600,)).start()\n",
        ENDED,
    ),
    attack(
        "daemon",
        "A daemon in its own session ends with its run.",
        RENAME
        + """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(64):
            try: os.close(fd)
            except OSError: pass
        time.sleep(3600)
    os._exit(0)
os.wait()
print("left it behind")
""",
        frozenset({Status.COMPLETED}),
        limits=FAMILY,
    ),
    attack(
        "forbidden-daemon",
        "A run without children leaves no daemon.",
        RENAME + "if os.fork() == 0:\n    os.setsid()\n    time.sleep(3600)\n",
        frozenset({Status.EXCEPTION, Status.COMPLETED}),  # tier C cannot forbid, only clear away
    ),
]

MEMORY = [
    attack(
        "two-gigabyte-allocation",
        "One large allocation ends at the memory limit.",
        "x = bytearray(2 << 30)",
        OUT_OF_MEMORY,
    ),
    attack(
        "slow-growth",
        "Memory allocated in small steps ends at the memory limit.",
        "x = []\nwhile True:\n    x.append(bytearray(1 << 20))\n",
        OUT_OF_MEMORY,
    ),
    attack(
        "swallowed-memory-error",
        "A program that swallows every MemoryError stays within its memory and its time.",
        """
        x = []
        while True:
            try:
                x.append(bytearray(1 << 20))
            except MemoryError:
                pass
        """,
        frozenset({Status.TIMEOUT, Status.MEMORY_LIMIT}),
    ),
    attack(
        "memory-over-children",
        "All processes of a run together stay within the memory limit of one.",
        RENAME
        + """
for _ in range(7):
    if os.fork() == 0:
        break
x = []
while True:
    try:
        x.append(bytearray(b"x") * (1 << 20))
    except MemoryError:
        time.sleep(0.1)
""",
        ENDED,
        limits=FAMILY,
        holds=lambda outcome, host: (
            no_marked_process(outcome, host)
            or (f"It held {outcome.peak_mb} MB." if outcome.peak_mb > 8 * FAMILY.memory_mb else None)
        ),
    ),
    attack(
        "recursion",
        "Infinite recursion ends at a limit.",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f() + 1\nf()\n",
        ENDED,
    ),
    attack(
        "recursion-in-c",
        "Infinite recursion through C code of the interpreter ends at a limit.",
        """
        import sys
        sys.setrecursionlimit(10**9)
        class A:
            def __getattr__(self, name): return getattr(self, name + "x")
        A().x
        """,
        ENDED,
    ),
    attack(
        "memory-file",
        "A file in memory is limited as memory or as a file.",
        """
        import os
        fd = os.memfd_create("x")
        block = b"x" * (1 << 20)
        for _ in range(2048):
            os.write(fd, block)
        """,
        frozenset({Status.MEMORY_LIMIT, *OUT_OF_DISK, Status.EXITED}),
    ),
]

_FILL = """
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
def fill(flags, fd=-1, size=16 << 20):
    address = libc.mmap(None, size, 3, flags, fd, 0)
    if address == ctypes.c_void_p(-1).value:
        return None
    ctypes.memset(address, 1, size)
    return address
def fill_and_protect():
    address = fill(0x22)
    return address and libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(16 << 20), 1) == 0
def fill_file():
    fd = os.memfd_create("x")
    os.ftruncate(fd, 1 << 20)
    address = fill(1, fd, 1 << 20)
    os.close(fd)
    return address
def fill_zero():
    fd = os.open("/dev/zero", os.O_RDWR)
    address = fill(1, fd)
    os.close(fd)
    return address
while {step}:
    pass
print("full")
"""

MAPPED = [
    Case(
        f"mapped-memory/{id}",
        "C",
        "Memory outside the data segment is limited too, also if packages are offered.",
        lambda host, step=step: program_job(_FILL.replace("{step}", step), ROOMY),  # type: ignore[misc]
        frozenset({Status.COMPLETED, Status.MEMORY_LIMIT, Status.EXITED}),
        holds=lambda outcome, host: f"It held {outcome.peak_mb} MB." if outcome.peak_mb > MOST_MAPPED_MB else None,
        packages=True,
    )
    for id, step in (
        ("shared", "fill(0x21)"),
        ("stack", "fill(0x122)"),
        ("read-only", "fill_and_protect()"),
        ("file", "fill_file()"),
        ("zero-device", "fill_zero()"),
    )
]

KERNEL = [
    attack(
        "posix-timers",
        "POSIX timers, each of which takes memory of the kernel, end at a limit.",
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        timer, made = ctypes.c_void_p(), 0
        while made < 100_000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0:
            made += 1
        print(made)
        """,
        frozenset({Status.COMPLETED}),
        limits=ROOMY,
        holds=lambda outcome, host: f"It made {outcome.stdout.strip()}." if int(outcome.stdout) > 1000 else None,
    ),
]

ROWS = [*TIME, *PROCESSES, *MEMORY, *MAPPED, *KERNEL]
