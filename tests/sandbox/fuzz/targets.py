"""Fuzz targets: functions that take arbitrary bytes and raise AssertionError if a guarantee does not hold.

Used by the hypothesis tests, and by `python -m tests.sandbox.fuzz.run` for longer sessions.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

from sandbox.connections.engine_pair import EnginePair
from sandbox.connections.events import Event, RunEnd, RunMessage
from sandbox.engine.protocol import codec, frames, replies
from sandbox.engine.protocol.channel import Channel
from sandbox.engine.proxies.errors import CandidateGone, Missing, RemoteError, Tampered, TooLarge
from sandbox.engine.proxies.peer import Peer
from sandbox.engine.proxies.proxy import Proxy
from sandbox.errors import InfrastructureFailed
from sandbox.verdicts.execution import run_job
from sandbox.verdicts.jobs import CallJob, FunctionJob, Job, ProgramJob
from sandbox.verdicts.results import Outcome, Status

SECRET = "3f1c9a5e77d0"
"""The answer that tests expect. No fuzzed input contains it, so no test may pass."""


def check_codec(data: bytes) -> None:
    """Check that decoding raises CodecError or returns a value that is unchanged by encoding and decoding it again."""
    try:
        value = codec.decode(codec.loads(data))
    except codec.CodecError:
        return
    encoded = codec.encode(value)
    again = codec.encode(codec.decode(codec.loads(codec.dumps(encoded))))
    assert _ordered(again) == _ordered(encoded), f"{data!r} does not keep its value"


def _ordered(data: Any) -> Any:
    """Return encoded data with the members of sets sorted, so that it can be compared."""
    if isinstance(data, list):
        return [_ordered(item) for item in data]
    if not isinstance(data, dict):
        return data
    ordered = {tag: _ordered(content) for tag, content in data.items()}
    sets = {
        tag: sorted(content, key=repr) for tag, content in ordered.items() if tag in "sf" and isinstance(content, list)
    }
    return ordered | sets


def check_frames(data: bytes) -> None:
    """Check that a stream gives the same frames, or the same FrameTooLarge, for any division into pieces."""
    for kind in (frames.RunBuffer, frames.EngineBuffer):
        assert _frames_of(kind(4096), [data]) == _frames_of(kind(4096), [data[i : i + 1] for i in range(len(data))])


def _frames_of(buffer: Any, pieces: Sequence[bytes]) -> list[Any]:
    found: list[Any] = []
    try:
        for piece in pieces:
            buffer.feed(piece)
            found += buffer.frames()
    except frames.FrameTooLarge:
        found = ["too large"]
    return found


# ---- reports of runs --------------------------------------------------------------------------------------


class FuzzedEngine:
    """An engine that accepts each run; FuzzedEnginePair yields the frames of its runs."""

    tier = "A"
    suspect = False
    transport = SimpleNamespace(backend="fuzzed")

    def __init__(self) -> None:
        self.sessions = 0

    def start(self, *_: Any, **__: Any) -> int:
        self.sessions += 1
        return self.sessions

    def kill(self, session: int) -> None:
        """Do nothing: `FuzzedEnginePair.events` ends each run."""

    kill_and_ignore = kill


class FuzzedEnginePair:
    """Engine pair whose candidate sends frames read from fuzzed bytes."""

    can_link = True  # both runs share the engine

    def __init__(self, data: bytes, verdict: bytes | None) -> None:
        self.candidate = self.test_judge = FuzzedEngine()
        self.engines = [self.candidate]
        self._data, self._verdict = data, verdict
        self._ended = 0

    def events(self, wall_s: float) -> Iterator[Event]:
        """Yield the frames of the candidate, the verdict of the test judge, and the end of each session of the job.

        If an answer to literal tests needs a test judge, the job continues with two more sessions.
        """
        first, self._ended = self._ended + 1, self.candidate.sessions
        buffer = frames.RunBuffer(1 << 20)
        buffer.feed(self._data)
        try:
            for kind, payload in buffer.frames():
                yield RunMessage(first, kind, payload)
        except frames.FrameTooLarge:
            pass
        yield _end(first)
        if self._ended > first:
            yield RunMessage(first + 1, frames.REPORT, self._verdict or _LOST)
            yield _end(first + 1)


def _end(session: int) -> RunEnd:
    return RunEnd(
        session=session,
        code=0,
        reason="",
        started=True,
        fault="",
        cpu_ms=1.0,
        wall_ms=1.0,
        peak_mb=1.0,
        cut=False,
        stdout=b"",
        stderr=b"",
    )


def _function(tests: Any, **options: Any) -> FunctionJob:
    return FunctionJob("def f(x): pass\n", "f", tests, **options)


_LITERAL = f"def check(candidate):\n    assert candidate(1) == {SECRET!r}\n    assert candidate([2]) == {SECRET!r}\n"
_JUDGED = f"def check(candidate):\n    for x in (1, 2):\n        assert candidate(x) == {SECRET!r}\n"
_LOST = b'{"passed":0,"total":0,"failure":{"kind":"gone","message":""}}'

JOBS: list[tuple[Job, bytes | None]] = [
    (_function(_LITERAL), None),
    (_function([{"args": [1], "expect": SECRET}, {"args": [2], "kwargs": {"y": 1}, "expect": [SECRET]}]), None),
    (_function(_JUDGED), _LOST),
    (ProgramJob("print(1)"), None),
    (CallJob({"tools.py": b"def f(): pass"}, "tools.py", "f"), None),
]


def _run(job: Job, data: bytes, verdict: bytes | None) -> Outcome | None:
    try:
        return run_job(job, cast(EnginePair, FuzzedEnginePair(data, verdict)))
    except InfrastructureFailed:
        return None  # the pool turns it into infra_error


def check_reports(data: bytes) -> None:
    """Check that each report leads to an outcome, and that tests whose answer the run cannot know do not pass."""
    for job, verdict in JOBS:
        outcome = _run(job, data, verdict)
        assert outcome is not None, f"Reports of the run made the sandbox fail: {data!r}"
        assert outcome.status is not Status.BAD_TESTS, outcome
        assert not isinstance(job, FunctionJob) or outcome.status is not Status.PASSED, outcome
        json.dumps(outcome.to_json())


# ---- answers to the test judge --------------------------------------------------------------------------------------


class Wire(Channel):
    """Channel that receives the frames in fuzzed bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(-1)
        buffer = frames.RunBuffer(1 << 20)
        buffer.feed(data)
        try:
            self._received = list(buffer.frames())
        except frames.FrameTooLarge:
            self._received = []

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Discard the frame."""

    def has_input(self) -> bool:
        return False

    def peek(self) -> int:
        return self._received[0][0] if self._received else frames.PEER_GONE

    def receive(self) -> tuple[int, bytes]:
        return self._received.pop(0) if self._received else (frames.PEER_GONE, b"")


_EXPECTED_ENDS = (CandidateGone, Tampered, TooLarge, Missing, RemoteError)


def check_answers(data: bytes) -> None:
    """Check that no reply of the candidate gives the test judge the expected value or an unknown exception."""
    called: list[Any] = []
    argument: list[Any] = [1, {"a": [2]}]
    peer = Peer(Wire(data), {}, [])
    for ask in _questions(peer, argument, called.append):
        try:
            value = ask()
        except _EXPECTED_ENDS:
            continue
        except Exception as error:
            # An exception of the code arrives as the built-in exception of its name; the judge's own are listed above.
            assert "_llm_remote" in vars(error), f"{type(error).__name__}: {error}"
            continue
        assert (value == SECRET) is False
        assert (value == SECRET) is False
        assert not (isinstance(value, Proxy) and value in (SECRET, 0, None, True))
    assert SECRET not in map(str, argument)


def _questions(peer: Peer, argument: list[Any], callback: Callable[[Any], None]) -> Iterator[Callable[[], Any]]:
    yield lambda: peer.find("f")
    yield lambda: peer.call(1, (argument,), {})
    yield lambda: peer.call(1, (callback,), {})
    yield lambda: peer.ask("apply", name="getattr", on=1, args=["x"])


OPERATIONS = sorted(replies.OPERATIONS)
_RESULTS: dict[str, Callable[[Any], bool]] = {
    "len": lambda value: type(value) is int and value >= 0,
    "bool": lambda value: type(value) is bool,
    "int": lambda value: type(value) is int,
    "float": lambda value: type(value) is float,
    "iter": lambda value: isinstance(value, Proxy),
    **dict.fromkeys(("str", "repr"), lambda value: type(value) is str),
    **dict.fromkeys(("setattr", "delattr", "setitem", "delitem"), lambda value: value is None),
}


def check_replies(data: bytes) -> None:
    """Check that a reply to one operation gives a result of its type, or an exception that the table allows.

    The first byte selects the operation; the rest is the candidate's reply.
    """
    if not data:
        return
    operation = OPERATIONS[data[0] % len(OPERATIONS)]
    peer = Peer(Wire(data[1:]), {}, [])
    argument: list[Any] = [1]
    try:
        value = _ask(peer, operation, argument)
    except StopIteration:
        assert operation in ("next", "anext", "send", "throw"), f"{operation} ended an iteration"
    except Missing:
        assert operation == "get", f"{operation} found a name missing"
    except (CandidateGone, Tampered, TooLarge):
        pass
    except Exception as error:
        assert "_llm_remote" in vars(error), f"{operation}: {type(error).__name__}: {error}"
    else:
        assert _RESULTS.get(operation, lambda value: True)(value), f"{operation} gave {value!r:.80}"
        assert type(argument) is list


def _ask(peer: Peer, operation: str, argument: list[Any]) -> Any:
    if operation == "get":
        return peer.ask("get", name="f")
    if operation == "call":
        return peer.call(1, (argument, len), {})
    return peer.ask("apply", name=operation, on=1, args=["x"] if operation == "getattr" else [])


TARGETS: dict[str, Callable[[bytes], None]] = {
    "codec": check_codec,
    "frames": check_frames,
    "reports": check_reports,
    "answers": check_answers,
    "replies": check_replies,
}
