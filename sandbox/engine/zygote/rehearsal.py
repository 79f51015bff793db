"""Rehearsal: the zygote takes every step of a run before its first fork.

The interpreter specialises code and fills caches when it first executes it. Code that only a fork executes would be
specialised in every fork, and each page written to would be copied. @FIGURE@
"""

import random
import socket
import sys
from typing import cast

from ..candidate import definitions
from ..candidate import role as candidate_role
from ..candidate.service import JudgeRequest, Service
from ..isolation.limits import RunLimits
from ..isolation.lockdown import Isolation
from ..judge import role as judge_role
from ..protocol import channel, codec, frames

_CODE = '''
from typing import Dict, List, Optional, Tuple
import collections, math, re

class Node:
    """A typical class."""
    def __init__(self, value, children=()):
        self.value, self.children = value, list(children)
    def __eq__(self, other):
        return isinstance(other, Node) and self.value == other.value
    @property
    def size(self) -> int:
        return 1 + sum(child.size for child in self.children)

def rehearse(items: List[float], words: str = "", *, limit: Optional[int] = None) -> Tuple[int, List[str]]:
    """ A typical function, with a docstring of typical length.
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
    assert candidate([1.5, 2], "a") == ([3.0, 4], "aa"), "a message"
    for n in range(3):
        words = str(n)
        assert candidate([n], words)[0] == [n + n] and not n < 0
"""
_ROUNDS = 10  # until the interpreter has specialised the code
_MAX_RESULT = 1 << 20
_LIMITS: RunLimits = {
    "cpu_s": 10.0,
    "wall_s": 20.0,
    "memory_mb": 256,
    "file_mb": 8,
    "output_kb": 64,
    "descriptors": 64,
    "processes": 0,
}


def rehearse(isolation: Isolation) -> None:
    """Take every step of a judge and of a candidate, and undo what a run could notice."""
    finders = list(sys.meta_path)
    for _ in range(_ROUNDS):
        _judge()
    for _ in range(_ROUNDS):  # last, because caches keep the latest entries
        run_candidate()
        isolation.rehearse(_LIMITS)
    sys.meta_path[:] = finders
    del sys.modules[definitions.MODULE]
    random.seed(0)


def run_candidate() -> None:
    """Take a job through all steps of a fork except the isolation."""
    call = ["rehearse", [[1.0, 2, 3.5], "some words, Some more"], {"limit": 9}]
    job = {"role": "candidate", "code": _CODE, "calls": [call, call], "max_result": _MAX_RESULT}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frames.to_run(frames.JOB, frames.with_head(job)))
        pipe = channel.Channel(theirs.fileno())
        _, payload = pipe.receive()
        head, _ = frames.split_head(payload)
        candidate_role.run(cast(candidate_role.CandidateInput, head), pipe)
        reports = frames.RunBuffer()
        reports.feed(ours.recv(_MAX_RESULT))
        for _, report in reports.frames():
            codec.decode(codec.of_type(dict, codec.loads(report)).get("value"))


def _judge() -> None:
    job: judge_role.JudgeInput = {
        "prompt": _PROMPT,
        "setup": "",
        "tests": _TESTS,
        "entry_point": "double",
        "shared": [],
        "modules": [],
        "linked": False,
    }
    judge_role.run(job, _LocalChannel(_PROMPT + _ANSWER))


class _Replies(channel.Channel):
    """Channel that keeps what is sent."""

    def __init__(self) -> None:
        super().__init__(-1)
        self.payloads: list[bytes] = []

    def send(self, kind: int, payload: bytes = b"") -> None:
        self.payloads.append(payload)


class _LocalChannel(channel.Channel):
    """A judge's channel to a candidate in the same process."""

    def __init__(self, code: str) -> None:
        super().__init__(-1)
        self._replies = _Replies()
        self._service = Service(definitions.define(code), self._replies, [], _MAX_RESULT)

    def send(self, kind: int, payload: bytes = b"") -> None:
        if kind == frames.PEER:
            self._service.answer(cast(JudgeRequest, codec.loads(payload)))

    def receive(self) -> tuple[int, bytes]:
        return frames.PEER, self._replies.payloads.pop()

    def has_input(self) -> bool:
        return bool(self._replies.payloads)
