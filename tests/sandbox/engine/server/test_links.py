"""How a candidate and its judge come by their pipe, in one engine and between two."""

import os
import socket
import threading

import pytest

from sandbox.engine.server import links


@pytest.fixture
def name() -> str:
    return f"llmeval-test-{os.urandom(8).hex()}"


def pipe_to(receiver: links.Links, giver: links.Links, number: int) -> tuple[socket.socket, socket.socket]:
    ours, given = socket.socketpair()
    giver.give(number, given)
    return ours, socket.socket(fileno=receiver.take(number))


def carries(ours: socket.socket, theirs: socket.socket) -> bool:
    with ours, theirs:
        ours.sendall(b"a word")
        return theirs.recv(100) == b"a word"


def test_within_one_engine_the_last_pipe_given_is_taken_and_others_are_closed() -> None:
    here = links.Links()
    stale, given = socket.socketpair()
    here.give(1, given)
    assert carries(*pipe_to(here, here, 2))
    assert stale.recv(1) == b""
    with pytest.raises(KeyError):
        here.take(1)


def test_between_two_engines_every_pipe_arrives_and_those_not_taken_are_closed(name: str) -> None:
    giver, taker = links.connect({"listen": name}), links.connect({"join": name})
    assert giver and taker
    assert carries(*pipe_to(taker, giver, 1))
    stale, given = socket.socketpair()
    giver.give(65535, given)
    assert carries(*pipe_to(taker, giver, 3))
    assert stale.recv(1) == b""


def test_the_judges_engine_may_ask_before_the_pipe_is_given(name: str) -> None:
    giver, taker = links.connect({"listen": name}), links.connect({"join": name})
    assert giver and taker
    ours, given = socket.socketpair()
    later = threading.Timer(0.1, giver.give, (7, given))
    later.start()
    taken = socket.socket(fileno=taker.take(7))
    later.join()
    assert carries(ours, taken)


def test_nobody_joins_where_nobody_listens_or_a_second_time(name: str) -> None:
    assert links.connect({"join": name}) is None
    giver, taker = links.connect({"listen": name}), links.connect({"join": name})
    assert giver and taker
    assert carries(*pipe_to(taker, giver, 1))
    assert links.connect({"join": name}) is None


def test_what_is_not_a_pipe_of_this_run_is_not_taken_for_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_WAIT_S", 0.2)
    giver, taker = links.connect({"listen": name}), links.connect({"join": name})
    assert isinstance(giver, links.GivingLinks) and taker
    assert carries(*pipe_to(taker, giver, 1))
    assert giver._judge
    giver._judge.send(b"\0\0\0\2")  # its number, and no pipe
    with socket.socketpair()[0] as other:
        before = os.listdir("/proc/self/fd")
        socket.send_fds(giver._judge, [b"\0\0\0\3"], [other.fileno()])  # for another run
        socket.send_fds(giver._judge, [b"longer than any number"], [other.fileno()])
        with pytest.raises(TimeoutError):
            taker.take(2)
        assert len(os.listdir("/proc/self/fd")) == len(before)


def test_an_engine_whose_other_is_gone_says_so(name: str) -> None:
    giver, taker = links.connect({"listen": name}), links.connect({"join": name})
    assert isinstance(giver, links.GivingLinks) and isinstance(taker, links.TakingLinks)
    assert carries(*pipe_to(taker, giver, 1))
    assert giver._judge
    giver._judge.close()
    with pytest.raises(ConnectionError):
        taker.take(2)
