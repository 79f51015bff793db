"""The parts of a FunctionJob as an engine reads them: tests as text, and definitions of the prompt."""

import ast
import math
import re
import sys
from pathlib import PurePosixPath

from sandbox.engine.test_judge.imports import LIBRARIES
from sandbox.engine.test_judge.prompt import is_stub
from sandbox.engine.testing.recorder import LISTED
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.parsing import parse


def format_tests(job: FunctionJob) -> str | list[str]:
    """Return the tests as text or lines. Tests given as {args, kwargs, expect} become asserts."""
    if isinstance(job.tests, str):
        return job.tests
    return [test if isinstance(test, str) else _format_value_test(test) for test in job.tests]


def _format_value_test(test: dict[str, object]) -> str:
    args, kwargs = test.get("args", []), test.get("kwargs", {})
    assert isinstance(args, list) and isinstance(kwargs, dict)  # FunctionJob checks this
    arguments = [_format_value(arg) for arg in args] + [
        f"{key}={_format_value(value)}" for key, value in kwargs.items()
    ]
    expect = _format_value(replace_tuples(test["expect"]))
    return f"assert {LISTED}(candidate({', '.join(arguments)})) == {expect}"


def _format_value(value: object) -> str:
    """Return a value of JSON or YAML as a Python expression."""
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_format_value(key)}: {_format_value(item)}' for key, item in value.items())}}}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def replace_tuples(value: object) -> object:
    """Return the value with lists in place of tuples, which JSON does not distinguish."""
    if isinstance(value, list | tuple):
        return [replace_tuples(item) for item in value]
    if isinstance(value, dict):
        return {key: replace_tuples(item) for key, item in value.items()}
    return value


def find_shared_classes(job: FunctionJob) -> list[str]:
    """Return the names of the classes that the prompt defines completely: judge and candidate both have them."""
    return [s.name for s in _parse_prompt(job) if isinstance(s, ast.ClassDef) and _is_complete(s, job)]


def build_prelude(job: FunctionJob) -> str:
    """Return the shared classes, and the definitions they may need, unless the code defines all of the classes."""
    classes = find_shared_classes(job)
    if all(re.search(rf"^class\s+{name}\b", job.code, re.MULTILINE) for name in classes):
        return ""
    assigning = ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign
    kept = [s for s in _parse_prompt(job) if isinstance(s, assigning) or _is_complete(s, job)]
    return ast.unparse(ast.Module(kept, []))


def find_project_modules(job: FunctionJob) -> list[str]:
    """Return the top-level modules of the job's files that no module of the libraries hides."""
    tops = {PurePosixPath(path).parts[0] for path in job.files if path.endswith(".py")}
    return sorted({top.removesuffix(".py") for top in tops} - sys.stdlib_module_names - LIBRARIES)


def _parse_prompt(job: FunctionJob) -> list[ast.stmt]:
    """Return the statements of the prompt; none if it has no class."""
    if "class " in job.prompt:
        for text in (job.prompt, job.prompt.rstrip() + "\n    pass\n"):  # it may end in a signature without a body
            try:
                return parse(text).body
            except (SyntaxError, ValueError):
                continue
    return []


def _is_complete(statement: ast.stmt, job: FunctionJob) -> bool:
    """Return whether this defines something that the code does not have to define."""
    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return statement.name != job.entry_point and not is_stub(statement)
