"""Bytecode of a bundle's code, put beside its source so that not every call compiles it anew.

It is what Python itself leaves in `__pycache__`, for this interpreter's version; an engine of another one passes it
over and reads the source. Only ever of a bundle's own code, for calls of that same code, and nothing of it runs here.
"""

import importlib.util
import marshal
from collections.abc import Mapping
from functools import lru_cache

from sandbox.verdicts.parsing import compiled

_LONGEST = 200_000  # bytes of source; compiling more is left to the run, whose processor time is limited
_UNCHECKED = (1).to_bytes(4, "little")  # the source is not looked at again
_NO_HASH = bytes(8)


def beside(module: str, files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """*files* with the bytecode of *module*, the path of one of them; unchanged where it does not compile."""
    place = importlib.util.cache_from_source(module)
    bytecode = _bytecode(module, files[module])
    return {**files, place: bytecode} if bytecode and place not in files else files


@lru_cache(64)
def _bytecode(path: str, source: bytes) -> bytes | None:
    if len(source) > _LONGEST:
        return None
    try:
        code = compiled(source, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None  # the run says what is wrong with it
    return importlib.util.MAGIC_NUMBER + _UNCHECKED + _NO_HASH + marshal.dumps(code)
