"""Pipes between a candidate and its test judge, in one engine and between two."""

import os
import socket
import threading
from contextlib import suppress

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


def count_descriptors(of: socket.socket) -> int:
    """Return how many descriptors of this process refer to a socket. Other threads may open and close other files."""
    found = 0
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found += os.path.sameopenfile(int(descriptor), of.fileno())
    return found


def test_one_engine_takes_last_pipe_and_closes_others() -> None:
    here = links.Links()
    stale, given = socket.socketpair()
    here.give(1, given)
    assert carries(*pipe_to(here, here, 2))
    assert stale.recv(1) == b""
    with pytest.raises(KeyError):
        here.take(1)


def test_two_engines_receive_all_pipes_and_close_unused_ones(name: str) -> None:
    giver, taker = links.connect({"listen": name}), links.connect({"join": name})
    assert giver and taker
    assert carries(*pipe_to(taker, giver, 1))
    stale, given = socket.socketpair()
    giver.give(65535, given)
    assert carries(*pipe_to(taker, giver, 3))
    assert stale.recv(1) == b""


def test_judge_engine_may_request_pipe_before_it_is_sent(name: str) -> None:
    giver, taker = links.connect({"listen": name}), links.connect({"join": name})
    assert giver and taker
    ours, given = socket.socketpair()
    later = threading.Timer(0.1, giver.give, (7, given))
    later.start()
    taken = socket.socket(fileno=taker.take(7))
    later.join()
    assert carries(ours, taken)


def test_join_fails_without_listener_and_a_second_time(name: str) -> None:
    assert links.connect({"join": name}) is None
    giver, taker = links.connect({"listen": name}), links.connect({"join": name})
    assert giver and taker
    assert carries(*pipe_to(taker, giver, 1))
    assert links.connect({"join": name}) is None


def test_descriptors_that_are_not_a_pipe_of_the_run_are_rejected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_WAIT_S", 0.2)
    giver, taker = links.connect({"listen": name}), links.connect({"join": name})
    assert isinstance(giver, links.GivingLinks) and taker
    assert carries(*pipe_to(taker, giver, 1))
    assert giver._judge
    giver._judge.send(b"\0\0\0\2")  # its number, and no pipe
    with socket.socketpair()[0] as other:
        socket.send_fds(giver._judge, [b"\0\0\0\3"], [other.fileno()])  # for another run
        socket.send_fds(giver._judge, [b"longer than any number"], [other.fileno()])
        with pytest.raises(TimeoutError):
            taker.take(2)
        assert count_descriptors(other) == 1


def test_lost_link_is_reported(name: str) -> None:
    giver, taker = links.connect({"listen": name}), links.connect({"join": name})
    assert isinstance(giver, links.GivingLinks) and isinstance(taker, links.TakingLinks)
    assert carries(*pipe_to(taker, giver, 1))
    assert giver._judge
    giver._judge.close()
    with pytest.raises(ConnectionError):
        taker.take(2)
