"""Check whether tests of a workspace import the model's code. In their process, the code can forge their result."""

import ast
import posixpath
import re
import sys
from collections.abc import Iterable, Mapping

from sandbox.verdicts.parsing import parse

_RUNNERS = re.compile(r"\b(?:pytest|py\.test|unittest|nose2|doctest)\b")
_PYTHON_LINE = re.compile(r"(?:^|[;'\"])\s*(?:import\s+([A-Za-z_]\w*)|from\s+([A-Za-z_]\w*)[\w.]*\s+import\b)")
_HERE_DOCUMENT = re.compile(r"^([^\n]*?)<<-?\s*(['\"]?)(\w+)\2([^\n]*)\n(.*?)^\s*\3$", re.M | re.S)
_PYTHON = re.compile(r"\bpython[\d.]*((?:[ \t]+(?:-[WX][ \t]*\S+|-[A-Za-z]*))*)")  # with its options
# Modules that Python has imported before it looks into the current folder.
_LOADED_AT_START = frozenset({"builtins", "io", "os", "sys", "time"})
_PYTHON_FIRST_LINE = re.compile(rb"#!.*\bpython")


def imports_artifacts(files: Mapping[str, bytes]) -> bool:
    """Return whether the scripts and test files of a rule seem to import modules that are none of their own.

    A script that starts a test runner does: the runner imports the modules under test, or modules of the work folder.
    So does one that starts Python with -c, -m or a here-document and without -I: Python then looks for its own modules
    in the current folder first, which is the work folder.
    This is read from the source without running it, so it can be wrong; the option `trust` of the rule decides then.
    """
    own = {name for path in files for name in path.removesuffix(".py").split("/")}
    return any(_imports_others(path, data, own) for path, data in files.items())


def _imports_others(path: str, data: bytes, own: set[str]) -> bool:
    if path.endswith(".py") or _PYTHON_FIRST_LINE.match(data):
        return _python_imports_others(data, own)
    if posixpath.splitext(path)[1] not in ("", ".sh", ".bash"):
        return False  # data
    return _shell_imports_others(data.decode("utf-8", "replace"), own)


def _python_imports_others(source: bytes, own: set[str], *, in_folder: bool = False) -> bool:
    try:
        modules = set(_imported(parse(source)))
    except (SyntaxError, ValueError):
        return False  # it cannot be run either
    return _has_others(modules, own, in_folder=in_folder) or "unittest" in modules


def _shell_imports_others(text: str, own: set[str]) -> bool:
    for first, _, _, rest, body in _HERE_DOCUMENT.findall(text):
        starts = _PYTHON.findall(first + rest)
        in_folder = any(not _is_isolated(options) for options in starts)
        if starts and _python_imports_others(body.encode(), own, in_folder=in_folder):
            return True
    text = _HERE_DOCUMENT.sub(r"\1\4", text)  # what is left of other documents would be data
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    starts = [options for line in lines for options in _PYTHON.findall(line) if not _is_isolated(options)]
    if any(_RUNNERS.search(line) for line in lines) or any(_has_flag(options, "m") for options in starts):
        return True
    # Programs of several lines are read as one, so one that is not isolated decides for all of them.
    modules = {first or second for line in lines for first, second in _PYTHON_LINE.findall(line)}
    return _has_others(modules, own, in_folder=any(_has_flag(options, "c") for options in starts))


def _is_isolated(options: str) -> bool:
    """Return whether Python, with these options, does not look for modules in the current folder."""
    return _has_flag(options, "I") or _has_flag(options, "P")


def _has_flag(options: str, flag: str) -> bool:
    return any(flag in word for word in options.split() if re.fullmatch("-[A-VY-Za-z]+", word))


def _has_others(modules: set[str], own: set[str], *, in_folder: bool) -> bool:
    """Return whether one of *modules* can be the model's.

    in_folder: whether Python looks for all modules in the current folder first, also for those of the standard library.
    """
    trusted = _LOADED_AT_START if in_folder else sys.stdlib_module_names | {"__future__"}
    return bool(modules - own - trusted)


def _imported(tree: ast.Module) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
