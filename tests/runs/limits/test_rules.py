"""The rules by which holders share the limits of an endpoint."""

import json

import pytest

from runs.limits.headers import pause_of
from runs.limits.shares import HOLDER_LIVES_S, Grant, Report, State, grant


class Clocked:
    """Shared state of an endpoint at a moment that tests move."""

    def __init__(self) -> None:
        self.state, self.now = State(), 1000.0
        self.held: dict[str, int] = {}

    def report(
        self, holder: str, *, wanted: int = 16, limit: int = 16, held: int | None = None, **more: object
    ) -> Grant:
        """Report as *holder*, which gives up at once what it was not granted again."""
        before = self.held.get(holder, 0) if held is None else held
        report = Report(holder=holder, limit=limit, held=before, wanted=wanted, **more)  # type: ignore[arg-type]
        granted = grant(self.state, report, self.now)
        self.state = json.loads(json.dumps(self.state))  # as it is stored
        self.held[holder] = granted.slots
        return granted

    def lose_state(self) -> None:
        self.state = State()


def test_only_holder_gets_the_whole_limit() -> None:
    assert Clocked().report("a") == Grant(slots=16)


def test_second_holder_gets_half_once_the_first_has_given_it_up() -> None:
    endpoint = Clocked()
    endpoint.report("a")
    assert endpoint.report("b") == Grant(slots=0, contended=True)
    assert endpoint.report("a").slots == 8
    assert endpoint.report("b").slots == 0  # requests of the first may still be in flight
    endpoint.report("a")
    assert endpoint.report("b").slots == 8


def test_slots_that_a_holder_does_not_want_go_to_others() -> None:
    endpoint = Clocked()
    endpoint.report("a", wanted=3)
    assert endpoint.report("b").slots == 13


def test_holders_take_turns_if_there_are_more_of_them_than_slots() -> None:
    endpoint = Clocked()
    turns = []
    for _ in range(30):
        for name in "abc":
            endpoint.now += 0.1
            if endpoint.report(name, limit=1).slots:
                turns.append(name)
            assert sum(endpoint.held.values()) <= 1
    assert min(turns.count(name) for name in "abc") >= 3


def test_slots_of_a_holder_that_stops_reporting_return() -> None:
    endpoint = Clocked()
    endpoint.report("killed")
    assert endpoint.report("b").slots == 0
    endpoint.now += HOLDER_LIVES_S + 1
    assert endpoint.report("b").slots == 16


def test_each_run_keeps_to_its_own_concurrency_and_all_to_the_largest() -> None:
    endpoint = Clocked()
    assert endpoint.report("small", limit=4).slots == 4
    assert endpoint.report("large", limit=16).slots == 12


def test_lost_state_is_rebuilt_without_more_slots_than_the_limit() -> None:
    endpoint = Clocked()
    for _ in range(3):
        endpoint.report("a")
        endpoint.report("b")
    assert endpoint.held == {"a": 8, "b": 8}
    endpoint.lose_state()
    assert endpoint.report("a").slots == 8
    assert endpoint.report("b").slots == 8
    endpoint.now += 5
    endpoint.report("b", wanted=0)
    endpoint.report("b", wanted=0)
    assert endpoint.report("a").slots == 16


def test_limit_is_halved_by_a_rejection_and_grows_by_one_for_each_round_of_replies() -> None:
    endpoint = Clocked()
    endpoint.report("a")
    assert endpoint.report("a", throttled=True).slots == 8
    assert endpoint.report("a", throttled=True).slots == 8, "requests that were sent together halve it once"
    endpoint.now += 2
    assert endpoint.report("a", throttled=True).slots == 4
    endpoint.now += 2
    assert endpoint.report("a", replies=4).slots == 5
    assert endpoint.report("a", replies=1000).slots == 16


def test_pause_of_one_holder_is_a_pause_of_all() -> None:
    endpoint = Clocked()
    endpoint.report("a", pause_s=30.0)
    endpoint.now += 10
    assert endpoint.report("b").pause_s == pytest.approx(20)


def test_requests_per_minute_are_shared() -> None:
    endpoint = Clocked()
    sent = 0
    for _ in range(600):
        endpoint.now += 0.1
        sent += sum(endpoint.report(name, wants_requests=5, requests_per_minute=120).requests for name in "ab")
    assert 118 <= sent <= 122


def test_tokens_beyond_the_rate_delay_the_next_requests() -> None:
    endpoint = Clocked()
    assert endpoint.report("a", tokens_per_minute=6000).tokens == 500
    assert endpoint.report("a", tokens_per_minute=6000, tokens=900.0).tokens == -400
    endpoint.now += 5
    assert endpoint.report("b", tokens_per_minute=6000).tokens == pytest.approx(50)


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (200, {}, 0),
        (429, {}, 0),
        (429, {"retry-after": "7"}, 7),
        (503, {"retry-after": "7"}, 7),
        (500, {"retry-after": "7"}, 0),
        (429, {"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        (429, {"retry-after": "86400"}, 60),
        (429, {"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        (429, {"retry-after": "soon"}, 0),
        (200, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m2s"}, 60),
        (200, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "250ms"}, 0.25),
        (200, {"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "9s"}, 0),
        (200, {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6.5s"}, 6.5),
    ],
)
def test_pause_that_headers_ask_for(status: int, headers: dict[str, str], seconds: float) -> None:
    assert pause_of(status, headers) == seconds
