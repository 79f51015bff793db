"""Fixtures of the adapters' tests, which run against a live server (tests/runs/rollouts/adapters/test_adapters.py)."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from llmeval_client import Client, Message

# One environment with a single turn, one with tools over a JSON world, and one with several turns of a user.
ENVIRONMENTS = ["word-problems", "order-desk", "changing-plans"]


@dataclass(frozen=True)
class Server:
    """LLM-Eval server, with a token of the scope `train`."""

    url: str
    token: str


@dataclass(frozen=True)
class Answer:
    """Response of an evaluation on the server, which the same messages must repeat. `messages`: of the assistant."""

    environment: str
    case: str
    attempt: int
    messages: list[Message]
    transcript: list[Message]
    score: float
    status: str


def _exchange() -> dict[str, object]:
    return dict(json.loads(Path(os.environ["LLMEVAL_ADAPTER_TEST"]).read_text(encoding="utf-8")))


@pytest.fixture(scope="session")
def server() -> Server:
    exchange = _exchange()
    return Server(str(exchange["url"]), str(exchange["token"]))


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, server.token) as client:
        yield client


@pytest.fixture(params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def answers(environment: str) -> list[Answer]:
    """Return answers to cases of *environment*, of which some passed and some failed."""
    rows = _exchange()["answers"]
    assert isinstance(rows, list)
    answers = [Answer(**row) for row in rows if row["environment"] == environment]
    assert {answer.status for answer in answers} == {"passed", "failed"}
    return answers
