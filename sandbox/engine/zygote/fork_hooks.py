"""Fork hooks of imported modules, which runs must not execute."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_hooks() -> Iterator[None]:
    """Ignore the fork hooks that modules register when they are imported.

    `random` would reseed itself in every fork, but every run must start with the same random numbers. The other hooks
    clean up after threads, and a zygote has none. Together they would cost each fork a quarter of a millisecond.
    """
    register, os.register_at_fork = os.register_at_fork, lambda **_: None
    try:
        yield
    finally:
        os.register_at_fork = register
