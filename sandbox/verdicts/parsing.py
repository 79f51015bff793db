"""Parsing Python source in a process with threads.

CPython up to 3.12 keeps the depth of the syntax tree that it builds in one place for all threads. If two threads build
a tree at the same time, it may raise SystemError ("AST constructor recursion depth mismatch") for valid source. Code
that needs a tree in a process with threads therefore uses these functions, which take turns.
"""

import ast
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType

_lock = threading.Lock()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Take the lock and ignore warnings, such as of "\\d" in a plain string, which are of no use here."""
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def parse(source: str | bytes) -> ast.Module:
    """Return the tree of a module. Raises what `ast.parse` raises."""
    with _one_at_a_time():
        return ast.parse(source)


def parse_expression(source: str) -> ast.expr:
    """Return the tree of an expression."""
    with _one_at_a_time():
        return ast.parse(source, mode="eval").body


def parse_checked(source: str) -> ast.Module:
    """Return the tree of a module, and raise errors that only compiling finds, such as `return` outside a function."""
    with _one_at_a_time():
        tree = ast.parse(source)
        compile(tree, "<source>", "exec", dont_inherit=True)
        return tree


def compile_source(source: bytes, path: str) -> CodeType:
    """Return the code of the module at *path*. Raises what `compile` raises."""
    with _one_at_a_time():
        return compile(source, path, "exec", dont_inherit=True)
