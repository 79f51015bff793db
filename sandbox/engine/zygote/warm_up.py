"""A small job that the zygote executes before its first fork. Its figures are in docs/decisions/0012."""

import sys

from ..candidate.definitions import MODULE
from ..isolation import limits
from ..protocol import frames
from ..protocol.channel import Channel
from .runner import ROLES

_REPEATS = 10  # CPython specialises a function after eight calls
_CODE = """
from typing import List

def f(numbers: List[int], text: str = "") -> list:
    total = 0
    for number in numbers:
        if number % 2 == 0 and text != "a":
            total += number
    return [total, str(total), {"a": 1.5}]
"""
_JOB = {
    "code": _CODE,
    "calls": [["f", [[1, 2, 3], "b"], {}]],
    "required": [],
    "shared": [],
    "linked": False,
    "max_result": 1000,
    "limits": {"cpu_s": 1, "wall_s": 1, "memory_mb": 1, "file_mb": 1, "output_kb": 1, "descriptors": 1, "processes": 0},
}


class _NoChannel(Channel):
    """A channel that discards what is sent."""

    def send(self, kind: int, payload: bytes = b"") -> None:
        pass


def execute_small_job() -> None:
    """Parse and execute a job as a run does, without its isolation.

    CPython specialises the functions of a run here, once. Otherwise each fork does it, and each page that this
    changes is copied for that fork.
    """
    payload = frames.with_head(_JOB)
    for _ in range(_REPEATS):
        head, _bodies = frames.split_head(payload)
        limits.resource_limits(limits.limits_of(head), packages=False, private_user=True)
        ROLES["candidate"](head, _NoChannel())
    sys.modules.pop(MODULE)
