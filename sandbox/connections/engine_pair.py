"""The engines of one job."""

import time
from collections.abc import Callable, Iterator

from sandbox.connections.engine_connection import EngineConnection, wait_readable
from sandbox.connections.events import Event, RunEnd, RunMessage
from sandbox.engine.protocol import frames
from sandbox.errors import EngineFailed

_GRACE_S = 10.0  # beyond the limit of a run, for an engine under load to notice it and report


class EnginePair:
    """An engine that runs code, and a second one for test judges if the backend keeps the two apart.

    Used by one job, in one thread, at a time.

    candidate    the engine that runs the code
    cgroups      whether the engine may use control groups
    """

    def __init__(
        self,
        candidate: EngineConnection,
        open_test_judge: Callable[[EngineConnection], EngineConnection],
        cgroups: bool = False,
    ) -> None:
        self.candidate = candidate
        self.cgroups = cgroups
        self._open_test_judge = open_test_judge
        self._test_judge: EngineConnection | None = None
        self._peers: dict[tuple[EngineConnection, int], tuple[EngineConnection, int]] = {}
        self._may_send: tuple[EngineConnection, int] | None = None

    @property
    def test_judge(self) -> EngineConnection:
        """The engine that test judges run in; opened at first use if it is another one than `candidate`."""
        if not self.candidate.transport.separate_test_judge:
            return self.candidate
        if self._test_judge is None:
            self._test_judge = self._open_test_judge(self.candidate)
        return self._test_judge

    @property
    def engines(self) -> list[EngineConnection]:
        """The engines opened so far."""
        return [self.candidate] if self._test_judge is None else [self.candidate, self._test_judge]

    @property
    def can_link(self) -> bool:
        """Whether a candidate and its judge can have a pipe between them."""
        return self.test_judge is self.candidate or (self.candidate.can_link and self.test_judge.can_link)

    def relay(self, candidate: int, judge: int) -> None:
        """Forward frames between the sessions *candidate* and *judge*, whose engines cannot link."""
        ends = (self.candidate, candidate), (self.test_judge, judge)
        self._peers |= {ends[0]: ends[1], ends[1]: ends[0]}
        self._may_send = ends[1]

    def events(self, wall_s: float) -> Iterator[Event]:
        """Yield the events of all runs until each has ended. Raises EngineFailed if that takes far more than *wall_s*.

        Frames between relayed runs are forwarded, strictly in turns. A frame out of turn is yielded.
        """
        deadline = time.monotonic() + wall_s + _GRACE_S
        while any(engine.busy for engine in self.engines):
            by_transport = {engine.transport: engine for engine in self.engines}
            ready = wait_readable(list(by_transport), deadline - time.monotonic())
            if not ready:
                raise EngineFailed("The engine does not respond: a run exceeded its time limit by far.")
            for transport in ready:
                engine = by_transport[transport]
                for event in engine.read():
                    if not self._forward(engine, event):
                        yield event
        self._peers.clear()

    def _forward(self, engine: EngineConnection, event: Event) -> bool:
        """Forward the frame of a relayed run to its peer; return whether that was done."""
        peer = self._peers.get((engine, event.session))
        if peer is None:
            return False
        if isinstance(event, RunMessage) and event.kind == frames.PEER and self._may_send == (engine, event.session):
            self._may_send = peer
            peer[0].send(peer[1], frames.PEER, event.payload)
            return True
        if isinstance(event, RunEnd):
            peer[0].send(peer[1], frames.PEER_GONE, b"")
        return False

    def close(self) -> None:
        """End each engine."""
        for engine in self.engines:
            engine.close()

    def abort(self) -> None:
        """Disconnect the engines, from any thread. The thread that uses the pair gets EngineFailed."""
        for engine in self.engines:
            engine.transport.abort()

    def detach_after_fork(self) -> None:
        """Release the engines in a forked child without ending them."""
        for engine in self.engines:
            engine.transport.detach_after_fork()
