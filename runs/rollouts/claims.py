"""Claim of a step: only one request at a time executes a step of an episode, on all web servers together."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypedDict

from django.db.models import Q

from hub.common import leases
from hub.common.leases import end_owner, new_owner
from runs.models import EpisodeSession
from runs.rollouts.errors import RolloutConflict, StepInProgress

LEASE = timedelta(seconds=60)
_RENEW_EVERY_S = 15.0
_WAIT_S = 10.0
_BRIEF_WAIT_S = 0.05  # seconds that a request waits without a slot: enough for most steps without slow tools
_FIRST_LOOK_S, _LATER_LOOK_S = 0.02, 0.25
# A request that waits occupies a thread of the web server, which has eight for each process (gunicorn.conf.py) and
# needs some for other requests.
_slots = threading.BoundedSemaphore(4)


class PendingStep(TypedDict):
    """Step that is executed, as it is stored. `request` is a digest of the request."""

    turn: int
    request: str


@contextmanager
def limited_wait(seconds: float) -> Iterator[float]:
    """Yield the seconds that the request of this thread may wait during the block: *seconds*, or less if many wait."""
    if not _slots.acquire(blocking=False):
        yield min(seconds, _BRIEF_WAIT_S)
        return
    try:
        yield seconds
    finally:
        _slots.release()


def pauses() -> Iterator[float]:
    """Yield the seconds to wait before each further read of a row that another request changes."""
    pause = _FIRST_LOOK_S
    while True:
        yield pause
        pause = min(_LATER_LOOK_S, pause * 2)


@contextmanager
def claim_step(session: EpisodeSession, *, wait: bool, pending: PendingStep | None = None) -> Iterator[bool]:
    """Hold the lease of *session* during the block, and yield True.

    If another step was stored since *session* was read, read it again and yield False, without a lease.

    If another request holds the lease: with *wait*, wait for at most 10 seconds, then raise StepInProgress; without
    *wait*, raise RolloutConflict. A lease of a process that was killed is taken over: at once on the same machine,
    otherwise when it lapses. *pending* is stored with the lease.
    """
    owner = new_owner()
    take = _take_when_free if wait else _take_now
    try:
        if not take(session, owner, pending):
            yield False
            return
        try:
            with leases.renewed(session, owner, LEASE, _RENEW_EVERY_S):
                yield True
        finally:
            if session.lease_owner == owner:  # the step was not stored, which would have released the lease
                leases.release(session, owner, pending=None)
    finally:
        end_owner(owner)


def _take_now(session: EpisodeSession, owner: str, pending: PendingStep | None) -> bool:
    """Take the lease. Return False if a step was stored meanwhile. Raises RolloutConflict if another request has it."""
    revision = session.revision
    if _took(session, owner, pending, revision):
        return True
    if session.revision == revision:
        raise RolloutConflict(
            "Another request is executing a step of this episode. Send `turn` to wait for its answer."
        )
    return False


def _take_when_free(session: EpisodeSession, owner: str, pending: PendingStep | None) -> bool:
    """Take the lease, waiting for another holder. Return False if a step was stored meanwhile."""
    revision = session.revision
    if _took(session, owner, pending, revision):
        return True
    with limited_wait(_WAIT_S) as seconds:
        deadline = time.monotonic() + seconds
        for pause in pauses():
            if session.revision != revision:
                return False
            if time.monotonic() > deadline:
                raise StepInProgress()
            time.sleep(pause)
            if _took(session, owner, pending, revision):
                return True
    raise AssertionError("unreachable code")


def _took(session: EpisodeSession, owner: str, pending: PendingStep | None, revision: int) -> bool:
    """Take the lease of *session* if it is free and still has *revision*; otherwise read the session again."""
    unchanged = Q(revision=revision)
    if leases.take(session, owner, LEASE, condition=unchanged, refresh=False, pending=pending):
        return True
    read_again(session)
    return False


def read_again(session: EpisodeSession, fields: Sequence[str] | None = None) -> None:
    """Read *session* again. Raises RolloutConflict if it was deleted."""
    try:
        session.refresh_from_db(fields=fields)
    except EpisodeSession.DoesNotExist:
        raise RolloutConflict("The episode was deleted meanwhile.") from None
