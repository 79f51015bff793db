"""What a zygote does before its first fork, so that no fork has to: imports, and a walk through every step of a run.

A fork that is the first to execute some code has the interpreter specialise it, fill caches of methods and number
types, and each page that this writes to has to be copied for it. Pages are most of what a short run costs: what was
done here is found done, and what a run allocates lies together.
"""

import ctypes
import gc
import os
import random
import socket
import sys
from itertools import repeat
from typing import Any

from ..candidate import definitions
from ..candidate import role as candidate_role
from ..candidate.service import Service
from ..isolation.lockdown import Base
from ..judge import role as judge_role
from ..protocol import channel, codec, frames
from .fork_hooks import no_hooks

# What model-written solutions and bundles' code use most. Every library costs each fork its pages, so only what is used
# often is here. `dataclasses` and `pathlib` make all runs a fiftieth slower; without them, one that imports either
# would take five times as long.
_WARM = """
abc bisect collections collections.abc copy dataclasses enum functools heapq io itertools json math operator pathlib
random re string time typing
""".split()

_CODE = '''
from typing import Dict, List, Optional, Tuple
import collections, math, re

class Node:
    """A class of the usual kind."""
    def __init__(self, value, children=()):
        self.value, self.children = value, list(children)
    def __eq__(self, other):
        return isinstance(other, Node) and self.value == other.value
    @property
    def size(self) -> int:
        return 1 + sum(child.size for child in self.children)

def rehearse(items: List[float], words: str = "", *, limit: Optional[int] = None) -> Tuple[int, List[str]]:
    """ A function of the usual kind, with a docstring of the usual length.
    >>> rehearse([1.0, 2.0], "a b")
    """
    table: Dict[int, list] = collections.defaultdict(list)
    for n, item in enumerate(sorted(items, key=lambda x: (-x, str(x)))):
        if limit is not None and n >= limit:
            break
        elif item % 2 == 0 and not (n < 0 or item != item):
            table[int(item) % 3].append(f"{n}:{item!r:>5}")
        else:
            table[n].extend([abs(item), round(item, 2), max(items), min(items)])
    seen, i = set(), 0
    while i < len(words):
        seen.add(words[i].lower())
        i += 1
    try:
        math.sqrt(sum(items)), divmod(7, 2), int("12"), words[99]
    except (IndexError, ValueError) as error:
        words = str(error)
    pairs = [(a, b) for a in range(3) for b in range(a) if a != b]
    text = " ".join(w.strip().title() for w in words.split(" ") if w) + re.sub(r"[aeiou]+", "", words)[::-1]
    return len(pairs) + Node(1, [Node(2)]).size + sum(map(len, table.values())), [text, *sorted(seen)]
'''
_PROMPT = '''
def double(items, words=""):
    """Twice everything."""
'''
_ANSWER = "    return [2 * item for item in items], 2 * words\n"
_TESTS = """
def check(candidate):
    assert candidate([1.5, 2], "a") == ([3.0, 4], "aa"), "told where it fails"
    for n in range(3):
        words = str(n)
        assert candidate([n], words)[0] == [n + n] and not n < 0
"""
_ROUNDS = 10  # until the interpreter has specialised the code
_MAX_RESULT = 1 << 20
_LIMITS = {
    "cpu_s": 10.0,
    "wall_s": 20.0,
    "memory_mb": 256,
    "file_mb": 8,
    "output_kb": 64,
    "descriptors": 64,
    "processes": 0,
}
_POOL = 16_384  # bytes of CPython's memory pools, each for blocks of one size
_POOL_HEADER = 48
_LARGEST_BLOCK = 512
_MOST = 1 << 20  # bytes of gaps of one size: there are far fewer, but another memory layout might have no end
_ROW = 64  # blocks looked at together

_gaps: list[Any] = []  # what fills them, for as long as the process lives


def load() -> None:
    """Import what runs are likely to, and give them their environment."""
    with no_hooks():
        for name in _WARM:
            __import__(name)
    os.environ.clear()
    os.environ.update(PATH="/usr/bin:/bin", LANG="C.UTF-8")
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    sys.dont_write_bytecode = True
    sys.argv = [""]


