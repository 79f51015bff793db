"""What one job holds while it runs: an engine for the code, and one for the judge where they must be apart."""

import time
from collections.abc import Callable, Iterator

from sandbox.connections.engine_connection import Ended, Engine, Event, Said, wait_readable
from sandbox.engine.protocol import frames
from sandbox.errors import EngineFailed

_GRACE_S = 10.0  # beyond a run's own limit, for an engine under load to notice and say so


class Station:
    """One lease. Used by one thread at a time. `groups`: its engine may use control groups."""

    def __init__(self, engine: Engine, open_judge: Callable[[Engine], Engine], groups: bool = False) -> None:
        self.engine = engine
        self.groups = groups
        self._open_judge = open_judge
        self._judge: Engine | None = None
        self._other_end: dict[tuple[Engine, int], tuple[Engine, int]] = {}
        self._turn: tuple[Engine, int] | None = None  # who may speak to the other next

    @property
    def judge(self) -> Engine:
        """The engine that judges run in: the same one, unless its transport asks for another."""
        if not self.engine.transport.separate_judge:
            return self.engine
        if self._judge is None:
            self._judge = self._open_judge(self.engine)
        return self._judge

    @property
    def engines(self) -> list[Engine]:
        return [self.engine] if self._judge is None else [self.engine, self._judge]

    @property
    def direct(self) -> bool:
        """Whether a candidate and its judge can have a pipe between them."""
        return self.judge is self.engine or (self.engine.met and self.judge.met)

    def relay(self, candidate: int, judge: int) -> None:
        """Pass frames between two sessions that live in engines which cannot meet."""
        ends = (self.engine, candidate), (self.judge, judge)
        self._other_end |= {ends[0]: ends[1], ends[1]: ends[0]}
        self._turn = ends[1]

    def events(self, patience_s: float) -> Iterator[Event]:
        """What the runs say, until every one has ended. Raises EngineFailed when that takes too long.

        What linked runs say to each other is passed on, in turns; what one says out of turn comes back to the caller.
        """
        deadline = time.monotonic() + patience_s + _GRACE_S
        while any(engine.busy for engine in self.engines):
            by_transport = {engine.transport: engine for engine in self.engines}
            ready = wait_readable(list(by_transport), deadline - time.monotonic())
            if not ready:
                raise EngineFailed("A run outlived its limits by far: its engine does not respond.")
            for transport in ready:
                engine = by_transport[transport]
                for event in engine.read():
                    if not self._relayed(engine, event):
                        yield event
        self._other_end.clear()

    def _relayed(self, engine: Engine, event: Event) -> bool:
        other = self._other_end.get((engine, event.session))
        if other is None:
            return False
        if isinstance(event, Said) and event.kind == frames.PEER and self._turn == (engine, event.session):
            self._turn = other
            other[0].send(other[1], frames.PEER, event.payload)
            return True
        if isinstance(event, Ended):
            other[0].send(other[1], frames.PEER_GONE, b"")
        return False

    def close(self) -> None:
        """End every engine."""
        for engine in self.engines:
            engine.close()

    def abort(self) -> None:
        """From any thread: cut the engines off, so that who uses this station sees them fail."""
        for engine in self.engines:
            engine.transport.abort()

    def forget(self) -> None:
        """In a forked child: let go of the engines without ending them."""
        for engine in self.engines:
            engine.transport.forget()
