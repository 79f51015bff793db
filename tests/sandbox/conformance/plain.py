"""Plain harness with code and tests in one process, to show that a forgery passes without isolation."""

import os
import subprocess
import sys
from pathlib import Path

from sandbox.verdicts.jobs import FunctionJob
from tests.sandbox.conformance.case import Plain

LIMIT_S = 1.0
GRACE_S = 2.0

_FLAG_RUNNER = """
import os, signal, sys
verdict = int(sys.argv[2])
def late(*_):
    raise TimeoutError
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[3]))
with open(sys.argv[1]) as file:
    program = file.read()
try:
    exec(program, {"__name__": "candidate"})
    os.write(verdict, b"passed")
except BaseException:
    os.write(verdict, b"failed")
"""

_RUN_UNITTEST = """
_suite = unittest.TestSuite()
for _name, _kind in list(globals().items()):
    if isinstance(_kind, type) and issubclass(_kind, unittest.TestCase):
        _suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(_kind))
assert unittest.TextTestRunner().run(_suite).wasSuccessful()
"""


def _tests_of(job: FunctionJob) -> str:
    if isinstance(job.tests, list):
        lines = []
        for test in job.tests:
            if isinstance(test, dict):
                call = f"{job.entry_point}(*{test.get('args', [])!r}, **{test.get('kwargs', {})!r})"
                test = f"assert {call} == {test['expect']!r}"
            lines.append(test)
        return "\n".join(lines)
    if "TestCase" in job.tests:
        return job.tests + _RUN_UNITTEST
    return f"{job.tests}\ncheck({job.entry_point})" if job.entry_point else job.tests


def plain_passes(job: FunctionJob, how: Plain, scratch: Path) -> bool:
    """Whether code and tests run as one program end in what such a harness takes for a pass."""
    parts = [job.prompt, job.code, job.setup, _tests_of(job)]
    if how.tests_first:
        definitions, _, call = parts.pop().rstrip().rpartition("\n")
        parts = [definitions, job.code, call]
    if how.reads == "stdout":
        parts.append("""print('{"passed": true}')""")
    program = "\n".join(part for part in parts if part)
    for name, content in job.files.items():
        (scratch / name).write_bytes(content)
    script = scratch / "solution.py"
    script.write_text(program)
    return _by_flag(script) if how.reads == "flag" else _by_process(script, how)


def _by_flag(script: Path) -> bool:
    reader, writer = os.pipe()
    try:
        subprocess.run(
            [sys.executable, "-c", _FLAG_RUNNER, script, str(writer), str(LIMIT_S)],
            pass_fds=[writer],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S + GRACE_S,
        )
        os.close(writer)
        writer = -1
        return os.read(reader, 6) == b"passed"
    except subprocess.TimeoutExpired:
        return False
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)


def _by_process(script: Path, how: Plain) -> bool:
    try:
        run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=LIMIT_S + GRACE_S)
    except subprocess.TimeoutExpired:
        return False
    if how.reads == "exit_code":
        return run.returncode == 0
    return run.stdout.rstrip().endswith('{"passed": true}')
