"""Program for the sandbox that runs a project's visible tests and prints the failures. Standard library only.

Arguments are the paths of test files. Functions named `test*` are called, `unittest.TestCase` classes are run. The
output is feedback for a model and not a verdict: the project under test runs in the same process and could forge it.
"""

import ast
import importlib
import linecache
import sys
import traceback
import types
import unittest
from collections.abc import Callable


def main(paths: list[str]) -> int:
    passed, failed = 0, 0
    for path in paths:
        for name, problem in run_file(path):
            say(f"{'FAILED' if problem else 'passed'} {name}")
            if problem:
                say("    " + problem.replace("\n", "\n    "))
            passed, failed = passed + (not problem), failed + bool(problem)
    say(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def run_file(path: str) -> list[tuple[str, str]]:
    """Return each test of a file with its failure, "" if it passed. A file that cannot be imported is one failure."""
    try:
        module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    except BaseException as error:
        return [(path, describe(error))]
    results = []
    for name, value in list(vars(module).items()):
        if name.startswith("test") and isinstance(value, types.FunctionType):
            results.append((f"{path}::{name}", attempt(value)))
    classes = ClassResults()
    problem = attempt(lambda: unittest.defaultTestLoader.loadTestsFromModule(module).run(classes))
    results += [(f"{path}::{name}", "\n".join(problems)) for name, problems in classes.problems.items()]
    return [*results, (path, problem)] if problem else results


ExcInfo = tuple[type[BaseException], BaseException, types.TracebackType] | tuple[None, None, None]


class ClassResults(unittest.TestResult):
    """Results of `unittest.TestCase` classes: the problems of each test, none if it passed or was skipped."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: dict[str, list[str]] = {}

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.problems[name_of(test)] = []

    def addError(self, test: unittest.TestCase, err: ExcInfo) -> None:
        if err[1] is not None:
            self._add(test, describe(err[1]))

    def addFailure(self, test: unittest.TestCase, err: ExcInfo) -> None:
        self.addError(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: ExcInfo | None) -> None:
        if err is not None:
            self.addError(test, err)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self._add(test, "It passed, but it is marked as an expected failure.")

    def _add(self, test: unittest.TestCase, problem: str) -> None:
        self.problems.setdefault(name_of(test), []).append(problem)


def name_of(test: unittest.TestCase) -> str:
    """Return the class and the method of a test, or the name of the fixture, such as setUpClass, that failed."""
    method = getattr(test, "_testMethodName", "")
    return f"{type(test).__name__}.{method}" if method else test.id()


def attempt(test: Callable[[], object]) -> str:
    """Return the failure of a test, "" if it passed or was skipped."""
    try:
        test()
    except unittest.SkipTest:
        return ""
    except BaseException as error:
        return describe(error)
    return ""


def describe(error: BaseException) -> str:
    """Return the exception, the project's lines that led to it, and both sides of a plain `assert a == b`."""
    foreign = ("<frozen", sys.prefix, sys.base_prefix, __file__)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(foreign)]
    lines = [f"{f.filename.rpartition('/')[2]}:{f.lineno}: {f.line}" for f in frames[-4:]]
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    return "\n".join([*lines, text, *sides(error)])[:2000]


def sides(error: BaseException) -> list[str]:
    """Return both sides of a failed plain comparison, evaluated again in its frame."""
    trace = error.__traceback__
    if not isinstance(error, AssertionError) or error.args or trace is None:
        return []
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    try:
        statement = ast.parse(linecache.getline(frame.f_code.co_filename, trace.tb_lineno).strip()).body[0]
        if not isinstance(statement, ast.Assert) or not isinstance(statement.test, ast.Compare):
            return []
        left, right = statement.test.left, statement.test.comparators[0]
        shown = []
        for word, node in (("left", left), ("right", right)):
            value = eval(ast.unparse(node), frame.f_globals, frame.f_locals)  # noqa: S307
            shown.append(f"{word}: {value!r}"[:300])
        return shown
    except Exception:
        return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
