"""The role for tests that must share a process with the code, such as those that mock parts of it.

The code can reach everything here, the verdict included. Three checks make forgeries show that do not aim at this very
program: a negative control (see `controls`), what the tests stand on is as it was before the code, and the asserts of
the tests were executed.
"""

import sys
import types
from typing import Any

from ..candidate.definitions import define, find, report_of_definition
from ..protocol import codec, frames
from ..protocol.channel import Channel
from ..testing.negative_control import Surroundings
from ..testing.units import Recorder, controlled, units
from . import role
from .verdict import Tally


def run(job: dict[str, Any], channel: Channel) -> None:
    """Define the code, run the tests in its namespace. Reports like a candidate that failed, or a judge."""
    if "unittest" in job["tests"] if isinstance(job["tests"], str) else False:
        import unittest  # noqa: F401  # before the code, so that its changes show
    try:
        role.check_imports(job)
    except role.BadTests as error:
        channel.send(frames.REPORT, codec.dumps({"bad_tests": str(error)}))
        return
    recorder = Recorder(control=job["control"])
    role.offer_pytest(job, recorder)
    before = Surroundings()
    try:
        module = define(job["prompt"] + "\n", "prompt") if job["prompt"] else types.ModuleType("prompt")
    except BaseException:
        module = types.ModuleType("prompt")  # a prompt in prose; the code is complete without it
    try:
        solution = define(job["code"], prelude=job["prelude"])
        target = find(solution, job["entry_point"]) if job["entry_point"] else None
    except BaseException as error:
        channel.send(frames.REPORT, codec.dumps(report_of_definition(error)))
        return
    namespace = vars(module) | vars(solution) | recorder.hooks() | {"__name__": "tests", "candidate": target}
    sys.modules["tests"] = types.ModuleType("tests")
    try:
        role.define(namespace, recorder, job["setup"], "setup")
        found = units(job["tests"], namespace, recorder, target)
        report = Tally(recorder).run(controlled(found) if job["control"] else found)
    except role.BadTests as error:
        report = {"bad_tests": str(error)}
    except SyntaxError as error:
        report = {"bad_tests": f"The tests do not compile: {error.msg} (line {error.lineno})."}
    replaced = before.changed()
    if replaced and not report.get("failure"):
        report = {"passed": 0, "total": 0, "failure": {"kind": "tampered", "message": replaced}}
    channel.send(frames.REPORT, codec.dumps(report))
