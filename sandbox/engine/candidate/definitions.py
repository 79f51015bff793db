"""From source text to the object that is to be called."""

import importlib
import sys
import types
from typing import Any

from ..protocol.error_reports import describe

MODULE = "solution"


class EntryPointMissing(Exception):
    """The code defines nothing of the name that is to be called."""


def compile_source(code: str, filename: str) -> types.CodeType:
    """Compile, with everything that makes source unusable reported as a SyntaxError of `filename`."""
    try:
        return compile(code, filename, "exec", dont_inherit=True)
    except SyntaxError:
        raise
    except (ValueError, UnicodeError, RecursionError, MemoryError, OverflowError) as error:
        raise SyntaxError(f"{type(error).__name__}: {error}", (filename, None, None, None)) from None


def define(code: str, module: str = MODULE, prelude: str = "") -> types.ModuleType:
    """Execute `code` as a new module, not as `__main__`. Raises SyntaxError, or whatever the code raises.

    prelude  classes of the prompt, which the code may use without repeating them
    """
    program = compile_source(code, f"<{module}>")
    namespace = types.ModuleType(module)
    sys.modules[module] = namespace  # dataclasses and typing look a class's module up
    if prelude:
        try:
            exec(compile_source(prelude, "<prompt>"), namespace.__dict__)
        except Exception:
            pass  # the prompt's fault, which the judge reports
    exec(program, namespace.__dict__)
    return namespace


def find(namespace: types.ModuleType, entry_point: str) -> Any:
    """The object that "name" or "module:name" stands for, dots followed. Raises EntryPointMissing."""
    module, _, path = entry_point.rpartition(":")
    found: Any = importlib.import_module(module) if module else namespace
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise EntryPointMissing(entry_point) from None
    return found


def report_of_definition(error: BaseException) -> dict[str, Any]:
    """Why code could not be defined, for the pool: missing, syntax or raised."""
    if isinstance(error, EntryPointMissing):
        return {"missing": str(error)}
    return {"syntax" if isinstance(error, SyntaxError) else "raised": describe(error)}
