"""Tests that programs end as the interpreter ends them: compared with `python main.py`."""

import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from sandbox.client.pool import Pool
from sandbox.connections.transports.local import interpreter
from sandbox.limits import Limits
from sandbox.verdicts.jobs import ProgramJob

STDIN = "1 2\n3 4\n"

PROGRAMS = {
    "a thread that is not joined": """
        import sys, threading, time
        sys.setrecursionlimit(10**6)
        threading.stack_size(2**26)
        def main():
            time.sleep(0.1)
            print(sum(map(int, sys.stdin.read().split())))
        threading.Thread(target=main).start()
    """,
    "a timer": """
        import threading
        threading.Timer(0.5, lambda: print("later")).start()
        print("first")
    """,
    "a daemon": """
        import threading, time
        threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
        print("end")
    """,
    "an executor that is not shut down": """
        from concurrent.futures import ThreadPoolExecutor
        executor = ThreadPoolExecutor(4)
        print(list(executor.map(len, ["a", "bc"])))
    """,
    "an exception beside a thread": """
        import threading, time
        threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
        1 / 0
    """,
    "collected output that an exit handler writes": """
        import atexit, io, os, sys
        sys.stdout = io.StringIO()
        atexit.register(lambda: os.write(1, sys.stdout.getvalue().encode()))
        print(input())
    """,
    "exit handlers after threads, with an exit code": """
        import atexit, threading, time
        atexit.register(print, "second")
        atexit.register(print, "first")
        threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
        raise SystemExit(3)
    """,
    "an exit handler that fails": """
        import atexit
        atexit.register(print, "still called")
        atexit.register(lambda: 1 / 0)
        print("end")
    """,
    "output that an exit handler writes to the original stream": """
        import atexit, io, sys
        collected = io.StringIO()
        sys.stdout = collected
        atexit.register(lambda: sys.__stdout__.write(collected.getvalue()))
        print(input())
    """,
    "a stream that it deletes": """
        import sys
        print("end")
        del sys.stdout
    """,
    "a file of a class that is not closed": """
        class Output:
            file = open(1, "w", closefd=False)
        print("end", file=Output.file)
    """,
    "an object in a cycle that prints when it is deleted": """
        class Noisy:
            def __init__(self): self.itself = self
            def __del__(self): print("deleted with", names)
        names = ["a", "b"]
        noisy = Noisy()
        raise SystemExit(3)
    """,
    "an exception with a hook": """
        import sys
        sys.excepthook = lambda kind, error, trace: print(kind.__name__, error)
        raise ValueError("of the program")
    """,
    "a stream of its own, which is flushed at the end": """
        import os, sys
        class Output:
            def __init__(self): self.parts = []
            def write(self, text): self.parts.append(text)
            def flush(self):
                os.write(1, "".join(self.parts).encode())
                self.parts = []
        sys.stdout = Output()
        print(input())
    """,
    "an object that prints when it is deleted": """
        class Noisy:
            def __del__(self): print("deleted")
        noisy = Noisy()
        print("end")
    """,
    "a finalizer": """
        import weakref
        class Thing: pass
        thing = Thing()
        weakref.finalize(thing, print, "finalized")
        print("end")
    """,
    "a generator that was not exhausted": """
        def numbers():
            try:
                yield 1
            finally:
                print("closed")
        iterator = numbers()
        print(next(iterator))
    """,
    "modules that it has broken": """
        import atexit, sys, threading
        sys.modules["threading"] = None
        print("end")
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_prints_and_exits_as_in_the_interpreter(name: str, pool: Pool, tmp_path: Path) -> None:
    code = dedent(PROGRAMS[name])
    (tmp_path / "main.py").write_text(code)
    expected = subprocess.run(
        [interpreter(), "-I", "main.py"], cwd=tmp_path, input=STDIN, capture_output=True, text=True, check=False
    )

    outcome = pool.run(ProgramJob(code, stdin=STDIN))

    assert outcome.stdout == expected.stdout != ""
    assert outcome.exit_code == expected.returncode


def test_program_that_waits_for_a_thread_for_ever_is_timed_out(pool: Pool) -> None:
    code = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n"

    outcome = pool.run(ProgramJob(code, limits=Limits(wall_s=1)))

    assert outcome.status == "timeout"


def test_many_threads_fit_into_the_limit_of_memory(pool: Pool) -> None:
    code = """
import threading, time
end = time.monotonic() + 1
def allocate():
    while time.monotonic() < end:
        [str(i) for i in range(100)]
threads = [threading.Thread(target=allocate) for _ in range(50)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("end")
"""
    outcome = pool.run(ProgramJob(code))

    assert outcome.stdout == "end\n", outcome.message
