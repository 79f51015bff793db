"""What is fuzzed, each as a function of bytes that raises AssertionError where a promise breaks.

Used by the hypothesis tests of the suite and, for as long as wanted, by `python -m tests.sandbox.fuzz.run`.
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
"""The answer that tests expect. Nothing that is fuzzed contains it, so nothing may pass."""


def check_codec(data: bytes) -> None:
    """Decoding raises CodecError or gives a value that encodes again and comes back the same."""
    try:
        value = codec.decode(codec.loads(data))
    except codec.CodecError:
        return
    encoded = codec.encode(value)
    again = codec.encode(codec.decode(codec.loads(codec.dumps(encoded))))
    assert _ordered(again) == _ordered(encoded), f"{data!r} does not keep its value"


def _ordered(data: Any) -> Any:
    """Encoded data with the members of sets in one order, which the sets themselves do not have."""
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
    """However the stream is cut into pieces, the same frames come out, or it is refused as too large."""
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
        """The run ends without it."""

    kill_and_ignore = kill


class FuzzedEnginePair:
    """A pair with that engine. The frames of the candidate are read from fuzzed bytes."""

    can_link = True  # both runs share the engine

    def __init__(self, data: bytes, verdict: bytes | None) -> None:
        self.candidate = self.judge = FuzzedEngine()
        self.engines = [self.candidate]
        self._data, self._verdict = data, verdict
        self._ended = 0

    def events(self, wall_s: float) -> Iterator[Event]:
        """Frames of the run or the candidate, the judge's verdict, and the end of each session of this job.

        Literal tests with an answer that only a judge may use run in a judge afterwards, in two more sessions.
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
    """Each report leads to an outcome, and tests whose answer the run cannot know do not pass."""
    for job, verdict in JOBS:
        outcome = _run(job, data, verdict)
        assert outcome is not None, f"Reports of the run made the sandbox fail: {data!r}"
        assert outcome.status is not Status.BAD_TESTS, outcome
        assert not isinstance(job, FunctionJob) or outcome.status is not Status.PASSED, outcome
        json.dumps(outcome.to_json())


# ---- answers to the judge -------------------------------------------------------------------------------------------


class Wire(Channel):
    """A channel that hears what it is told to hear."""

    def __init__(self, data: bytes) -> None:
        super().__init__(-1)
        buffer = frames.RunBuffer(1 << 20)
        buffer.feed(data)
        try:
            self._heard = list(buffer.frames())
        except frames.FrameTooLarge:
            self._heard = []

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Nobody listens."""

    def has_input(self) -> bool:
        return False

    def peek(self) -> int:
        return self._heard[0][0] if self._heard else frames.PEER_GONE

    def receive(self) -> tuple[int, bytes]:
        return self._heard.pop(0) if self._heard else (frames.PEER_GONE, b"")


_EXPECTED_ENDS = (CandidateGone, Tampered, TooLarge, Missing, RemoteError)


def check_answers(data: bytes) -> None:
    """Whatever the candidate answers, the judge gets a value other than the expected one, or an exception it knows."""
    called: list[Any] = []
    argument: list[Any] = [1, {"a": [2]}]
    peer = Peer(Wire(data), {}, [])
    for ask in _questions(peer, argument, called.append):
        try:
            value = ask()
        except _EXPECTED_ENDS:
            continue
        except Exception as error:
            # An exception of the code crosses as the built-in of its name; the judge's own are named above.
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
    """However one operation is replied to, the judge gets a result of its type, or an exception that the table allows.

    The first byte chooses the operation; the rest is what the candidate writes.
    """
    if not data:
        return
    operation = OPERATIONS[data[0] % len(OPERATIONS)]
    peer = Peer(Wire(data[1:]), {}, [])
    argument: list[Any] = [1]
    try:
        value = _ask(peer, operation, argument)
    except StopIteration:
        assert operation in ("next", "anext"), f"{operation} ended an iteration"
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
    return peer.ask("apply", name=operation, on=1, args=[])


TARGETS: dict[str, Callable[[bytes], None]] = {
    "codec": check_codec,
    "frames": check_frames,
    "reports": check_reports,
    "answers": check_answers,
    "replies": check_replies,
}
