"""The role for tests that must share a process with the code, such as those that mock parts of it.

The code can reach everything in this process, the verdict included. Three checks detect forgeries that do not target
this very program: a negative control (see `negative_control`), a comparison of built-in functions and unittest with a
snapshot from before the code, and the count of executed asserts.
"""

import ast
import importlib
import os
import sys
import types
from typing import TypedDict

from ..candidate.definitions import MODULE, define, find, imported_modules_named_like, report_of_definition
from ..protocol import codec, frames
from ..protocol.channel import Channel
from ..testing.negative_control import LibrarySnapshot
from ..testing.recorder import BadTests, Recorder
from ..testing.skips import may_depend_on_code
from ..testing.units import check_conditions, check_decorators, controlled, text_of, units
from .imports import check_imports, names_imported
from .names import free_names, import_library, library_modules, names_that_end, root_of
from .role import execute_support, provide_pytest
from .verdict import BadTestsReport, JudgeReport, VerdictBuilder


class SharedProcessInput(TypedDict):
    """The job of tests and code in one process.

    files    paths of the files of the code's project
    modules  its top-level modules
    control  run the tests as a negative control
    """

    prompt: str
    setup: str
    tests: str | list[str]
    entry_point: str | None
    code: str
    prelude: str
    files: list[str]
    modules: list[str]
    control: bool


def run(job: SharedProcessInput, channel: Channel) -> None:
    """Define the code, then run the tests in its namespace. Reports like a candidate that failed, or like a judge."""
    if hidden := imported_modules_named_like(job["files"]):
        message = (
            f"The project has a file or folder named like the module {hidden[0]}. Tests in the process of the code "
            "cannot import both."
        )
        unsupported = {"passed": 0, "total": 0, "failure": {"kind": "unsupported", "message": message}}
        channel.send(frames.REPORT, codec.dumps(unsupported))
        return
    if isinstance(job["tests"], str) and "unittest" in job["tests"]:
        _import_unittest()
    try:
        check_imports(job["setup"], job["tests"])
    except BadTests as error:
        channel.send(frames.REPORT, codec.dumps({"bad_tests": str(error)}))
        return
    recorder = Recorder(control=job["control"])
    provide_pytest(job["setup"], job["tests"], recorder)
    before = LibrarySnapshot()
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
    own = {**recorder.hooks(), "__name__": "tests", "__file__": "tests.py", "candidate": target}
    namespace: dict[str, object] = {"exit": sys.exit, "quit": sys.exit, **vars(module), **vars(solution), **own}
    builder = VerdictBuilder(recorder)
    if job["entry_point"] and ":" in job["entry_point"]:  # in a module of a project
        name, place = root_of(job["entry_point"])
        namespace[name] = find(solution, place)
    sys.modules["tests"] = types.ModuleType("tests")
    report: JudgeReport | BadTestsReport
    try:
        execute_support(namespace, recorder, job["setup"], "setup")
        text = text_of(job["tests"])
        tree = ast.parse(text, "<tests>")
        check_conditions(tree)
        builder.skips_may_depend_on_code = may_depend_on_code(job["setup"], text, tree)
        if not job["entry_point"]:
            namespace |= dict.fromkeys(names_that_end(tree), sys.exit)
        free = free_names(tree)
        for name in library_modules(tree, free) - namespace.keys():
            namespace[name] = import_library(name)
        of_code = {name for name in free if name in vars(solution) and namespace[name] is vars(solution)[name]}
        check_decorators(tree, of_code | names_imported(tree, [*job["modules"], MODULE]))
        found = units(job["tests"], namespace, recorder, target, tree)
        used = {name: namespace[name] for name in of_code}
        report = builder.run(controlled(found) if job["control"] else found)
        if changed := sorted(name for name, value in used.items() if vars(solution).get(name) is not value):
            message = f"the code has assigned to its variable {changed[0]}, of which the tests have the old value"
            report = {"passed": 0, "total": 0, "failure": {"kind": "unsupported", "message": message}}
    except BadTests as error:
        report = {"bad_tests": str(error)}
    except SyntaxError as error:
        report = {"bad_tests": f"The tests do not compile: {error.msg} (line {error.lineno})."}
    replaced = before.changed()
    if replaced and not report.get("failure"):
        report = {"passed": 0, "total": 0, "failure": {"kind": "tampered", "message": replaced}}
    channel.send(frames.REPORT, codec.dumps(report))


def _import_unittest() -> None:
    """Import unittest before the code, so that changes are detected, and not from a file of the project."""
    path = sys.path.copy()
    sys.path[:] = [folder for folder in path if folder != os.getcwd()]
    importlib.import_module("unittest")
    sys.path[:] = path
