"""State of the zygote before its first fork: imported modules, the environment and the random numbers of runs."""

import os
import random
import site
import sys

from .fork_hooks import no_hooks

# The modules that model-written solutions and the code of bundles use most. Each costs every fork some pages, so the
# list is short. `dataclasses` and `pathlib` make all runs 2 % slower; without them, a run that imports either takes
# five times as long.
_MODULES = """
abc bisect collections collections.abc copy dataclasses enum functools heapq io itertools json math operator pathlib
random re string time typing
""".split()


def load() -> None:
    """Import the modules, define `exit` and the like, set the environment of runs, and seed `random`.

    So all runs draw the same random numbers.
    """
    with no_hooks():
        for name in _MODULES:
            __import__(name)
    os.environ.clear()
    os.environ.update(PATH="/usr/bin:/bin", LANG="C.UTF-8")
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    for define_names in (site.setquit, site.setcopyright, site.sethelper):  # the engine starts without `site`
        define_names()
    sys.dont_write_bytecode = True
    sys.argv = [""]
    random.seed(0)
