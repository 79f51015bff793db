"""Values and exceptions of untrusted code, made fit for the wire whatever they do."""

import resource
from typing import Any

from . import codec

_MAX_MESSAGE = 500


def describe(error: BaseException, filename: str = "<solution>") -> dict[str, Any]:
    """An exception: its type, the built-in that extends closest to it, its message, and its line in `filename`."""
    if isinstance(error, MemoryError):
        make_room()
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
    """str(error), or nothing where that fails too."""
    try:
        return str.__str__(str(error))
    except BaseException:
        return ""


def encode_safely(value: Any, export: codec.Export | None = None) -> Any:
    """Encode; a value that fights its encoder is opaque."""
    try:
        return codec.encode(value, export)
    except MemoryError:
        raise
    except Exception:
        return {"o": "object"}


def make_room() -> None:
    """After a MemoryError: allow what was kept back for saying so."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
