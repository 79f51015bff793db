"""Rules by which the holders of one endpoint's limits share them, and the back end for a single process.

A holder is one connection of one process to an endpoint. It is granted a number of slots, and may have that many
requests in flight without asking again. The slots of all holders together never exceed the limit. Holders report
several times a second at most; one that stops reporting loses its slots after HOLDER_LIVES_S.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import floor
from typing import Protocol, TypedDict

HOLDER_LIVES_S = 10.0
_REBUILD_S = 3.0  # after the shared state was lost: until all holders have reported again
_CUT_EVERY_S = 1.0  # rejections of requests that were sent together halve the limit once
_TOKEN_BURST_S = 5.0


class Holder(TypedDict):
    """Last report of a holder. served: when it last had a slot."""

    slots: int
    wanted: int
    limit: int
    until: float
    served: float


class Bucket(TypedDict):
    """Requests or tokens that may be used now. It is refilled steadily up to its capacity."""

    level: float
    at: float


class State(TypedDict, total=False):
    """Shared state of one endpoint, as JSON. allowed: the limit, while rejections keep it below that of the config."""

    holders: dict[str, Holder]
    allowed: float
    cut_at: float
    paused_until: float
    rebuilt_at: float
    requests: Bucket
    tokens: Bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Report of a holder, for which it gets its next grant.

    held: slots that it keeps until it gets the grant. wanted: slots that it could use. replies, tokens: since its last
    report.
    throttled: the endpoint rejected a request. pause_s: how long it asked to wait. wants_requests: requests that wait.
    """

    holder: str
    limit: int
    held: int
    wanted: int
    replies: int = 0
    throttled: bool = False
    pause_s: float = 0.0
    wants_requests: int = 0
    requests_per_minute: int | None = None
    tokens: float = 0.0
    tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Permission for a holder to send requests.

    slots: if it holds more, it gives each up when its request ends. requests: in addition to those of earlier grants.
    contended: holders want more slots than there are.
    """

    slots: int
    requests: int = 0
    tokens: float = 0.0
    pause_s: float = 0.0
    contended: bool = False


class SharesUnavailable(Exception):
    """The service that keeps the shares does not answer. It may answer later."""


class Shares(Protocol):
    """Back end that stores the shared state of endpoints, by key."""

    async def renew(self, key: str, report: Report) -> Grant:
        """Report the state of a holder and return its next grant. Raises SharesUnavailable."""

    async def aclose(self) -> None:
        """Close the connection to the service that keeps the shares."""


def grant(state: State, report: Report, now: float) -> Grant:
    """Apply *report* to *state* and return the grant. now: seconds by the clock that all holders share."""
    holders = state["holders"] = {
        name: holder for name, holder in state.get("holders", {}).items() if holder["until"] > now
    }
    mine = holders.pop(report.holder, None)
    if mine is None and report.held:
        state["rebuilt_at"] = max(state.get("rebuilt_at", 0.0), now + _REBUILD_S)
    others = list(holders.values())
    capacity = _adapt(state, report, max([report.limit, *(holder["limit"] for holder in others)]), now)
    wanted = min(report.wanted, report.limit)
    served = mine["served"] if mine else 0.0
    fair = _fair_shares(capacity, [(served, wanted), *((holder["served"], holder["wanted"]) for holder in others)])[0]
    if state.get("rebuilt_at", 0.0) > now:
        fair = min(fair, report.held)
    slots = min(fair, max(report.held, capacity - sum(holder["slots"] for holder in others)))
    if wanted or report.held:
        holders[report.holder] = {
            "slots": max(slots, report.held),  # slots that it should give up are its own until it reports without them
            "wanted": wanted,
            "limit": report.limit,
            "until": now + HOLDER_LIVES_S,
            "served": now if slots else served,
        }
    requests, tokens = _use_buckets(state, report, now, sum(1 for holder in holders.values() if holder["wanted"]))
    return Grant(
        slots=slots,
        requests=requests,
        tokens=tokens,
        pause_s=max(0.0, state.get("paused_until", 0.0) - now),
        contended=bool(others) and wanted + sum(holder["wanted"] for holder in others) > capacity,
    )


def _adapt(state: State, report: Report, limit: int, now: float) -> int:
    """Return the limit: halved when the endpoint rejects requests, and raised by one for each round of replies."""
    if report.pause_s:
        state["paused_until"] = max(state.get("paused_until", 0.0), now + report.pause_s)
    allowed = min(state.get("allowed", float(limit)), float(limit))
    if report.throttled and now - state.get("cut_at", 0.0) >= _CUT_EVERY_S:
        allowed, state["cut_at"] = max(1.0, allowed / 2), now
    elif report.replies and not report.throttled:
        allowed = min(float(limit), allowed + report.replies / allowed)
    state.pop("allowed", None)
    if allowed < limit:
        state["allowed"] = allowed
    return floor(allowed)


def _fair_shares(capacity: int, holders: Iterable[tuple[float, int]]) -> list[int]:
    """Return how many slots each holder (served, wanted) should have: equally many, but not more than it wants.

    Slots that cannot be divided equally (all of them if there are fewer slots than holders) go to the holders whose
    last slot is longest ago.
    """
    rows = list(holders)
    shares = [0] * len(rows)
    left = capacity
    while left > 0 and (hungry := [i for i, (_, wanted) in enumerate(rows) if shares[i] < wanted]):
        each = left // len(hungry)
        if not each:
            hungry = sorted(hungry, key=lambda i: rows[i][0])[:left]
            each = 1
        for i in hungry:
            more = min(each, rows[i][1] - shares[i])
            shares[i] += more
            left -= more
    return shares


def _use_buckets(state: State, report: Report, now: float, holders: int) -> tuple[int, float]:
    """Return the requests and the tokens that the holder may use now."""
    requests, tokens = 0, 0.0
    if report.requests_per_minute:
        rate = report.requests_per_minute / 60
        bucket = state["requests"] = _refilled(state.get("requests"), rate, max(1.0, rate), now)
        requests = max(0, min(report.wants_requests, floor(bucket["level"])))
        bucket["level"] -= requests
    if report.tokens_per_minute:
        rate = report.tokens_per_minute / 60
        bucket = state["tokens"] = _refilled(state.get("tokens"), rate, rate * _TOKEN_BURST_S, now)
        bucket["level"] -= report.tokens
        tokens = bucket["level"] / max(1, holders)
    return requests, tokens


def _refilled(bucket: Bucket | None, rate: float, capacity: float, now: float) -> Bucket:
    if bucket is None:
        return {"level": capacity, "at": now}
    return {"level": min(capacity, bucket["level"] + max(0.0, now - bucket["at"]) * rate), "at": now}


@dataclass(slots=True)
class LocalShares:
    """Back end for one process: its threads and event loops share the state."""

    clock: "Clock"
    _states: dict[str, State] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def renew(self, key: str, report: Report) -> Grant:
        with self._lock:
            state = self._states.setdefault(key, State())
            granted = grant(state, report, self.clock())
            if not state["holders"] and not (report.requests_per_minute or report.tokens_per_minute):
                del self._states[key]
            return granted

    async def aclose(self) -> None:
        """Do nothing: the state belongs to the process."""


class Clock(Protocol):
    """Returns seconds since some moment."""

    def __call__(self) -> float: ...