def walk_through(base: Base) -> None:
    """Take every step of a candidate and of a judge, often enough for the interpreter to have specialised them."""
    finders = list(sys.meta_path)
    for _ in range(_ROUNDS):
        _judge()
    for _ in range(_ROUNDS):  # last, since what was looked up last is what is still cached
        _candidate()
        base.rehearse(_LIMITS)
    sys.meta_path[:] = finders
    del sys.modules[definitions.MODULE]
    random.seed(0)


def _candidate() -> None:
    """Take a job through everything that a fork does with one, but for the lockdown."""
    call = ["rehearse", [[1.0, 2, 3.5], "some words, Some more"], {"limit": 9}]
    job = {"role": "candidate", "code": _CODE, "calls": [call, call], "max_result": _MAX_RESULT}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frames.to_run(frames.JOB, frames.with_head(job)))
        pipe = channel.Channel(theirs.fileno())
        _, payload = pipe.receive()
        head, _ = frames.split_head(payload)
        candidate_role.run(head, pipe)
        reports = frames.RunBuffer()
        reports.feed(ours.recv(_MAX_RESULT))
        for _, report in reports.frames():
            codec.decode(codec.loads(report).get("value"))


def _judge() -> None:
    job = {
        "role": "judge",
        "prompt": _PROMPT,
        "setup": "",
        "tests": _TESTS,
        "entry_point": "double",
        "shared": [],
        "modules": [],
        "linked": False,
    }
    judge_role.run(job, _Candidate(_PROMPT + _ANSWER))  # type: ignore[arg-type]


class _Candidate:
    """A judge's pipe to a candidate that lives in the same process."""

    def __init__(self, code: str) -> None:
        self._answers: list[bytes] = []
        self._service = Service(definitions.define(code), self._Back(self._answers), [], _MAX_RESULT)  # type: ignore[arg-type]

    class _Back:
        def __init__(self, answers: list[bytes]) -> None:
            self._answers = answers

        def send(self, kind: int, payload: bytes = b"") -> None:
            self._answers.append(payload)

    def send(self, kind: int, payload: bytes = b"") -> None:
        if kind == frames.PEER:
            self._service.answer(codec.loads(payload))

    def receive(self) -> tuple[int, bytes]:
        return frames.PEER, self._answers.pop()

    def has_input(self) -> bool:
        return bool(self._answers)


def settle() -> None:
    """Collect garbage for the last time, give its memory back, and fill the gaps that it leaves."""
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # glibc, whose habits the rest relies on
        libc.malloc_trim(0)
        _fill_heap(libc)
    if sys.implementation.name == "cpython":
        _fill_pools()
    gc.freeze()


def _fill_heap(libc: ctypes.CDLL) -> None:
    """Take what is free below the heap's end, so that new blocks come from there, one after the other."""
    malloc = libc.malloc
    malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    end = malloc(100_000)
    for size in (65_536, 16_384, 4096, 2048, *range(1600, _LARGEST_BLOCK - 16, -16)):
        for _ in range(_MOST // size):
            if malloc(size) > end:
                break


def _fill_pools() -> None:
    """Take what is free in pools that are in use, so that new objects come from fresh ones."""
    for size in range(16, _LARGEST_BLOCK + 1, 16):
        for _ in range(_MOST // (_ROW * size)):
            blocks = [_block(size) for _ in repeat(None, _ROW)]
            filling = _before_fresh_pool([id(block) for block in blocks], size)
            while len(blocks) > filling:
                blocks.pop()
            _gaps.append(blocks)
            if filling < _ROW:
                break


def _before_fresh_pool(addresses: list[int], size: int) -> int:
    """How many blocks come before the first of a pool that has not been used: the next ones follow it in order."""
    for number, first in enumerate(addresses[:-2]):
        if first % _POOL == _POOL_HEADER and addresses[number + 1 : number + 3] == [first + size, first + 2 * size]:
            return number
    return len(addresses)


def _block(size: int) -> Any:
    """A new object of so many bytes, a multiple of 16."""
    if size == 16:
        return object()
    return complex(0) if size == 32 else bytes(size - 33)
