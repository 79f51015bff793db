"""Descriptions of exceptions, and encodings of values, of untrusted code. Neither can make these functions raise."""

import resource
from typing import TypedDict

from . import codec

_MAX_MESSAGE = 500


class ErrorReport(TypedDict):
    """An exception: the name of its type, the closest built-in class of its ancestry, its message and its line."""

    type: str
    builtin: str
    message: str
    line: int | None


def describe(error: BaseException, filename: str = "<solution>") -> ErrorReport:
    """Return the description of an exception, with the line of `filename` that raised it."""
    if isinstance(error, MemoryError):
        use_memory_reserve()
    kind = type(error)
    builtin = next((c.__name__ for c in kind.__mro__ if c.__module__ == "builtins"), "Exception")
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        line, message = error.lineno, str(error.msg)
    else:
        message = text_of(error)
    return {"type": str(kind.__name__)[:100], "builtin": builtin, "message": message[:_MAX_MESSAGE], "line": line}


def text_of(error: BaseException) -> str:
    """Return str(error), or "" if that raises."""
    try:
        return str.__str__(str(error))
    except BaseException:
        return ""


def encode_safely(value: object, export: codec.Export | None = None) -> object:
    """Encode a value; one that raises while it is encoded becomes opaque."""
    try:
        return codec.encode(value, export)
    except MemoryError:
        raise
    except Exception:
        return {"o": "object"}


def use_memory_reserve() -> None:
    """After a MemoryError, raise the memory limit by the reserve for reporting it."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
