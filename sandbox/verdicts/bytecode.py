"""Bytecode of a bundle's code, sent with its source so that not every call compiles it again.

It is a `__pycache__` file of this interpreter's version; an engine of another version ignores it and reads the source.
Only calls of bundle code get it, only for that bundle's own code, and nothing of it runs in this process.
"""

import importlib.util
import marshal
from collections.abc import Mapping
from functools import lru_cache

from sandbox.verdicts.parsing import compile_source

_MAX_SOURCE_BYTES = 200_000  # longer source is compiled in the run, whose processor time is limited
_UNCHECKED = (1).to_bytes(4, "little")  # PEP 552: Python does not compare the bytecode with the source
_NO_HASH = bytes(8)


def add_bytecode(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return *files* with the bytecode of each Python file that compiles and has none."""
    added = {}
    for path, content in files.items():
        if path.endswith(".py") and (place := importlib.util.cache_from_source(path)) not in files:
            bytecode = _compile(path, content)
            if bytecode is not None:
                added[place] = bytecode
    return {**files, **added}


@lru_cache(256)
def _compile(path: str, source: bytes) -> bytes | None:
    if len(source) > _MAX_SOURCE_BYTES:
        return None
    try:
        code = compile_source(source, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None  # the run reports the error
    return importlib.util.MAGIC_NUMBER + _UNCHECKED + _NO_HASH + marshal.dumps(code)
