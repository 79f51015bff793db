"""Definition of code from its source, and look-up of names in it."""

import importlib
import linecache
import sys
import types
from collections.abc import Callable, Collection
from typing import TypedDict

from ..protocol.error_reports import ErrorReport, describe

MODULE = "solution"


class EntryPointMissing(Exception):
    """The code does not define the name that is to be called."""


def compile_source(code: str, filename: str) -> types.CodeType:
    """Compile source. Each reason why that fails is raised as a SyntaxError of `filename`."""
    try:
        return compile(code, filename, "exec", dont_inherit=True)
    except SyntaxError:
        raise
    except (ValueError, UnicodeError, RecursionError, MemoryError, OverflowError) as error:
        raise SyntaxError(f"{type(error).__name__}: {error}", (filename, None, None, None)) from None


def define(code: str, module: str = MODULE, prelude: str = "") -> types.ModuleType:
    """Execute `code` as a new module, not as `__main__`. Raises SyntaxError, and any exception of the code.

    prelude  classes of the prompt, which the code may use without repeating them
    """
    filename = f"<{module}>"
    program = compile_source(code, filename)
    namespace = types.ModuleType(module)
    namespace.__file__ = filename  # `inspect` looks up the source of classes and functions by these
    linecache.cache[filename] = len(code), None, [f"{line}\n" for line in code.split("\n")], filename
    if code or prelude:  # otherwise the job is a project of files, which may have a module of this name
        sys.modules[module] = namespace  # dataclasses and typing look up the module of a class
    if prelude:
        try:
            exec(compile_source(prelude, "<prompt>"), namespace.__dict__)
        except Exception:
            pass  # the judge reports an error of the prompt
    exec(program, namespace.__dict__)
    return namespace


def imported_modules_named_like(files: Collection[str]) -> list[str]:
    """Return the imported modules, or modules of packages, with the names of files or folders of a project.

    Modules that are built in or frozen are left out: they have precedence in a new interpreter, too.
    """
    names = {file.partition("/")[0].removesuffix(".py") for file in files}
    if not names:
        return []  # most runs have no files
    return [
        name
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in names and getattr(getattr(module, "__spec__", None), "has_location", False)
    ]


def find(namespace: types.ModuleType, entry_point: str) -> object:
    """Return the object that "name" or "module:name" refers to; names may have dots. Raises EntryPointMissing."""
    module, _, path = entry_point.rpartition(":")
    found: object = importlib.import_module(module) if module else namespace
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise EntryPointMissing(entry_point) from None
    return found


def as_callable(target: object) -> Callable[..., object]:
    """Return the object if it can be called. Raises TypeError as calling it would."""
    if not callable(target):
        raise TypeError(f"'{type(target).__name__}' object is not callable")
    return target


class DefinitionReport(TypedDict, total=False):
    """The reason why code could not be defined; one of the keys."""

    missing: str
    syntax: ErrorReport
    raised: ErrorReport


def report_of_definition(error: BaseException) -> DefinitionReport:
    """Return the report for the pool about code that could not be defined."""
    if isinstance(error, EntryPointMissing):
        return {"missing": str(error)}
    return {"syntax": describe(error)} if isinstance(error, SyntaxError) else {"raised": describe(error)}
