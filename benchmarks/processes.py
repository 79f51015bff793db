"""Processor time of the processes that a benchmark starts."""

import os
from pathlib import Path


def processor_seconds_of(program: str) -> float:
    """Return the seconds of all processes of *program*, such as postgres, and of their ended children."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            before, _, after = path.read_text().rpartition(")")
        except OSError:
            continue  # it has just ended
        if before.partition("(")[2] == program:
            ticks += sum(int(field) for field in after.split()[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    """Return the processor time of *pid* and its descendants, ended ones included; 0 if it is unknown."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        processes[int(path.parent.name)] = (int(fields[1]), sum(int(field) for field in fields[11:15]))
    tree, size = {pid}, 0
    while len(tree) > size:
        size = len(tree)
        tree |= {child for child, (parent, _) in processes.items() if parent in tree}
    return sum(processes[item][1] for item in tree if item in processes) / os.sysconf("SC_CLK_TCK")
