"""Parsing Python source from several threads at once.

CPython up to 3.12 keeps the depth of the syntax tree that it is building in one place for all threads. Where two
threads build one at the same time it may raise SystemError ("AST constructor recursion depth mismatch") for sound
source. Whatever needs a tree in a process with threads therefore takes it from here.
"""

import ast
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType

_building = threading.Lock()


@contextmanager
def _alone() -> Iterator[None]:
    """One thread at a time, warnings unsaid: a "\\d" in a plain string is nobody's business here."""
    with _building, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def parse(source: str | bytes) -> ast.Module:
    """`ast.parse`, one thread at a time, its warnings unsaid. Raises what it raises."""
    with _alone():
        return ast.parse(source)


def parse_expression(source: str) -> ast.expr:
    """The tree of one expression."""
    with _alone():
        return ast.parse(source, mode="eval").body


def parse_checked(source: str) -> ast.Module:
    """`parse`, and what only compiling finds besides, such as a `return` outside of a function."""
    with _alone():
        tree = ast.parse(source)
        compile(tree, "<source>", "exec", dont_inherit=True)
        return tree


def compiled(source: bytes, path: str) -> CodeType:
    """The code of a module that lies at *path*. Raises what `compile` raises."""
    with _alone():
        return compile(source, path, "exec", dont_inherit=True)
