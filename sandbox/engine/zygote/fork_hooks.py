"""Keeps forks cheap."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_hooks() -> Iterator[None]:
    """Let modules imported inside register nothing that would run in every fork.

    What they register tidies up after threads, of which a zygote has none, and reseeds `random`, which is to give the
    same numbers in every run. It would cost each fork a quarter of a millisecond.
    """
    register, os.register_at_fork = os.register_at_fork, lambda **_: None
    try:
        yield
    finally:
        os.register_at_fork = register
