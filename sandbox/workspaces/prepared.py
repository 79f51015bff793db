"""Boxes that are opened before an episode needs them, so that its reset does not wait for a container."""

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import BoxSpec, Handle, WorkspaceError

logger = logging.getLogger(__name__)

IDLE_S = 30.0  # a box that is not used in this time is closed
_LATELY_S = 10.0  # as many boxes of a kind are kept as were opened in this time
_LOOK_EVERY_S = 1.0
_FINISH_S = 10.0  # for a box that is being opened when no more are wanted


@dataclass(slots=True)
class _Kind:
    """Boxes of one spec: those that wait, each with the time at which it was opened, and the times of openings."""

    waiting: deque[tuple[Handle, float]] = field(default_factory=deque)
    used: deque[float] = field(default_factory=deque)

    def wanted(self, now: float) -> int:
        while self.used and now - self.used[0] > _LATELY_S:
            self.used.popleft()
        return len(self.used)


class PreparedBoxes:
    """At most *number* boxes that wait for an episode, of the specs that were used lately.

    A thread opens them one after the other, and closes those that nobody has used for IDLE_S.
    """

    def __init__(self, number: int, open_box: Callable[[BoxSpec], Handle], close: Callable[[Handle], None]) -> None:
        self._number = number
        self._open = open_box
        self._close = close
        self._kinds: dict[BoxSpec, _Kind] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def take(self, spec: BoxSpec) -> Handle | None:
        """Return a box of *spec* that waits, or None. In both cases others are opened for the next episodes."""
        if not self._number or spec.services or spec.allowed:
            return None
        spec = replace(spec, services=(), allowed=())  # an empty list could not be a key
        with self._changed:
            kind = self._kinds.setdefault(spec, _Kind())
            kind.used.append(time.monotonic())
            if self._thread is None:
                atexit.register(self.close)
                self._thread = threading.Thread(target=self._prepare, name="workspaces-prepare", daemon=True)
                self._thread.start()
            self._changed.notify()
            return kind.waiting.popleft()[0] if kind.waiting else None

    def close(self) -> None:
        """Close all boxes that wait, and prepare no more."""
        if os.getpid() != self._process:
            return  # a forked process: the boxes belong to its parent
        with self._changed:
            self._number = 0
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_FINISH_S)
        with self._changed:
            boxes = [box for kind in self._kinds.values() for box, _ in kind.waiting]
            self._kinds.clear()
        for box in boxes:
            self._close(box)

    def _prepare(self) -> None:
        while self._number:
            with self._changed:
                unused = self._remove_unused()
                spec = None if unused else self._next()
                if spec is None and not unused:
                    self._changed.wait(_LOOK_EVERY_S)
            for box in unused:
                self._close(box)
            if spec is not None:
                self._add(spec)

    def _next(self) -> BoxSpec | None:
        """Return the spec of which a box should be opened now."""
        if sum(len(kind.waiting) for kind in self._kinds.values()) >= self._number:
            return None
        now = time.monotonic()
        return next((spec for spec, kind in self._kinds.items() if len(kind.waiting) < kind.wanted(now)), None)

    def _add(self, spec: BoxSpec) -> None:
        try:
            box = self._open(spec)
        except (SandboxUnavailable, WorkspaceError) as error:
            # The next episode meets the same error and reports it.
            logger.debug("no box was prepared: %s", error)
            with self._changed:
                self._kinds.pop(spec, None)
            return
        with self._changed:
            kind = self._kinds.get(spec)
            if self._number and kind is not None:
                kind.waiting.append((box, time.monotonic()))
                return
        self._close(box)

    def _remove_unused(self) -> list[Handle]:
        unused = []
        now = time.monotonic()
        for spec, kind in list(self._kinds.items()):
            while kind.waiting and now - kind.waiting[0][1] > IDLE_S:
                unused.append(kind.waiting.popleft()[0])
            if not kind.waiting and not kind.wanted(now):
                del self._kinds[spec]
        return unused
