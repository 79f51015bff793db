"""Fewer garbage collections: none while modules are loaded, and few while a run is executed.

Python's collector examines all objects again and again, although those of loaded modules live until the process ends.
docs/decisions/0033-fewer-garbage-collections.md says what this saves.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_OBJECTS = 10_000  # created more than deleted until the next collection; 700 by default in Python 3.11


@contextmanager
def loading() -> Iterator[None]:
    """Load modules without collections, and exempt what they contain from later ones."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@cache  # once in a process: what one run leaves behind must not be exempt from collections during the next
def collect_seldom() -> None:
    """Exempt the objects that exist now from collections, and collect less often from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS)
